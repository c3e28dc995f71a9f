/**
 * Two runs side by side: which step of one is which step of the other. Myers' greedy difference over step keys.
 *
 * Steps are the same by lane, action and its telling arguments, ids and dates aside; between those, steps of the same action in the same place are
 * pairs whose arguments changed. Two independent runs get a difference, not a cause.
 */
import { Mark, type Outline, PERMISSIONS } from "./types";
import { settled } from "./volatile";

/** One row of the spine each: the step of either side, -1 where it has none. */
export interface Alignment {
  left: Int32Array;
  right: Int32Array;
  /** 1 where both keys are the same. */
  exact: Uint8Array;
  /** The first row that is not; -1 where all are. */
  first: number;
  /** Rows at which both did the same thing that ties the runs together. */
  anchors: { row: number; what: "permission" | "screen" }[];
}

/** The keys of one run's steps: `whole` with the telling arguments, `action` without. */
export interface Keys {
  whole: string[];
  action: string[];
}

export function keysOf(outline: Outline): Keys {
  const whole: string[] = [],
    action: string[] = [],
    { steps, lanes } = outline;
  for (let i = 0; i < steps.length; i++) {
    const key = `${lanes[steps.lane(i)] ?? ""}\0${steps.name(i)}`;
    action.push(key);
    // What an answer said differs between any two runs; that it was one is what it did.
    whole.push(steps.name(i).startsWith("(") ? key : `${key}\0${settled(steps.detail(i))}`);
  }
  return { whole, action };
}

/** Align by keys alone: what a worker does. */
export function pairs(left: Keys, right: Keys): Omit<Alignment, "anchors"> {
  const rows: [number, number, number][] = [];
  const hunk = { left: [] as number[], right: [] as number[] };
  const flush = (): void => {
    rows.push(...byAction(hunk.left, hunk.right, left.action, right.action));
    hunk.left = [];
    hunk.right = [];
  };
  for (const [a, b] of difference(numbered(left.whole, right.whole))) {
    if (a >= 0 && b >= 0) {
      flush();
      rows.push([a, b, 1]);
    } else if (a >= 0) hunk.left.push(a);
    else hunk.right.push(b);
  }
  flush();
  const first = rows.findIndex(([, , exact]) => exact === 0);
  return {
    left: Int32Array.from(rows, ([a]) => a),
    right: Int32Array.from(rows, ([, b]) => b),
    exact: Uint8Array.from(rows, ([, , exact]) => exact),
    first,
  };
}

/** Of a stretch in which nothing is the same: steps of one action in the same order are pairs. */
function byAction(
  left: number[],
  right: number[],
  actionsLeft: string[],
  actionsRight: string[],
): [number, number, number][] {
  const keys = numbered(
    left.map((i) => actionsLeft[i] as string),
    right.map((i) => actionsRight[i] as string),
  );
  return difference(keys).map(([a, b]) => [left[a] ?? -1, right[b] ?? -1, 0]);
}

/** Texts as numbers that are equal where the texts are. */
function numbered(left: string[], right: string[]): [Int32Array, Int32Array] {
  const numbers = new Map<string, number>();
  const number = (key: string): number => {
    const known = numbers.get(key) ?? numbers.size;
    numbers.set(key, known);
    return known;
  };
  return [Int32Array.from(left, number), Int32Array.from(right, number)];
}

const MOST_EDITS = 1500; // more differences than these are looked at in parts

/** Pairs of places in order; -1 on the side that has none. Deletions stand before insertions. */
export function difference([a, b]: [Int32Array, Int32Array]): [number, number][] {
  const out: [number, number][] = [];
  compare(a, b, 0, a.length, 0, b.length, out);
  return out;
}

function compare(
  a: Int32Array,
  b: Int32Array,
  a0: number,
  a1: number,
  b0: number,
  b1: number,
  out: [number, number][],
): void {
  while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) out.push([a0++, b0++]);
  let same = 0;
  while (a0 < a1 - same && b0 < b1 - same && a[a1 - 1 - same] === b[b1 - 1 - same]) same++;
  const [aEnd, bEnd] = [a1 - same, b1 - same];
  if (a0 < aEnd && b0 < bEnd) {
    const script = myers(a, b, a0, aEnd, b0, bEnd);
    if (script) out.push(...script);
    else {
      const [x, y] = anchor(a, b, a0, aEnd, b0, bEnd) ?? [-1, -1];
      if (x < 0) {
        for (let i = a0; i < aEnd; i++) out.push([i, -1]);
        for (let i = b0; i < bEnd; i++) out.push([-1, i]);
      } else {
        compare(a, b, a0, x, b0, y, out);
        out.push([x, y]);
        compare(a, b, x + 1, aEnd, y + 1, bEnd, out);
      }
    }
  } else {
    for (let i = a0; i < aEnd; i++) out.push([i, -1]);
    for (let i = b0; i < bEnd; i++) out.push([-1, i]);
  }
  for (let i = 0; i < same; i++) out.push([aEnd + i, bEnd + i]);
}

