/**
 * What was observed around a step: the newest picture, tree and document before its first tool call and up to its end,
 * and the agent's own state then and at the end of the step before. Found by marks; only the rows themselves are read.
 */
import { isObject, isText, reference } from "./fields";
import type { Folded } from "./outline";
import type { LogRecording } from "./recording";
import { Mark, type Observation, type Row, type StepBody } from "./types";

const FAR = 20_000; // marks that are looked through for an observation

type Seen = Pick<StepBody, "screens" | "seen" | "dom" | "terminal" | "rrweb">;

export async function observations(recording: LogRecording, outline: Folded, i: number, rows: Row[]): Promise<Seen> {
  const action = rows.find((row) => row.kind === "action" && isText(row.key));
  const before = (action ?? rows.at(-1))?.seq ?? outline.steps.seq(i),
    end = outline.steps.end(i);
  const pair = async (...sources: string[]): Promise<{ before: Observation | null; after: Observation | null }> => ({
    before: await newest(recording, outline, i, before - 1, sources),
    after: await newest(recording, outline, i, end, sources),
  });
  const own = (src: string): Observation[] =>
    rows.filter((row) => row.kind === "observation" && row.src === src).map((row) => observation(row, i));
  return {
    screens: await pair("screenshot"),
    seen: await pair("a11y_full", "a11y_delta"),
    dom: await pair("dom_full"),
    terminal: own("terminal"),
    rrweb: own("rrweb"),
  };
}

export function observation(row: Row, step: number): Observation {
  const { name, value } = row.data;
  return {
    seq: row.seq,
    t: row.t,
    step,
    src: row.src,
    name: isText(name) ? name : null,
    value: value ?? null,
    ref: reference(value),
  };
}

/** The source of the observation that mark `m` is of; "" where it is of none. */
function sourceOf(outline: Folded, m: number): string {
  const mark = outline.marks.mark(m);
  return mark === Mark.screenshot
    ? "screenshot"
    : mark === Mark.observation
      ? outline.marks.name(m)
      : mark === Mark.checkpoint
        ? "checkpoint"
        : "";
}

/** The newest observation of the step's lane at or before row `seq`. */
async function newest(
  recording: LogRecording,
  outline: Folded,
  i: number,
  seq: number,
  sources: string[],
): Promise<Observation | null> {
  const found = await newestRow(recording, outline, i, seq, sources);
  return found && observation(found.row, found.step);
}

async function newestRow(
  recording: LogRecording,
  outline: Folded,
  i: number,
  seq: number,
  sources: string[],
): Promise<{ row: Row; step: number } | null> {
  const { marks, steps } = outline,
    lane = steps.lane(i);
  for (let m = markBehind(outline, seq) - 1, tried = 0; m >= 0 && tried < FAR; m--, tried++) {
    if (!sources.includes(sourceOf(outline, m))) continue;
    const step = marks.step(m);
    if (step >= 0 && steps.lane(step) !== lane) continue;
    const row = await recording.row(marks.seq(m));
    if (row) return { row, step };
  }
  return null;
}

/** The first mark behind row `seq`. Marks stand in the order of their rows. */
function markBehind(outline: Folded, seq: number): number {
  let low = 0,
    high = outline.marks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (outline.marks.seq(middle) <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The agent's state at the end of step `i` and at the end of the step before; null where it never told one. */
export async function stateOf(
  recording: LogRecording,
  outline: Folded,
  i: number,
  load: (form: unknown) => Promise<unknown>,
): Promise<StepBody["state"]> {
  const at = async (seq: number): Promise<unknown> => {
    const found = await newestRow(recording, outline, i, seq, ["state", "checkpoint"]);
    if (!found) return undefined;
    const { row } = found;
    if (row.kind === "observation") return load(row.data.value);
    const meta = await load(row.data.meta);
    return isObject(meta) ? (meta.agent_state ?? meta) : meta;
  };
  const after = await at(outline.steps.end(i)),
    before = await at(outline.steps.seq(i) - 1);
  return after === undefined && before === undefined ? null : { before: before ?? null, after: after ?? null };
}
