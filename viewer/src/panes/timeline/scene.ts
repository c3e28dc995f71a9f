/**
 * One picture of the lanes as shapes with places: what `paint.ts` draws and `hit.ts` finds under the pointer.
 *
 * Pure: from tracks and a projection. Its size is bounded by the width of the picture.
 */
import { type Projection, lowerBound, toX } from "../../core/axis";
import { PERMISSIONS } from "../../core/types";
import { type Bar, type Cluster, bars, clusters } from "./columns";
import { type Extras, type Lane, layLanes } from "./lanes";
import type { Study } from "./study";
import { type PointTrack, SIGNS, type Sign, type Tracks } from "./tracks";

/** A permission sign: its word, its row in the lane (0 the middle, -1 above, 1 below), its radius, and how far it stands aside. */
export interface PlacedPermission extends Cluster {
  word: number;
  row: number;
  r: number;
  aside: number;
}

export interface PlacedSign extends Cluster {
  sign: Sign | "note";
}

export interface BreakBox {
  x0: number;
  x1: number;
  from: number;
  to: number;
  /** A gap that was opened and can be closed again. */
  open: boolean;
}

export interface Scene {
  tracks: Tracks;
  projection: Projection;
  lanes: Lane[];
  height: number;
  /** By lane: steps per part, then tools, decisions, network. */
  steps: Bar[][];
  tools: Bar[];
  decisions: Bar[];
  network: Bar[];
  permissions: PlacedPermission[];
  console: { level: number; clusters: Cluster[] }[];
  signs: PlacedSign[];
  breaks: BreakBox[];
  ticks: { x: number; t: number }[];
  video: { x0: number; x1: number }[];
  curve: { x: number; v: number; lo: number; hi: number }[];
  drops: { x: number; v: number; step: number; drop: number; lo: number; hi: number }[];
}

/** What stands beside the tracks: places in time of notes, of the video's tracks, and the study's points. */
export interface Beside {
  notes: PointTrack;
  video: { t0: number; t1: number }[];
  study: Study | null;
  timeOf: (step: number) => number;
}

export const PERMISSION_ROW = 11;
/** From worst to calmest, an answer before what was asked: who is placed first stands in the middle. */
const PLACE_FIRST = ["denied", "escalated", "revoked", "granted", "auto_approved", "requested"] as const;
/** At most so many boxes of breaks; more are drawn as part of the picture only. */
const MOST_BREAKS = 400;

export function makeScene(
  tracks: Tracks,
  projection: Projection,
  beside: Beside,
  openGaps: readonly (readonly [number, number])[],
): Scene {
  const extras: Extras = {
    notes: beside.notes.length > 0,
    video: beside.video.length > 0,
    study: beside.study !== null,
  };
  const { lanes, height } = layLanes(tracks, extras);
  const at = (t: number): number => toX(projection, t);
  return {
    tracks,
    projection,
    lanes,
    height,
    steps: tracks.steps.map((part) => bars(part.track, projection)),
    tools: bars(tracks.tools, projection),
    decisions: bars(tracks.decisions, projection),
    network: bars(tracks.network, projection),
    permissions: placePermissions(tracks.permissions, projection),
    console: tracks.console.map((track, level) => ({
      level,
      clusters: clusters(track, projection, level === 0 ? 4 : 7),
    })),
    signs: placeSigns(tracks, beside.notes, projection),
    breaks: [
      ...closedBreaks(projection),
      ...openGaps.map(([from, to]) => ({ x0: at(from), x1: at(to), from, to, open: true })),
    ].filter((box) => box.x1 > 0 && box.x0 < projection.width),
    ticks: ticks(projection),
    video: beside.video.map(({ t0, t1 }) => ({ x0: at(t0), x1: at(t1) })),
    curve: placeCurve(beside, projection),
    drops: (beside.study?.certified ?? []).map((drop) => ({
      ...drop,
      x: at(beside.timeOf(drop.step)),
      v: beside.study?.curve.find((point) => point.i === drop.step)?.v ?? 0,
    })),
  };
}

/**
 * Every permission of the picture as a sign. Near ones of one word are one sign with their count; those of different
 * words stand above and below each other, the worst in the middle; where three rows are full the calm become small.
 */
