/**
 * The folded time axis: gaps in which nothing happened become breaks of a fixed width, everything else keeps its scale.
 *
 * Two functions of time carry it: `active` (nanoseconds outside of closed gaps) and `breaks` (closed gaps passed, and
 * the part of the one we stand in). Both are piecewise linear and never fall, and where one rests the other rises. A
 * place on the screen is `active * scale + breaks * breakWidth`, so it rises with time, and has an inverse.
 */
import type { Outline } from "./types";

/** From here on a pause is a gap. */
export const GAP_NS = 5e9;
/** Pixels of a break, where there is room. */
export const BREAK_PX = 64;
/** All breaks together take at most this part of the picture. */
const BREAKS_SHARE = 0.4;
/** Nobody zooms deeper than to this much active time. */
export const NARROWEST_NS = 1e5;

/** Gaps in order, `[from, to, from, to, ...]`, and those that are closed now. */
export interface Axis {
  readonly start: number;
  readonly end: number;
  readonly gaps: Float64Array;
  readonly from: Float64Array;
  readonly to: Float64Array;
  /** Time that the closed gaps before number `n` hold together; one more entry than gaps. */
  readonly held: Float64Array;
}

/** What of the axis is seen, and how large. */
export interface Projection {
  readonly axis: Axis;
  readonly t0: number;
  readonly t1: number;
  readonly width: number;
  /** Pixels a nanosecond of active time, and pixels a break. */
  readonly scale: number;
  readonly breakPx: number;
  readonly origin: number;
}

/** The pauses of more than `threshold`: nothing lasts in them, nothing happens in them. */
export function findGaps(outline: Outline, threshold: number = GAP_NS): Float64Array {
  const { steps, spans, marks } = outline;
  const ends = new Float64Array(steps.length);
  for (let i = 0; i < steps.length; i++) ends[i] = steps.t1(i);
  ends.sort();
  const found: number[] = [];
  let until = outline.span[0];
  const meet = (from: number, to: number): void => {
    if (from - until > threshold) found.push(until, from);
    if (to > until) until = to;
  };
  let s = 0,
    p = 0,
    m = 0,
    e = 0;
  for (;;) {
    const ts = s < steps.length ? steps.t0(s) : Infinity;
    const tp = p < spans.length ? spans.t0(p) : Infinity;
    const tm = m < marks.length ? marks.t(m) : Infinity;
    const te = e < ends.length ? (ends[e] ?? Infinity) : Infinity;
    const next = Math.min(ts, tp, tm, te);
    if (!(next < Infinity)) break;
    if (next === ts) (meet(ts, ts), s++);
    else if (next === tp) (meet(tp, spans.t1(p)), p++);
    else if (next === tm) (meet(tm, tm), m++);
    else (meet(te, te), e++);
  }
  meet(outline.span[1], outline.span[1]);
  return Float64Array.from(found);
}

/** The axis over `span`. A gap is open where `isOpen` says so of its start. */
export function makeAxis(span: readonly [number, number], gaps: Float64Array, isOpen: (from: number) => boolean): Axis {
  const from: number[] = [],
    to: number[] = [],
    held = [0];
  for (let i = 0; i + 1 < gaps.length; i += 2) {
    const a = gaps[i] ?? 0,
      b = gaps[i + 1] ?? 0;
    if (isOpen(a) || a < span[0] || b > span[1]) continue;
    from.push(a);
    to.push(b);
    held.push((held[held.length - 1] ?? 0) + (b - a));
  }
  return {
    start: span[0],
    end: Math.max(span[1], span[0] + 1),
    gaps,
    from: Float64Array.from(from),
    to: Float64Array.from(to),
    held: Float64Array.from(held),
  };
}

/** The first place in the ascending `sorted` whose value is at least `value`; its length where there is none. */
export function lowerBound(sorted: { readonly length: number; readonly [i: number]: number }, value: number): number {
  let low = 0,
    high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? Infinity) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Nanoseconds from the axis' start to `t`, without those in closed gaps. */
export function active(axis: Axis, t: number): number {
  const n = lowerBound(axis.from, t);
  // Inside of a gap it rests, exactly: a difference of two places there must be 0.
  if (n > 0 && t < (axis.to[n - 1] ?? 0)) return (axis.from[n - 1] ?? 0) - axis.start - (axis.held[n - 1] ?? 0);
  return t - axis.start - (axis.held[n] ?? 0);
}

/** The time at which so much active time has passed: the last such moment before a gap, or the first one behind it. */
function atActive(axis: Axis, time: number, behind: boolean): number {
  let low = 0,
    high = axis.from.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const border = (axis.from[middle] ?? 0) - axis.start - (axis.held[middle] ?? 0);
    if (behind ? border <= time : border < time) low = middle + 1;
    else high = middle;
  }
  return axis.start + time + (axis.held[low] ?? 0);
}

/** Closed gaps before `t`, with the part that `t` has of its own. */
export function breaks(axis: Axis, t: number): number {
  const n = lowerBound(axis.from, t);
  if (n === 0) return 0;
  const from = axis.from[n - 1] ?? 0,
    to = axis.to[n - 1] ?? 0;
  return t >= to ? n : n - 1 + (t - from) / (to - from);
}

