/**
 * What of the run the timeline shows: the axis with its gaps, the zoom, and the moves that keys, wheel and brush make.
 *
 * The view is `[t, t]` in `state/app.ts`. Zooming and panning go through the axis, so that both keep their scale across
 * folded gaps. A view of the whole run stays one while the run grows.
 */
import { batch, computed, effect, signal } from "@preact/signals";
import {
  type Axis,
  type Projection,
  clamp,
  findGaps,
  makeAxis,
  nearestGap,
  pan,
  project,
  toT,
  toX,
  whole,
  zoom,
} from "../../core/axis";
import { paced } from "./paced";
import { folded, outline, playhead, run, step, version, view } from "../../state/app";

/** The width of the plot in CSS pixels; the timeline measures it. */
export const plotWidth = signal(1000);
/** The starts of the gaps that the user opened. */
export const opened = signal<ReadonlySet<number>>(new Set());

const NONE: Float64Array = new Float64Array(0);
/** The gaps of the run that is open, also when they are not folded: playback skips them. */
export const gaps = paced<Float64Array>((now) => findGaps(now), NONE);

export const axis = computed<Axis | null>(() => {
  const now = outline.value;
  void version.value;
  if (now === null) return null;
  const open = opened.value;
  const fold = folded.value;
  return makeAxis(now.span, gaps.value, (from) => !fold || open.has(from));
});

/** All of the run is shown, also of a run that grows. */
const pinned = signal(true);

/** The view as it is drawn: within the run, whatever stands in the signal. */
export const shown = computed<[number, number]>(() => {
  const now = axis.value;
  if (now === null) return view.value;
  return pinned.value ? whole(now) : clamp(now, view.value[0], view.value[1]);
});

export const projection = computed<Projection | null>(() => {
  const now = axis.value;
  return now === null ? null : project(now, shown.value[0], shown.value[1], plotWidth.value);
});

/** True while all of the run is seen. */
export const isWhole = computed(() => {
  const now = axis.value;
  return now === null || (shown.value[0] <= now.start && shown.value[1] >= now.end);
});

/** Shows `[t0, t1]`, within the run. */
export function show(t0: number, t1: number): void {
  const now = axis.peek();
  if (now === null) return;
  const [from, to] = clamp(now, t0, t1);
  batch(() => {
    pinned.value = from <= now.start && to >= now.end;
    write([from, to]);
  });
}

/** Nearer (`factor` below 1) or farther, around `x` or else around the playhead, or the middle where it is not seen. */
export function zoomBy(factor: number, x?: number): void {
  const now = projection.peek();
  if (now === null) return;
  const head = toX(now, playhead.peek());
  const at = x ?? (head >= 0 && head <= now.width ? head : now.width / 2);
  show(...zoom(now, at, factor));
}

/** Moves the view by a part of its width: 0.2 is a fifth to later times. */
export function panBy(part: number): void {
  const now = projection.peek();
  if (now !== null) show(...pan(now, part * now.width));
}

export function panPixels(dx: number): void {
  const now = projection.peek();
  if (now !== null) show(...pan(now, dx));
}

/** Fits the view to the step under the playhead, with some room on both sides. */
export function fit(): void {
  const now = outline.peek();
  const at = step.peek();
  if (now === null || at < 0 || at >= now.steps.length) return;
  const t0 = now.steps.t0(at),
    t1 = Math.max(now.steps.t1(at), t0 + 1e6);
  const room = (t1 - t0) * 0.15;
  show(t0 - room, t1 + room);
}

export function showWhole(): void {
  pinned.value = true;
}

export function toggleFold(): void {
  folded.value = !folded.peek();
  opened.value = new Set();
}

/** Opens the closed gap that begins at `from`, or closes it again. The view stays on its neighbourhood. */
export function toggleGap(from: number): void {
  const next = new Set(opened.peek());
  if (!next.delete(from)) next.add(from);
  opened.value = next;
}

/** The same for the keyboard: the gap that the playhead stands in or nearest to. */
export function toggleNearestGap(): void {
  const now = axis.peek();
  if (now === null) return;
  const n = nearestGap(now, playhead.peek());
  const from = n >= 0 ? now.from[n] : [...opened.peek()][0];
  if (from !== undefined) toggleGap(from);
}

/** The time a part of the picture's width beside the playhead: as far on the screen at every zoom, across gaps too. */
export function timeBeside(part: number): number {
  const now = projection.peek();
  return now === null ? playhead.peek() : toT(now, toX(now, playhead.peek()) + part * now.width);
}

/** The time under `x` pixels of the plot. */
export function timeAt(x: number): number {
  const now = projection.peek();
  return now === null ? 0 : toT(now, Math.min(Math.max(x, 0), now.width));
}

/** What this file wrote into `view` itself; anything else came from a link or another pane. */
let written: readonly [number, number] = view.peek();

function write(next: [number, number]): void {
  written = next;
  view.value = next;
}

let last: unknown = null;
/** Keeps the signal `view` at what is seen, and forgets what belonged to the run before. */
effect(() => {
  const now = run.value?.outline ?? null;
  const [from, to] = view.value;
  const isNew = now !== last;
  last = now;
  if (isNew) opened.value = new Set();
  if (now !== null && (isNew || view.value !== written)) {
    const all = from <= now.span[0] && to >= now.span[1];
    const untouched = isNew && view.value === written;
    // A window of the same width was moved after the playhead: of a run that grows, all of it stays in view.
    const moved = !isNew && Math.abs(to - from - (written[1] - written[0])) < 1;
    pinned.value = all || untouched || (moved && pinned.peek());
    written = view.value;
  }
  const next = shown.value;
  if (now !== null && (next[0] !== from || next[1] !== to)) write(next);
});