export function placePermissions(tracks: readonly PointTrack[], projection: Projection): PlacedPermission[] {
  const taken = [-1, 0, 1].map(() => new Uint8Array(Math.ceil(projection.width) + 2 * EDGE));
  const cells = (x0: number, x1: number): [number, number] => [
    Math.max(0, Math.floor(x0) + EDGE),
    Math.max(0, Math.floor(x1) + EDGE + 1),
  ];
  const free = (row: number, x0: number, x1: number): boolean =>
    !taken[row + 1]?.subarray(...cells(x0, x1)).includes(1);
  const take = (row: number, x0: number, x1: number): void => void taken[row + 1]?.fill(1, ...cells(x0, x1));
  const placed: PlacedPermission[] = [];
  for (const name of PLACE_FIRST) {
    const word = PERMISSIONS.indexOf(name);
    const track = tracks[word];
    if (!track) continue;
    const large = name === "denied" ? 9 : 6;
    for (const cluster of roomy(track, projection, large * 2)) {
      const badge = badgeWidth(cluster.count);
      const spot = spotsOf(large).find(({ row, r, aside }) =>
        free(row, cluster.x + aside - r, cluster.x + aside + r + badge),
      );
      // Three rows are full here: a dot is still a sign of its own.
      const { row, r, aside } = spot ?? { row: word % 2 === 0 ? -1 : 1, r: 3, aside: 0 };
      const x = cluster.x + aside;
      take(row, x - r, x + r + (spot ? badge : 0));
      if (row === 0 && large > 6) (take(-1, x - 4, x + 4), take(1, x - 4, x + 4));
      placed.push({ ...cluster, word, row, r, aside });
    }
  }
  return placed;
}

/** Where a sign may stand, the best place first: in the middle, above, below, or a little aside of these. */
function spotsOf(large: number): { row: number; r: number; aside: number }[] {
  return [
    { row: 0, r: large, aside: 0 },
    { row: -1, r: 5.2, aside: 0 },
    { row: 1, r: 5.2, aside: 0 },
    ...[-10, 10].flatMap((aside) => [-1, 1].map((row) => ({ row, r: 4.8, aside }))),
  ];
}

/** Room left of the first and right of the last pixel, for signs that stand half outside. */
const EDGE = 40;

/** Pixels of the count beside a sign. */
function badgeWidth(count: number): number {
  return count < 2 ? 0 : 2 + 6 * String(count > 9999 ? "99k" : count).length;
}

/** Clusters that leave room for their counts, where most of them have one. */
function roomy(track: PointTrack, projection: Projection, size: number): Cluster[] {
  const near = clusters(track, projection, size);
  const counted = near.reduce((n, cluster) => n + (cluster.count > 1 ? 1 : 0), 0);
  return counted * 2 < near.length ? near : clusters(track, projection, size + badgeWidth(10));
}

/** The curve with at most one point a pixel: its last value, and the widest band. One point beyond each edge stays. */
function placeCurve(beside: Beside, projection: Projection): Scene["curve"] {
  const curve = beside.study?.curve ?? [];
  const placed: Scene["curve"] = [];
  for (const point of curve) {
    const x = toX(projection, beside.timeOf(point.i));
    const { v, lo, hi } = point;
    const before = placed[placed.length - 1];
    if (before && (x < 0 || Math.floor(x) === Math.floor(before.x))) {
      placed[placed.length - 1] =
        x < 0 ? { x, v, lo, hi } : { x, v, lo: Math.min(lo, before.lo), hi: Math.max(hi, before.hi) };
    } else {
      placed.push({ x, v, lo, hi });
    }
    if (x > projection.width) break;
  }
  return placed;
}

function placeSigns(tracks: Tracks, notes: PointTrack, projection: Projection): PlacedSign[] {
  const found: PlacedSign[] = [];
  for (const sign of SIGNS) {
    for (const cluster of roomy(tracks.signs[sign], projection, 11)) found.push({ ...cluster, sign });
  }
  for (const cluster of clusters(notes, projection, 11)) found.push({ ...cluster, sign: "note" });
  return found;
}

function closedBreaks(projection: Projection): BreakBox[] {
  const { axis, t0, t1 } = projection;
  const found: BreakBox[] = [];
  for (let n = lowerBound(axis.to, t0); n < axis.from.length && found.length < MOST_BREAKS; n++) {
    const from = axis.from[n] ?? 0,
      to = axis.to[n] ?? 0;
    if (from > t1) break;
    found.push({ x0: toX(projection, from), x1: toX(projection, to), from, to, open: false });
  }
  return found;
}

const STEPS_NS = [
  1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10, 1.5e10, 3e10, 6e10, 1.2e11, 3e11,
  6e11, 9e11, 1.8e12, 3.6e12, 7.2e12, 1.08e13, 2.16e13, 4.32e13, 8.64e13, 1.728e14, 4.32e14, 8.64e14,
];

/** Round times at least 90 pixels from each other; none inside a closed gap. */
export function ticks(projection: Projection): { x: number; t: number }[] {
  const { axis, scale, t0, t1, width } = projection;
  const every = STEPS_NS.find((step) => step * scale >= 90) ?? 8.64e14;
  const found: { x: number; t: number }[] = [];
  let t = Math.ceil(t0 / every) * every;
  let before = -Infinity;
  while (t <= t1 && found.length < width / 40) {
    const n = lowerBound(axis.from, t);
    const until = n > 0 ? (axis.to[n - 1] ?? 0) : 0;
    if (t < until) {
      t = Math.ceil(until / every) * every;
      continue;
    }
    const x = toX(projection, t);
    if (x - before >= 60) {
      found.push({ x, t });
      before = x;
    }
    t += every;
  }
  return found;
}