/** Myers, An O(ND) Difference Algorithm (1986): the shortest script, or null where it has too many edits. */
function myers(
  a: Int32Array,
  b: Int32Array,
  a0: number,
  a1: number,
  b0: number,
  b1: number,
): [number, number][] | null {
  const n = a1 - a0,
    m = b1 - b0,
    most = Math.min(n + m, MOST_EDITS),
    offset = most + 1;
  const v = new Int32Array(2 * most + 3),
    trace: Int32Array[] = [];
  for (let d = 0; d <= most; d++) {
    trace.push(v.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (v[offset + k - 1] as number) < (v[offset + k + 1] as number));
      let x = down ? (v[offset + k + 1] as number) : (v[offset + k - 1] as number) + 1;
      let y = x - k;
      while (x < n && y < m && a[a0 + x] === b[b0 + y]) (x++, y++);
      v[offset + k] = x;
      if (x >= n && y >= m) return walkBack(trace, d, n, m, a0, b0);
    }
  }
  return null;
}

function walkBack(
  trace: Int32Array[],
  edits: number,
  n: number,
  m: number,
  a0: number,
  b0: number,
): [number, number][] {
  const out: [number, number][] = [];
  let x = n,
    y = m;
  for (let d = edits; d > 0; d--) {
    const v = trace[d] as Int32Array,
      at = (k: number): number => v[k + d + 1] as number,
      k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const before = down ? k + 1 : k - 1,
      px = at(before),
      py = px - before;
    while (x > px && y > py && x > 0 && y > 0 && !(down ? y - 1 === py && x === px : x - 1 === px && y === py))
      out.push([a0 + --x, b0 + --y]);
    if (down) out.push([-1, b0 + --y]);
    else out.push([a0 + --x, -1]);
  }
  while (x > 0 && y > 0) out.push([a0 + --x, b0 + --y]);
  return out.reverse();
}

/** A pair of keys that stands once on either side, as near to the middle as there is one. */
function anchor(a: Int32Array, b: Int32Array, a0: number, a1: number, b0: number, b1: number): [number, number] | null {
  const places = (keys: Int32Array, from: number, to: number): Map<number, number> => {
    const found = new Map<number, number>();
    for (let i = from; i < to; i++) found.set(keys[i] as number, found.has(keys[i] as number) ? -1 : i);
    return found;
  };
  const here = places(a, a0, a1),
    there = places(b, b0, b1),
    middle = (a0 + a1) / 2;
  let best: [number, number] | null = null;
  for (const [key, x] of here) {
    const y = there.get(key) ?? -1;
    if (x < 0 || y < 0) continue;
    if (!best || Math.abs(x - middle) < Math.abs(best[0] - middle)) best = [x, y];
  }
  return best;
}

/** Rows where both asked for the same permission with the same answer, or saw the same screen. */
export function anchorsOf(left: Outline, right: Outline, alignment: Omit<Alignment, "anchors">): Alignment["anchors"] {
  const [here, there] = [ties(left), ties(right)],
    found: Alignment["anchors"] = [];
  for (let row = 0; row < alignment.left.length; row++) {
    const a = here.get(alignment.left[row] as number),
      b = there.get(alignment.right[row] as number);
    if (!a || !b) continue;
    for (const what of ["permission", "screen"] as const)
      if (a[what] !== "" && a[what] === b[what]) found.push({ row, what });
  }
  return found;
}

function ties(outline: Outline): Map<number, { permission: string; screen: string }> {
  const found = new Map<number, { permission: string; screen: string }>(),
    { marks } = outline;
  for (let m = 0; m < marks.length; m++) {
    const mark = marks.mark(m);
    if (mark !== Mark.permission && mark !== Mark.screenshot) continue;
    const tie = found.get(marks.step(m)) ?? { permission: "", screen: "" };
    if (mark === Mark.permission) tie.permission += `${PERMISSIONS[marks.sub(m)] ?? ""} ${marks.name(m)};`;
    else tie.screen = marks.name(m);
    found.set(marks.step(m), tie);
  }
  return found;
}
