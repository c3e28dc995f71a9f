/** One row of the step list, drawn from the outline alone: no body is loaded for it. */
import type { JSX } from "preact";
import { Status, type Steps } from "../../core/types";
import { run, version } from "../../state/app";
import { stepNumber } from "../../state/numbers";
import { masked } from "../../state/mask";
import { duration, plural } from "../../state/words";
import { Icon, StatusIcon } from "../icons";

export function StepRow({ i }: { i: number }): JSX.Element | null {
  void version.value;
  const outline = run.value?.outline;
  if (!outline || i >= outline.steps.length) return null;
  const { steps, lanes } = outline;
  const observed = steps.observed(i);
  return (
    <div class="step">
      <span class="number">
        <span class="quiet">step </span>
        {stepNumber(i)}
      </span>
      <span class="shape">
        <StatusIcon status={steps.status(i)} />
      </span>
      <span class="action clip" title={`${steps.name(i)} ${steps.detail(i)}`}>
        {steps.name(i)} <span class="detail">{steps.detail(i)}</span>
      </span>
      <Badges steps={steps} i={i} lane={lanes.length > 1 ? (lanes[steps.lane(i)] ?? "") : ""} />
      <Whisker steps={steps} i={i} />
      <span class="took">{steps.status(i) === Status.running ? "" : duration(steps.t1(i) - steps.t0(i))}</span>
      <Thought text={steps.thought(i)} />
      {observed === "" ? null : (
        <span class="line">
          <b title="observation">
            O<span class="quiet">bserved: </span>
          </b>
          <Observed text={observed} at={i} seq={steps.seq(i)} failed={steps.status(i) === Status.failed} />
        </span>
      )}
    </div>
  );
}

/** The line for what the model thought; of a step that it thought nothing at, there is none. */
export function Thought({ text }: { text: string }): JSX.Element | null {
  if (text === "") return null;
  return (
    <span class="line">
      <b class="t" title="thought">
        T<span class="quiet">hought: </span>
      </b>
      <span class="clip">{text}</span>
    </span>
  );
}

export function rowClass(steps: Steps, i: number): string {
  const status = steps.status(i);
  if (status === Status.failed) return "failed";
  return status === Status.denied ? "denied" : "";
}

/** Masked, a line shows how long it is and no more; of a failure its class stays, because it says what went wrong. */
function Observed({ text, seq, at, failed }: { text: string; seq: number; at: number; failed: boolean }): JSX.Element {
  if (!masked("step", seq, at)) return <span class="clip">{text}</span>;
  const kind = failed ? (/^[A-Z]\w*(?:Error|Exception|Timeout|Exit|Interrupt)\b/.exec(text)?.[0] ?? "") : "";
  return (
    <>
      {kind === "" ? null : <span>{kind}</span>}
      <span class="hatched" style={{ width: `${Math.min(220, 24 + Math.min(text.length, 90) * 2)}px` }} title="masked">
        <span class="quiet">masked</span>
      </span>
    </>
  );
}

/** Signs of a step: the sub-agent that took it, where there are several; its permissions and its retries. */
function Badges({ steps, i, lane }: { steps: Steps; i: number; lane: string }): JSX.Element {
  // The columns behind `steps` change in place: who draws from them reads the version.
  void version.value;
  const denied = steps.denied(i);
  const requested = steps.requested(i) - denied;
  const retries = steps.retries(i);
  return (
    <span class="badges">
      {lane === "" || lane === "main" ? null : (
        <span class="pill lane" title={`lane ${lane}`}>
          <span class="quiet">in lane </span>
          {lane.length > 12 ? `${lane.slice(0, 11)}…` : lane}
        </span>
      )}
      {denied > 0 ? (
        <span class="pill is-denied" title={`${plural(denied, "permission")} denied`}>
          <Icon name="noEntry" label="permission denied" />
          {denied > 1 ? denied : null}
        </span>
      ) : null}
      {requested > 0 ? (
        <span class="pill is-ok" title={`${plural(requested, "permission")} asked for`}>
          <Icon name="key" label="permission asked for" />
          {requested > 1 ? requested : null}
        </span>
      ) : null}
      {retries > 0 ? (
        <span class="pill is-warn" title={plural(retries, "retry", "retries")}>
          <Icon name="retry" />
          {retries}
          <span class="quiet">{retries === 1 ? " retry" : " retries"}</span>
        </span>
      ) : null}
    </span>
  );
}

/** The longest bar, and the step that fills it: lengths are logarithmic, since steps last from 1 ms to hours. */
const WIDEST = 46;
const LONGEST_NS = 6e10;

export function whiskerWidth(ns: number): number {
  if (ns <= 0) return 0;
  return Math.max(2, Math.min(WIDEST, (WIDEST * Math.log10(1 + ns / 1e7)) / Math.log10(1 + LONGEST_NS / 1e7)));
}

function Whisker({ steps, i }: { steps: Steps; i: number }): JSX.Element {
  void version.value;
  const parts = [
    ["think", steps.think(i)],
    ["tool", steps.tool(i)],
    ["environment", steps.environment(i)],
  ] as const;
  const sum = parts.reduce((all, [, ns]) => all + ns, 0);
  const width = whiskerWidth(sum);
  return (
    <span class="whisker" title={parts.map(([word, ns]) => `${word} ${duration(ns)}`).join(" · ")}>
      {parts.map(([word, ns]) =>
        ns > 0 ? <i key={word} class={word} style={{ width: `${(width * ns) / sum}px` }} /> : null,
      )}
    </span>
  );
}
