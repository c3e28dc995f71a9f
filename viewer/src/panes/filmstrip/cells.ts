/**
 * Which steps the filmstrip shows: at most as many as there is room for, spread evenly over what the timeline shows.
 *
 * A cell stands for the steps up to the next cell. Of these it shows the one that failed or was denied something, if
 * any: a strip that hides the failure between two pictures would be no map.
 */
import type { Outline } from "../../core/types";
import { facets } from "../../state/filter";

export interface Cell {
  /** The step whose picture is shown, and where a click goes. */
  step: number;
  from: number;
  to: number;
  /** Row of the screenshot; -1 where none was taken so far. */
  screenshot: number;
  failed: boolean;
  denied: boolean;
}

export const MOST = 20;

/** How many cells a strip of that many pixels has. */
export function room(width: number): number {
  return Math.min(MOST, Math.max(1, Math.floor((width + 6) / 98)));
}

export function cells(outline: Outline, [from, to]: readonly [number, number], most: number): Cell[] {
  const { steps } = outline;
  // The step that was under way when the window begins is seen in it.
  const first = Math.max(0, firstBehind(outline, from) - 1);
  const end = firstBehind(outline, to);
  const count = end - first;
  if (count <= 0) return [];
  const { failed, denied } = facets(outline);
  const number = Math.min(most, count);
  const found: Cell[] = [];
  for (let k = 0; k < number; k += 1) {
    const begin = first + Math.floor((k * count) / number);
    const stop = first + Math.floor(((k + 1) * count) / number);
    const bad = firstIn(failed, begin, stop);
    const refused = firstIn(denied, begin, stop);
    const step = bad >= 0 ? bad : refused >= 0 ? refused : begin;
    const screenshot = steps.screenshot(step);
    const last = found.at(-1);
    const marked = bad >= 0 || refused >= 0;
    // Steps that changed nothing on the screen share its picture; a mark is worth a cell of its own.
    if (last !== undefined && last.screenshot === screenshot && !marked && !last.failed && !last.denied) {
      last.to = stop;
    } else {
      found.push({ step, from: begin, to: stop, screenshot, failed: bad >= 0, denied: refused >= 0 });
    }
  }
  return found;
}

/** The first step that begins behind `t`. */
function firstBehind({ steps }: Outline, t: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (steps.t0(middle) <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first of `sorted` in [from, to); -1 for none. */
function firstIn(sorted: readonly number[], from: number, to: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < from) low = middle + 1;
    else high = middle;
  }
  const found = sorted[low];
  return found !== undefined && found < to ? found : -1;
}
