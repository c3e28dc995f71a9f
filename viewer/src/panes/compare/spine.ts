/**
 * The spine: aligned steps of two runs, one row a pair, and the maps between its rows and the steps of both sides.
 *
 * One playhead goes through it: a step of the left run has a row, and the row has the step of the right run that was
 * the same, or the last one before it.
 */

export const Relation = { same: 0, changed: 1, left: 2, right: 3 } as const;
export type RelationCode = (typeof Relation)[keyof typeof Relation];

export interface Spine {
  length: number;
  /** The step of each side, -1 where it has none. */
  left: Int32Array;
  right: Int32Array;
  relation: Uint8Array;
  /** The first row that is not the same; -1 where all are. */
  first: number;
  /** Rows of each relation. */
  counts: [number, number, number, number];
  /** Rows of the steps of each side. */
  rowOfLeft: Int32Array;
  rowOfRight: Int32Array;
}

/**
 * Makes the spine of pairs in order (-1: no step on that side). `changed` says of a pair whether it did another thing in
 * the same place. The first `shared` rows are steps that one side took over from the other: the same, without a pair.
 */
export function makeSpine(
  pairs: { readonly left: ArrayLike<number>; readonly right: ArrayLike<number> },
  lefts: number,
  rights: number,
  changed: (left: number, right: number, row: number) => boolean,
  shared = 0,
): Spine {
  const length = pairs.left.length;
  const left = Int32Array.from(pairs.left),
    right = Int32Array.from(pairs.right),
    relation = new Uint8Array(length);
  const rowOfLeft = new Int32Array(lefts).fill(-1),
    rowOfRight = new Int32Array(rights).fill(-1);
  const counts: Spine["counts"] = [0, 0, 0, 0];
  let first = -1;
  for (let row = 0; row < length; row++) {
    const a = left[row] ?? -1,
      b = right[row] ?? -1;
    const alone = row < shared ? Relation.same : a < 0 ? Relation.right : Relation.left;
    const is = a < 0 || b < 0 ? alone : changed(a, b, row) ? Relation.changed : Relation.same;
    relation[row] = is;
    counts[is] += 1;
    if (a >= 0) rowOfLeft[a] = row;
    if (b >= 0) rowOfRight[b] = row;
    if (first < 0 && is !== Relation.same) first = row;
  }
  return { length, left, right, relation, first, counts, rowOfLeft, rowOfRight };
}

/** The step of a side at `row`: its own, or the last one before; -1 before the first. */
export function stepAt(side: Int32Array, row: number): number {
  for (let at = Math.min(row, side.length - 1); at >= 0; at--) {
    const step = side[at] ?? -1;
    if (step >= 0) return step;
  }
  return -1;
}

/** The next (1) or previous (-1) row from `row` on that is not the same; -1 where there is none. */
export function nextDifference(spine: Spine, row: number, direction: 1 | -1): number {
  for (let at = row + direction; at >= 0 && at < spine.length; at += direction)
    if (spine.relation[at] !== Relation.same) return at;
  return -1;
}

/** What the list shows: rows, and stretches of rows that are all the same and folded into one. */
export type Shown = { row: number } | { from: number; to: number; key: number };

/** Rows around a difference that stay open. */
const AROUND = 2;
/** Shorter stretches are not worth folding. */
const SHORTEST = 4;

/** The rows with long same stretches folded, those in `open` (by their key) aside. `keep` is never folded away. */
export function folded(spine: Spine, open: ReadonlySet<number>, keep: number): Shown[] {
  const shown: Shown[] = [];
  let row = 0;
  while (row < spine.length) {
    if (spine.relation[row] !== Relation.same) {
      shown.push({ row: row++ });
      continue;
    }
    let end = row;
    while (end < spine.length && spine.relation[end] === Relation.same) end += 1;
    const from = row === 0 ? row : Math.min(row + AROUND, end),
      to = end === spine.length ? end : Math.max(end - AROUND, from);
    if (to - from < SHORTEST || open.has(from)) {
      for (; row < end; row++) shown.push({ row });
      continue;
    }
    for (; row < from; row++) shown.push({ row });
    if (keep >= from && keep < to) {
      if (keep > from) shown.push({ from, to: keep, key: from });
      shown.push({ row: keep });
      if (keep + 1 < to) shown.push({ from: keep + 1, to, key: from });
    } else {
      shown.push({ from, to, key: from });
    }
    for (row = to; row < end; row++) shown.push({ row });
  }
  return shown;
}

/** The place in the list that shows `row`. */
export function placeOf(shown: readonly Shown[], row: number): number {
  let low = 0,
    high = shown.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const one = shown[middle];
    const last = one === undefined ? -1 : "row" in one ? one.row : one.to - 1;
    if (last < row) low = middle + 1;
    else high = middle;
  }
  return low < shown.length ? low : -1;
}
