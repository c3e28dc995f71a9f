/**
 * The playhead's ways to move. Step and time are one: whoever moves one moves the other, and nobody moves them but here.
 */
import { batch } from "@preact/signals";
import { Mark, type Outline } from "../core/types";
import { following, liveState, page, playhead, playing, run, step, unseen } from "./app";
import { listed, placeOf, problems } from "./filter";

/** The step that was last to begin at or before `t`; 0 before the first. */
export function stepAt(outline: Outline, t: number): number {
  const { steps } = outline;
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (steps.t0(middle) <= t) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** To step `i`, kept within the run. Someone moved: a live run is followed no more. */
export function goTo(i: number): void {
  const outline = run.value?.outline;
  if (!outline || outline.steps.length === 0) return;
  const to = Math.min(Math.max(0, Math.trunc(i)), outline.steps.length - 1);
  batch(() => {
    unpin();
    step.value = to;
    playhead.value = outline.steps.t0(to);
  });
}

/** To the time `t`, kept within the run. */
export function seek(t: number): void {
  batch(() => {
    unpin();
    place(t);
  });
}

/** To a row: the step it belongs to, at the row's own time where that is known. */
export function seekRow(seq: number, t?: number): void {
  const outline = run.value?.outline;
  if (!outline) return;
  const i = Math.max(0, outline.steps.of(seq));
  if (t === undefined) return goTo(i);
  batch(() => {
    unpin();
    step.value = i;
    playhead.value = within(outline, t);
  });
}

/** The clock moved, not a person: playback and the live end go this way. */
export function advance(t: number): void {
  batch(() => place(t));
}

/** By `n` entries of the step list as it is filtered now. */
export function moveBy(n: number): void {
  const list = listed.value;
  if (list === null) return goTo(step.value + n);
  if (list.length === 0) return;
  const here = placeOf(list, step.value);
  const exact = list[here] === step.value;
  // From between two entries, one forward is the entry at `here`.
  const to = n > 0 && !exact ? here + n - 1 : here + n;
  goTo(list[Math.min(Math.max(0, to), list.length - 1)] ?? step.value);
}

export function first(): void {
  goTo(listed.value?.[0] ?? 0);
}

export function last(): void {
  const length = run.value?.outline.steps.length ?? 0;
  goTo(listed.value?.at(-1) ?? length - 1);
}

/** The next (1) or previous (-1) step that failed or was denied something. False where there is none. */
export function toProblem(direction: 1 | -1): boolean {
  const outline = run.value?.outline;
  return outline !== undefined && toNeighbour(problems(outline), direction);
}

/** The next (1) or previous (-1) permission row. Goes on from the playhead, not from the step: a step may have several. */
export function toPermission(direction: 1 | -1): boolean {
  const outline = run.value?.outline;
  if (!outline) return false;
  const { marks } = outline;
  let low = 0;
  let high = marks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (direction > 0 ? marks.t(middle) <= playhead.value : marks.t(middle) < playhead.value) low = middle + 1;
    else high = middle;
  }
  for (let i = direction > 0 ? low : low - 1; i >= 0 && i < marks.length; i += direction) {
    if (marks.mark(i) !== Mark.permission) continue;
    seekRow(marks.seq(i), marks.t(i));
    return true;
  }
  return false;
}

/** Live: to the newest row, and from now on with it. */
export function toLive(): void {
  const outline = run.value?.outline;
  if (!outline || liveState.value === "off") return;
  batch(() => {
    following.value = true;
    unseen.value = 0;
    playing.value = false;
    advance(outline.span[1]);
  });
}

/** A list was scrolled by hand: the playhead stays with it, the run goes on without. */
export function unpin(): void {
  if (following.value) following.value = false;
}

/** The run grew by `rows` rows: the playhead goes along where it is pinned, else they are counted. */
export function grew(rows: number): void {
  const outline = run.value?.outline;
  if (!outline || page.value !== "run") return;
  if (following.value) advance(outline.span[1]);
  else if (rows > 0) unseen.value += rows;
}

function place(t: number): void {
  const outline = run.value?.outline;
  if (!outline) return;
  playhead.value = within(outline, t);
  step.value = stepAt(outline, playhead.value);
}

function within(outline: Outline, t: number): number {
  return Math.min(Math.max(outline.span[0], t), outline.span[1]);
}

function toNeighbour(sorted: readonly number[], direction: 1 | -1): boolean {
  const here = placeOf(sorted, step.value);
  const to = direction < 0 ? sorted[here - 1] : sorted[here] === step.value ? sorted[here + 1] : sorted[here];
  if (to === undefined) return false;
  goTo(to);
  return true;
}