/** Shows `[t0, t1]` on `width` pixels. */
export function project(axis: Axis, t0: number, t1: number, width: number): Projection {
  const time = active(axis, t1) - active(axis, t0);
  const broken = breaks(axis, t1) - breaks(axis, t0);
  const room = Math.max(width, 1);
  const breakPx =
    broken === 0 ? BREAK_PX : time <= 0 ? room / broken : Math.min(BREAK_PX, (room * BREAKS_SHARE) / broken);
  const scale = time > 0 ? (room - broken * breakPx) / time : room / Math.max(t1 - t0, 1);
  return { axis, t0, t1, width: room, scale, breakPx, origin: active(axis, t0) * scale + breaks(axis, t0) * breakPx };
}

/** Pixels from the left edge of the picture to `t`; outside of it where `t` is. */
export function toX(projection: Projection, t: number): number {
  const { axis, scale, breakPx, origin } = projection;
  const n = lowerBound(axis.from, t);
  if (n === 0) return (t - axis.start) * scale - origin;
  const from = axis.from[n - 1] ?? 0,
    to = axis.to[n - 1] ?? 0;
  if (t >= to) return (t - axis.start - (axis.held[n] ?? 0)) * scale + n * breakPx - origin;
  const done = (t - from) / (to - from);
  return (from - axis.start - (axis.held[n - 1] ?? 0)) * scale + (n - 1 + done) * breakPx - origin;
}

/** The time at `x` pixels: the inverse of `toX`, kept within the run. */
export function toT(projection: Projection, x: number): number {
  const { axis, scale, breakPx, origin } = projection;
  const place = x + origin;
  let low = 0,
    high = axis.from.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = ((axis.from[middle] ?? 0) - axis.start - (axis.held[middle] ?? 0)) * scale + middle * breakPx;
    if (at < place) low = middle + 1;
    else high = middle;
  }
  const n = low;
  let t: number;
  if (n === 0) {
    t = axis.start + place / scale;
  } else {
    const from = axis.from[n - 1] ?? 0,
      to = axis.to[n - 1] ?? 0;
    const past = place - ((from - axis.start - (axis.held[n - 1] ?? 0)) * scale + (n - 1) * breakPx);
    t = past < breakPx ? from + (past / breakPx) * (to - from) : to + (past - breakPx) / scale;
  }
  return Math.min(Math.max(t, axis.start), axis.end);
}

/** The whole run. */
export function whole(axis: Axis): [number, number] {
  return [axis.start, axis.end];
}

/** The view moved by `dx` pixels at the same scale, stopped at the ends of the run. */
export function pan(projection: Projection, dx: number): [number, number] {
  const { axis, width } = projection;
  const left = toX(projection, axis.start),
    right = toX(projection, axis.end) - width;
  const by = Math.min(Math.max(dx, Math.min(left, 0)), Math.max(right, 0));
  if (by === 0) return [projection.t0, projection.t1];
  return [by === left ? axis.start : toT(projection, by), by === right ? axis.end : toT(projection, width + by)];
}

/** The view zoomed by `factor` (below 1: nearer); what is at `x` stays there as far as the ends of the run allow. */
export function zoom(projection: Projection, x: number, factor: number): [number, number] {
  const { axis, width, breakPx } = projection;
  const all = whole(axis);
  const deepest = width / NARROWEST_NS;
  const scale = Math.min(projection.scale / factor, Math.max(deepest, projection.scale));
  const full = active(axis, all[1]) * scale + axis.from.length * breakPx;
  if (full <= width) return all;
  const anchor = toT(projection, x);
  const at = active(axis, anchor) * scale + breaks(axis, anchor) * breakPx;
  const origin = Math.min(Math.max(at - x, 0), full - width);
  const next: Projection = { ...projection, scale, origin };
  return [origin === 0 ? axis.start : toT(next, 0), origin === full - width ? axis.end : toT(next, width)];
}

/**
 * `[t0, t1]` as a view: in order, within the run, and with some active time in it. A window inside of a folded gap would
 * show nothing: it grows beyond its edges.
 */
export function clamp(axis: Axis, t0: number, t1: number): [number, number] {
  const from = Math.min(Math.max(Math.min(t0, t1), axis.start), axis.end);
  const to = Math.min(Math.max(Math.max(t0, t1), axis.start), axis.end);
  const all = active(axis, axis.end);
  const least = Math.min(NARROWEST_NS, all);
  const a = active(axis, from),
    b = active(axis, to);
  if (b - a >= least) return [from, to];
  const begin = Math.min(Math.max((a + b - least) / 2, 0), all - least);
  return [
    Math.min(from, atActive(axis, begin, false)),
    Math.max(to, Math.min(atActive(axis, begin + least, true), axis.end)),
  ];
}

/** The closed gap that `t` stands in or nearest to; -1 where none is closed. */
export function nearestGap(axis: Axis, t: number): number {
  const n = lowerBound(axis.from, t);
  if (axis.from.length === 0) return -1;
  if (n === 0) return 0;
  if (n === axis.from.length) return n - 1;
  return t - (axis.to[n - 1] ?? 0) <= (axis.from[n] ?? 0) - t ? n - 1 : n;
}
