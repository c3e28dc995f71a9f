/**
 * The pair under the playhead, side against side: screens, what was asked of the model, arguments, results, state,
 * permissions. What an agent observed is masked here as everywhere.
 */
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Message, Missing, StepBody } from "../../core/types";
import { other, run, type Open } from "../../state/app";
import { askReveal, masked } from "../../state/mask";
import { Icon, PERMISSION_ICON } from "../icons";
import { isMissing } from "../inspector/masked";
import { sides, sidesTrouble, watchBodies } from "./bodies";
import { TextDiff, ValueDiff } from "./diff-view";
import { agree } from "./differences";
import { Screens } from "./screens";
import { Relation } from "./spine";
import { pairSteps, row, spine } from "./state";
import { Prompts, Results } from "./told";
import { RULES } from "../../core/volatile";

const TABS = ["screens", "arguments", "result", "prompt", "answer", "state", "permissions"] as const;
type PairTab = (typeof TABS)[number];
const chosen = signal<PairTab | null>(null);

export function Pair(): JSX.Element | null {
  useEffect(watchBodies, []);
  const left = run.value,
    right = other.value;
  const { left: a, right: b } = sides.value;
  if (left === null || right === null) return null;
  if (sidesTrouble.value !== "")
    return (
      <p class="empty-line is-failed" role="alert">
        {sidesTrouble.value}
      </p>
    );
  if (a === null && b === null) return <p class="empty-line">reading the steps …</p>;
  const differs = TABS.map((tab) => tellsApart(tab, a, b));
  const alone = pairSteps.value.left < 0 || pairSteps.value.right < 0;
  const served = alone && spine.value?.relation[row.value] === Relation.same;
  const now = chosen.value ?? TABS[differs.indexOf(true)] ?? "arguments";
  return (
    <section class="pair" aria-label="The pair under the playhead">
      <div class="bar">
        <div class="tabs" role="tablist" aria-label="What is compared">
          {TABS.map((tab, i) => (
            <button
              key={tab}
              type="button"
              role="tab"
              class="tab"
              id={`pair-tab-${tab}`}
              aria-selected={tab === now}
              tabIndex={tab === now ? 0 : -1}
              onClick={() => (chosen.value = tab)}
              onKeyDown={(event) => {
                const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
                if (by === 0) return;
                const next = TABS[(i + by + TABS.length) % TABS.length] ?? "arguments";
                chosen.value = next;
                document.getElementById(`pair-tab-${next}`)?.focus();
                event.preventDefault();
                event.stopPropagation();
              }}
            >
              {tab}
              {differs[i] === true ? (
                <span class="differs" title="differs">
                  <span class="unseen"> differs</span>≠
                </span>
              ) : null}
            </button>
          ))}
        </div>
        <span class="spacer" />
        <Rules />
      </div>
      <div class="scroll pair-body" role="tabpanel" aria-labelledby={`pair-tab-${now}`} tabIndex={0}>
        {alone ? (
          <p class="muted">
            {served
              ? "The other run left this one later, and was served this step as it is."
              : `Only the ${pairSteps.value.left < 0 ? "right" : "left"} run has this step.`}
          </p>
        ) : null}
        {served ? null : <Body tab={now} left={left} right={right} a={a} b={b} />}
      </div>
    </section>
  );
}

/** Whether the two sides differ there, ids and dates aside; null where it costs too much to know before it is looked at. */
function tellsApart(tab: PairTab, a: StepBody | null, b: StepBody | null): boolean | null {
  if (a === null || b === null || tab === "screens") return null;
  switch (tab) {
    case "arguments":
      return !agree(argumentsOf(a), argumentsOf(b));
    case "result":
      return !agree(resultsOf(a), resultsOf(b));
    case "prompt":
      return !agree(promptOf(a), promptOf(b));
    case "answer":
      return !agree(answerOf(a), answerOf(b));
    case "state":
      return !agree(a.state?.after ?? null, b.state?.after ?? null);
    case "permissions":
      return !agree(permissionsOf(a), permissionsOf(b));
  }
}

