/** Where a branch began: the line above its steps, and the rows of the steps that it took over from the run it left. */
import type { JSX } from "preact";
import { before, leftOf, older, olderStep, toParent } from "../../state/ancestry";
import { run, version, type Open } from "../../state/app";
import { copy } from "../../state/link";
import { Icon, StatusIcon } from "../icons";
import { SEALS } from "../seals";
import { Thought } from "./row";

/** "steps 0–8 are", "step 0 is": those before `first`. */
function numbersBefore(first: number): string {
  return first === 1 ? "step 0 is" : `steps 0–${first - 1} are`;
}

export function Began({ open }: { open: Open }): JSX.Element | null {
  void version.value;
  const left = leftOf(open);
  if (left === null) return null;
  const known = older.value?.of === open ? older.value : null;
  const seal = known?.parts[0] ? SEALS[known.parts[0].integrity.verdict] : null;
  const there = before(open) > 0 || (left.step === 0 && open.server !== null && open.recording.kind !== "bundle");
  const command = `worldline view ${left.run}`;
  return (
    <div class="began" data-testid="began">
      <Icon name="fork" />
      <span
        class="clip"
        title={`left run ${left.run} at step ${left.step}${left.step > 0 ? `; ${numbersBefore(left.step)} served from there` : ""}${known?.missing ? `; ${known.missing}` : ""}`}
      >
        Began at step {left.step} of <b>run {left.run.slice(-4)}</b>
        {seal === null ? null : (
          <span class={seal.class}>
            {" "}
            <Icon name={seal.icon} /> {seal.text}
          </span>
        )}
      </span>
      {there ? (
        <button
          type="button"
          class="button small"
          title="Open that run where this one left it ( U )"
          onClick={() => toParent()}
        >
          open <kbd aria-hidden="true">U</kbd>
        </button>
      ) : (
        <button type="button" class="button small" title={command} onClick={() => void copy(command, "command copied")}>
          copy command
        </button>
      )}
    </div>
  );
}

/** A step of an ancestor: what came back is not shown here, since what is masked is said by run. */
export function OlderRow({ number }: { number: number }): JSX.Element {
  void version.value;
  const found = run.value ? olderStep(run.value, number) : null;
  const steps = found?.part.outline.steps;
  const i = found?.i ?? 0;
  return (
    <div class="step older" title="served from the run that this one left: a click opens it there">
      <span class="number">
        <span class="quiet">step </span>
        {number}
      </span>
      <span class="shape">{steps ? <StatusIcon status={steps.status(i)} /> : null}</span>
      <span class="action clip">
        {steps ? steps.name(i) : "…"} <span class="detail">{steps?.detail(i) ?? ""}</span>
      </span>
      <span class="pill">
        <Icon name="fork" /> {found ? String(found.part.recording.header.data["run"]).slice(-4) : ""}
        <span class="quiet"> served from that run</span>
      </span>
      <Thought text={steps?.thought(i) ?? ""} />
    </div>
  );
}
