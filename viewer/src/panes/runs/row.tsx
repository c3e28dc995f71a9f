/** One run as a line of the list: how it ended, what it was about, how much it was, what went wrong. */
import type { JSX } from "preact";
import { count, duration, money } from "../../state/words";
import { Outcome } from "../forks/outcome";
import { Icon } from "../icons";
import { type RunEntry, isLive, shortName } from "./entries";
import type { Order } from "./facets";

export const ROW = 34;

/** The columns with their names and what they sort by. */
export const COLUMNS: readonly { name: string; by: Order | null; class: string }[] = [
  { name: "", by: null, class: "c-mark" },
  { name: "outcome", by: "outcome", class: "c-outcome" },
  { name: "run", by: null, class: "c-run" },
  { name: "task", by: "task", class: "c-task" },
  { name: "model", by: "model", class: "c-model" },
  { name: "what went wrong", by: null, class: "c-error" },
  { name: "denied", by: "denied", class: "c-denied" },
  { name: "steps", by: "steps", class: "c-figure" },
  { name: "time", by: "seconds", class: "c-figure" },
  { name: "tokens", by: "tokens", class: "c-figure" },
  { name: "cost", by: "cost", class: "c-figure" },
  { name: "started", by: "started", class: "c-started" },
];

export function RunRow({
  run,
  isMarked,
  onMark,
}: {
  run: RunEntry;
  isMarked: boolean;
  onMark: () => void;
}): JSX.Element {
  const denied = run.permissions["denied"] ?? 0;
  return (
    <div class="run-row">
      <span
        class="c-mark"
        onClick={(event) => {
          event.stopPropagation();
          onMark();
        }}
      >
        <span class={`check${isMarked ? " on" : ""}`}>{isMarked ? <Icon name="tick" label="marked" /> : null}</span>
      </span>
      <span class="c-outcome clip">
        <Outcome outcome={run.outcome} live={isLive(run)} words />
      </span>
      <span class="c-run mono clip" title={run.run}>
        {shortName(run.run)}
        {run.parent === null ? null : <Icon name="fork" label="a fork" />}
      </span>
      <span class="c-task clip" title={run.task}>
        {run.task}
      </span>
      <span class="c-model clip muted">{run.model}</span>
      <span class="c-error clip">
        {run.error}
        {run.troubleStep === null ? (
          ""
        ) : (
          <span class="muted">
            {run.error === "" ? "" : ", "}trouble from step {run.troubleStep}
          </span>
        )}
      </span>
      <span class="c-denied">
        {denied > 0 ? (
          <span class="is-denied">
            <Icon name="noEntry" label="denied" /> {denied}
          </span>
        ) : null}
      </span>
      <span class="c-figure">{run.steps ?? ""}</span>
      <span class="c-figure">{run.seconds === null ? "" : duration(run.seconds * 1e9)}</span>
      <span class="c-figure">{run.tokens === null ? "" : count(run.tokens)}</span>
      <span class="c-figure">{run.cost === null ? "" : money(run.cost)}</span>
      <span class="c-started muted">{when(run.started)}</span>
    </div>
  );
}

/** "30 Nov 07:12": enough to tell runs apart; the year where it is another. */
export function when(seconds: number | null): string {
  if (seconds === null) return "";
  const time = new Date(seconds * 1000);
  const year = time.getFullYear() === new Date().getFullYear() ? {} : ({ year: "numeric" } as const);
  return time.toLocaleString(undefined, {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    ...year,
  });
}