function Body({
  tab,
  left,
  right,
  a,
  b,
}: {
  tab: PairTab;
  left: Open;
  right: Open;
  a: StepBody | null;
  b: StepBody | null;
}): JSX.Element {
  const hidden = isHidden(a);
  const reveal = (): void => askReveal("step", a?.rows[0]?.seq);
  const hide = (what: string, same: boolean, children: () => ComponentChildren): JSX.Element =>
    hidden ? (
      <p class="masked-pair">
        <span class="hatched">
          <Icon name="masked" /> {what} masked: {same ? "the same on both sides" : "they differ"}
        </span>{" "}
        <button type="button" class="link" onClick={reveal}>
          reveal…
        </button>
      </p>
    ) : (
      <>{children()}</>
    );
  switch (tab) {
    case "screens":
      return (
        <Screens
          onReveal={reveal}
          left={{
            open: left,
            observation: a?.screens.after ?? a?.screens.before ?? null,
            word: "left",
            step: a?.index ?? -1,
          }}
          right={{
            open: right,
            observation: b?.screens.after ?? b?.screens.before ?? null,
            word: "right",
            step: a?.index ?? -1,
          }}
        />
      );
    case "arguments":
      return <Calls a={a} b={b} />;
    case "result":
      return hide("what came back is", agree(resultsOf(a), resultsOf(b)), () => (
        <Results left={resultsOf(a)} right={resultsOf(b)} />
      ));
    case "prompt": {
      const one = promptOf(a),
        two = promptOf(b);
      if (isMissing(one) || isMissing(two))
        return (
          <p class="missing">
            {[one, two]
              .filter(isMissing)
              .map((side) => side.why)
              .join(" · ")}
          </p>
        );
      return hide("the requests are", agree(one, two), () => <Prompts left={one ?? []} right={two ?? []} />);
    }
    case "answer":
      return <TextDiff left={answerOf(a)} right={answerOf(b)} />;
    case "state":
      return a?.state == null && b?.state == null ? (
        <p class="muted">Neither agent said anything of its own state.</p>
      ) : (
        hide("the state is", agree(a?.state?.after, b?.state?.after), () => (
          <ValueDiff left={a?.state?.after} right={b?.state?.after} />
        ))
      );
    case "permissions":
      return <Permissions a={a} b={b} />;
  }
}

function isHidden(a: StepBody | null): boolean {
  return a === null ? masked("session", -1) : masked("step", a.rows[0]?.seq ?? -1, a.index);
}

function Calls({ a, b }: { a: StepBody | null; b: StepBody | null }): JSX.Element {
  const names = (body: StepBody | null): string => body?.calls.map((call) => call.name).join(", ") || "no tool";
  return (
    <>
      <p class="sides">
        <code>{names(a)}</code>
        <code>{names(b)}</code>
      </p>
      <ValueDiff left={argumentsOf(a)} right={argumentsOf(b)} />
    </>
  );
}

function Permissions({ a, b }: { a: StepBody | null; b: StepBody | null }): JSX.Element {
  const list = (body: StepBody | null): JSX.Element => (
    <ul>
      {(body?.permissions ?? []).map((card) => (
        <li key={card.seq}>
          <Icon
            name={PERMISSION_ICON[card.word]}
            class={card.word === "denied" || card.word === "revoked" ? "is-denied" : ""}
          />{" "}
          {card.word.replace("_", "-")} <code>{card.capability}</code>
        </li>
      ))}
      {(body?.permissions.length ?? 0) === 0 ? <li class="muted">nothing was asked</li> : null}
    </ul>
  );
  return (
    <>
      <div class="sides">
        {list(a)}
        {list(b)}
      </div>
      <ValueDiff left={permissionsOf(a)} right={permissionsOf(b)} />
    </>
  );
}

/** What is taken as the same although it differs, said openly. */
function Rules(): JSX.Element {
  return (
    <details class="rules">
      <summary>ids and dates do not count</summary>
      <dl>
        {RULES.map((rule) => (
          <div key={rule.says}>
            <dt>{rule.name}</dt>
            <dd>{rule.says}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function argumentsOf(body: StepBody | null): unknown {
  return (body?.calls ?? []).map((call) => ({ tool: call.name, arguments: call.arguments }));
}

function resultsOf(body: StepBody | null): unknown {
  return (body?.calls ?? []).map((call) =>
    call.error === null ? { tool: call.name, result: call.result } : { tool: call.name, error: call.error },
  );
}

function promptOf(body: StepBody | null): Message[] | Missing | null {
  return body?.decision?.messages ?? null;
}

function answerOf(body: StepBody | null): string {
  const decision = body?.decision;
  if (!decision) return "";
  return [decision.reasoning, decision.text, ...decision.calls.map((call) => `${call.name}(${call.arguments})`)]
    .filter((part) => part !== "")
    .join("\n\n");
}

function permissionsOf(body: StepBody | null): unknown {
  return (body?.permissions ?? []).map(({ word, capability, facts }) => ({ word, capability, facts }));
}
