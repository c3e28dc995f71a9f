/**
 * Which steps the list shows, and how many there are of each: all, failed, denied, with notes.
 *
 * The counts are kept while the outline grows. Only what may still change is looked at again, so that a run of a
 * million steps costs its new ones alone.
 */
import { computed } from "@preact/signals";
import { Status, type Outline } from "../core/types";
import { filter, run, version } from "./app";
import { standing } from "./notes";

interface Facets {
  failed: number[];
  denied: number[];
  /** Steps before this one have ended. */
  settled: number;
}

const kept = new WeakMap<Outline, Facets>();

/** Steps that failed, and those in which something was denied, in order. A step may be both. */
export function facets(outline: Outline): { failed: readonly number[]; denied: readonly number[] } {
  const { steps } = outline;
  const known = kept.get(outline) ?? { failed: [], denied: [], settled: 0 };
  kept.set(outline, known);
  cut(known.failed, known.settled);
  cut(known.denied, known.settled);
  let settled = known.settled;
  for (let i = known.settled; i < steps.length; i++) {
    const status = steps.status(i);
    if (status === Status.failed) known.failed.push(i);
    if (status === Status.denied || steps.denied(i) > 0) known.denied.push(i);
    // The last step may still be given rows, whatever its state.
    if (settled === i && status !== Status.running && (i < steps.length - 1 || outline.done)) settled = i + 1;
  }
  known.settled = settled;
  return known;
}

/** Failed or denied: where N and P go. */
export function problems(outline: Outline): number[] {
  const { failed, denied } = facets(outline);
  return [...new Set([...failed, ...denied])].sort((a, b) => a - b);
}

/** Steps with a note, in order. */
export const noted = computed<number[]>(() => {
  void version.value;
  const open = run.value;
  if (open === null) return [];
  const found = new Set<number>();
  for (const note of standing(open.annotations)) found.add(Math.max(0, open.outline.steps.of(note.seq)));
  return [...found].sort((a, b) => a - b);
});

export const counts = computed(() => {
  void version.value;
  const outline = run.value?.outline;
  if (!outline) return { all: 0, failed: 0, denied: 0, notes: 0 };
  const { failed, denied } = facets(outline);
  return { all: outline.steps.length, failed: failed.length, denied: denied.length, notes: noted.value.length };
});

/** The steps of the list by their place in it; null stands for all of them. */
export const listed = computed<readonly number[] | null>(() => {
  void version.value;
  const outline = run.value?.outline;
  if (!outline || filter.value === "all") return null;
  if (filter.value === "notes") return noted.value;
  return [...facets(outline)[filter.value]];
});

/** Place of the first entry of the ascending `sorted` that is at least `value`. */
export function placeOf(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function cut(list: number[], from: number): void {
  list.length = placeOf(list, from);
}
