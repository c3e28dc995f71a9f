/** The inspector: everything about the step under the playhead, in tabs. */
import type { JSX } from "preact";
import "../../style/inspector.css";
import { body, run, step, tab, version, type Tab } from "../../state/app";
import { bodyTrouble } from "../../state/bodies";
import { TABS } from "../../state/keys";
import { grouped } from "../../state/words";
import { Icon } from "../icons";
import { part } from "../part";
import { stepNumber } from "../../state/numbers";

/** The cards come with the first bodies: the frame, and the steps beside it, do not wait for them. */
const DecisionTab = part(async () => (await import("./decision")).DecisionTab);
const OtherTab = part(async () => (await import("./tabs")).OtherTab);

const WORDS: Record<Tab, string> = {
  decision: "Decision",
  snapshot: "Snapshot",
  state: "State Δ",
  console: "Console",
  network: "Network",
  raw: "Raw",
  integrity: "Integrity",
};

export function Inspector(): JSX.Element | null {
  void version.value;
  const open = run.value;
  if (open === null) return null;
  const { steps } = open.outline;
  const i = step.value;
  const known = i < steps.length;
  const counts: Partial<Record<Tab, number>> = known
    ? { console: steps.consoleLines(i), network: steps.requests(i) }
    : {};
  const now = tab.value;
  const shown = body.value;
  const behind = now !== "integrity" && shown !== null && shown.index !== i;
  return (
    <section class="pane inspector" aria-label="Inspector" data-testid="inspector">
      <div class="bar">
        <div class="tabs" role="tablist" aria-label="Inspector" onKeyDown={onTabKey}>
          {TABS.map((key) => (
            <button
              key={key}
              type="button"
              class="tab"
              role="tab"
              id={`tab-${key}`}
              aria-selected={now === key}
              aria-controls="inspector-panel"
              aria-label={key === "integrity" ? WORDS[key] : undefined}
              title={key === "integrity" ? "Integrity" : undefined}
              tabIndex={now === key ? 0 : -1}
              onClick={() => (tab.value = key)}
            >
              {key === "integrity" ? (
                <Icon name={open.integrity.verdict === "changed" ? "sealBroken" : "seal"} />
              ) : (
                <span class="bold" data-text={WORDS[key]}>
                  {WORDS[key]}
                </span>
              )}
              {counts[key] ? <span class="count"> {grouped(counts[key])}</span> : null}
            </button>
          ))}
        </div>
      </div>
      <div
        class={`panel ${behind ? "behind" : ""}`}
        role="tabpanel"
        id="inspector-panel"
        aria-labelledby={`tab-${now}`}
        aria-busy={behind}
        tabIndex={-1}
      >
        {behind ? (
          <p class="coming" role="status">
            step {stepNumber(shown.index)} is shown, step {stepNumber(i)} is loading
          </p>
        ) : null}
        {now !== "integrity" && bodyTrouble.value !== null ? (
          <p class="card is-failed" role="alert">
            <Icon name="warning" /> Step {i} could not be read: {bodyTrouble.value}
          </p>
        ) : null}
        <Panel now={now} />
      </div>
    </section>
  );
}

function Panel({ now }: { now: Tab }): JSX.Element | null {
  const open = run.value;
  const shown = body.value;
  if (open === null) return null;
  if (now === "integrity") return <OtherTab now={now} body={shown} open={open} />;
  if (shown === null)
    return (
      <p class="empty-line" role="status">
        {open.outline.steps.length === 0 && open.outline.done ? "This recording has no step." : "Loading the step…"}
      </p>
    );
  return now === "decision" ? (
    <DecisionTab body={shown} open={open} />
  ) : (
    <OtherTab now={now} body={shown} open={open} />
  );
}

/** Arrows, Home and End move between the tabs, as the practice for tabs has it. */
function onTabKey(event: KeyboardEvent): void {
  const at = TABS.indexOf(tab.value);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
  if (to === undefined) return;
  const next = TABS[(to + TABS.length) % TABS.length];
  if (next === undefined) return;
  tab.value = next;
  event.preventDefault();
  event.stopPropagation();
  document.getElementById(`tab-${next}`)?.focus();
}
