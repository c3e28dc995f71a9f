/**
 * From tracks to pixels: what begins in the same column becomes one bar, what is too near becomes one sign with a count.
 *
 * Nothing is lost by that. A bar carries how many entries it holds and how many of them went wrong, a cluster its count;
 * the sum over a picture is what the picture shows. Permissions are clustered word by word, so that a denial never
 * stands behind a grant.
 */
import { type Projection, lowerBound, toT, toX } from "../../core/axis";
import { BLOCK, type PointTrack, type SpanTrack, Tone, type ToneCode } from "./tracks";

/** One drawn bar. `first` and `count` say which entries of the track it holds. */
export interface Bar {
  x0: number;
  x1: number;
  first: number;
  count: number;
  /** The worst among them, and how many have it. */
  tone: ToneCode;
  worst: number;
}

/** One drawn sign: `count` entries of the track from `first` on, all of one sort. */
export interface Cluster {
  x: number;
  first: number;
  count: number;
}

/** So many entries that began before the picture are looked at one by one. */
const MOST_BEFORE = 512;
const BY_WORST: readonly ToneCode[] = [Tone.failed, Tone.denied, Tone.refused, Tone.unknown, Tone.running, Tone.note];

/** The bars of what is seen, from left to right by their start. `column` pixels wide are the columns. */
export function bars(track: SpanTrack, projection: Projection, column = 1): Bar[] {
  const found: Bar[] = [];
  const { t0: from, t1: to, width } = projection;
  let i = firstReaching(track, from);
  const end = lowerBound(track.t0, to + 1);
  // What began before the left edge and still lasts: the entries between, each that reaches into the picture.
  const left = lowerBound(track.t0, from);
  if (left - i > MOST_BEFORE) {
    found.push(bar(track, projection, i, left));
  } else {
    for (; i < left; i++) if ((track.t1[i] ?? 0) >= from) found.push(bar(track, projection, i, i + 1));
  }
  i = Math.max(i, left);
  while (i < end) {
    const x = toX(projection, track.t0[i] ?? 0);
    // A pixel more: what stands at the very end may be off by a rounding.
    if (x > width + 1) break;
    const border = toT(projection, Math.floor(x / column + 1) * column);
    const next = Math.max(i + 1, lowerBound(track.t0, border));
    found.push(bar(track, projection, i, Math.min(next, end)));
    i = next;
  }
  return found;
}

/** The first entry from which on some reach `t` or further. */
function firstReaching(track: SpanTrack, t: number): number {
  return lowerBound(track.reach, t);
}

function bar(track: SpanTrack, projection: Projection, first: number, next: number): Bar {
  let tone: ToneCode = Tone.plain,
    worst = next - first;
  for (const candidate of BY_WORST) {
    const counts = track.counts[candidate];
    const n = counts ? (counts[next] ?? 0) - (counts[first] ?? 0) : 0;
    if (n > 0) {
      tone = candidate;
      worst = n;
      break;
    }
  }
  return {
    x0: toX(projection, track.t0[first] ?? 0),
    x1: toX(projection, latest(track, first, next)),
    first,
    count: next - first,
    tone,
    worst,
  };
}

/** The latest end among the entries `first` to `next`. */
export function latest(track: SpanTrack, first: number, next: number): number {
  let until = -Infinity;
  let n = first;
  while (n < next) {
    if (n % BLOCK === 0 && n + BLOCK <= next) {
      until = Math.max(until, track.blocks[n / BLOCK] ?? -Infinity);
      n += BLOCK;
    } else {
      until = Math.max(until, track.t1[n] ?? -Infinity);
      n += 1;
    }
  }
  return until;
}

/** The signs of what is seen: entries nearer than `size` pixels to the first of a cluster join it. */
export function clusters(track: PointTrack, projection: Projection, size: number): Cluster[] {
  const found: Cluster[] = [];
  const margin = size / projection.scale;
  let i = lowerBound(track.t, projection.t0 - margin);
  const end = lowerBound(track.t, projection.t1 + margin);
  while (i < end) {
    const x = toX(projection, track.t[i] ?? 0);
    const next = Math.max(i + 1, firstFrom(track, projection, i, end, x + size));
    found.push({ x, first: i, count: next - i });
    i = next;
  }
  return found;
}

/** The first entry of `low` to `high` that stands at `x` or further right. Searched in pixels: the edges may be clamped. */
function firstFrom(track: PointTrack, projection: Projection, low: number, high: number, x: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (toX(projection, track.t[middle] ?? 0) < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Entries a column of `column` pixels: the minimap's heights. */
export function density(times: Float64Array, projection: Projection, column: number): Float64Array {
  const n = Math.max(1, Math.ceil(projection.width / column));
  const counts = new Float64Array(n);
  let before = lowerBound(times, projection.t0);
  for (let k = 0; k < n; k++) {
    const last = k === n - 1;
    const next = last ? lowerBound(times, projection.t1 + 1) : lowerBound(times, toT(projection, (k + 1) * column));
    counts[k] = Math.max(0, next - before);
    before = Math.max(before, next);
  }
  return counts;
}
