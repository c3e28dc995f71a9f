/** The inspector: everything about the step under the playhead, in tabs. */
import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import "../../style/inspector.css";
import { body, run, step, tab, version, type Tab } from "../../state/app";
import { bodyTrouble } from "../../state/bodies";
import { TABS } from "../../state/keys";
import { grouped } from "../../state/words";
import { Icon } from "../icons";
import { part } from "../part";
import { SEALS } from "../seals";
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
  // What changes with every step is in parts of its own: the frame around them is not drawn anew for a playhead that runs.
  const late = useComputed(() => body.value !== null && body.value.index !== step.value).value;
  void version.value;
  const open = run.value;
  if (open === null) return null;
  const now = tab.value;
  const behind = late && now !== "integrity";
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
                <Icon name={SEALS[open.integrity.verdict].icon} class={SEALS[open.integrity.verdict].class} />
              ) : (
                <span class="bold" data-text={WORDS[key]}>
                  {WORDS[key]}
                </span>
              )}
              {key === "console" || key === "network" ? <Count of={key} /> : null}
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
        {now === "integrity" ? null : <Coming />}
        <Panel now={now} />
      </div>
    </section>
  );
}

/** How many lines the step under the playhead has. */
function Count({ of }: { of: "console" | "network" }): JSX.Element | null {
  void version.value;
  const steps = run.value?.outline.steps;
  const i = step.value;
  const count = !steps || i >= steps.length ? 0 : of === "console" ? steps.consoleLines(i) : steps.requests(i);
  return count === 0 ? null : <span class="count"> {grouped(count)}</span>;
}

/** What is not shown yet, or could not be read. */
function Coming(): JSX.Element {
  const i = step.value;
  const shown = body.value;
  return (
    <>
      {shown !== null && shown.index !== i ? (
        <p class="coming" role="status">
          step {stepNumber(shown.index)} is shown, step {stepNumber(i)} is loading
        </p>
      ) : null}
      {bodyTrouble.value !== null ? (
        <p class="card is-failed" role="alert">
          <Icon name="warning" /> Step {stepNumber(i)} could not be read: {bodyTrouble.value}
        </p>
      ) : null}
    </>
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
