/** What the model was asked, what it thought, what it chose, and what came of it: the step's story from top to bottom. */
import type { JSX } from "preact";
import type { Decision, StepBody } from "../../core/types";
import type { Open } from "../../state/app";
import { duration, grouped } from "../../state/words";
import { Icon } from "../icons";
import { CallCard } from "./calls";
import { JsonView } from "./json-view";
import { Heading, SeekTo } from "./masked";
import { Messages } from "./messages";
import { PermissionCardView } from "./permission";
import { WhyCard } from "./why";

export function DecisionTab({ body, open }: { body: StepBody; open: Open }): JSX.Element {
  const { decision, permissions, calls } = body;
  return (
    <div class="scroll cards" tabIndex={0} role="group" aria-label="Decision">
      {decision === null ? (
        <p class="card muted">No model was asked in this step.</p>
      ) : (
        <DecisionCard decision={decision} />
      )}
      {permissions.map((card) => (
        <PermissionCardView key={card.seq} card={card} />
      ))}
      <WhyCard step={body.index} open={open} />
      {calls.map((call) => (
        <CallCard key={call.seq} call={call} at={body.index} />
      ))}
      {decision === null ? null : <Messages decision={decision} at={body.index} />}
    </div>
  );
}

function DecisionCard({ decision }: { decision: Decision }): JSX.Element {
  return (
    <article class="card decision">
      <Heading aside={<Facts decision={decision} />}>Decision</Heading>
      {decision.error === null ? null : (
        <p class="is-failed">
          <Icon name="cross" /> {decision.error}
        </p>
      )}
      {decision.reasoning === "" ? null : (
        <blockquote class="thought" cite="" title="what the model thought">
          <Long text={decision.reasoning} />
        </blockquote>
      )}
      {decision.text === "" ? null : (
        <p class="answer wrap">
          <Long text={decision.text} />
        </p>
      )}
      {decision.calls.length === 0 ? null : (
        <ul class="chosen" aria-label="Chosen">
          {decision.calls.map((call, n) => (
            <li key={call.id ?? n}>
              <Icon name="tool" class="is-running" /> <b class="mono">{call.name}</b>{" "}
              <JsonView value={parsed(call.arguments)} lines={8} />
            </li>
          ))}
        </ul>
      )}
      {decision.alternatives.length === 0 ? null : <Alternatives all={decision.alternatives} />}
      <footer class="muted">
        {decision.route} · <SeekTo seq={decision.seq}>request {decision.seq}</SeekTo> ·{" "}
        <SeekTo seq={decision.end}>answer {decision.end}</SeekTo>
        {decision.ms === null ? "" : ` · took ${duration(decision.ms * 1e6)}`}
        {decision.temperature === null ? "" : ` · temperature ${decision.temperature}`}
        {decision.finish.length > 0 ? ` · ended: ${decision.finish.join(", ")}` : ""}
      </footer>
    </article>
  );
}

function Facts({ decision }: { decision: Decision }): JSX.Element {
  const facts = [
    decision.model,
    decision.seed === null ? "" : `seed ${decision.seed}`,
    decision.tokensIn === null && decision.tokensOut === null
      ? ""
      : `${said(decision.tokensIn)} → ${said(decision.tokensOut)} tok`,
  ];
  return <span class="mono">{facts.filter((fact) => fact !== "").join(" · ")}</span>;
}

function said(n: number | null): string {
  return n === null ? "?" : grouped(n);
}

/** Only what the provider gave as probabilities, or what rollouts measured. */
function Alternatives({ all }: { all: Decision["alternatives"] }): JSX.Element {
  return (
    <ul class="alternatives" aria-label="Alternatives, with their probability">
      {all.map((one, n) => (
        <li key={n} class={one.chosen ? "is-chosen" : ""}>
          <span class="mono clip" title={one.text}>
            {one.text}
          </span>
          <span class="track" aria-hidden="true">
            <i style={{ width: `${Math.round(Math.min(Math.max(one.p, 0), 1) * 100)}%` }} />
          </span>
          <span class="muted number">{one.p.toFixed(2).replace(/^0/, "")}</span>
        </li>
      ))}
    </ul>
  );
}

/** Long texts are cut where they would fill the page; the whole stands in the Raw tab. */
function Long({ text }: { text: string }): JSX.Element {
  const most = 6000;
  if (text.length <= most) return <span class="wrap">{text}</span>;
  return (
    <span class="wrap">
      {text.slice(0, most)}… <span class="muted">{grouped(text.length - most)} more characters in Raw</span>
    </span>
  );
}

/** Arguments as the model wrote them: JSON where they are JSON, else the text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
