/** The spine of two runs: every step has its row, one playhead goes through both sides, same stretches fold away. */
import { describe, expect, it } from "vitest";
import { align } from "../../src/core/align";
import type { Outline } from "../../src/core/types";
import {
  Relation,
  folded,
  makeSpine,
  nextDifference,
  placeOf,
  stepAt,
  type Spine,
} from "../../src/panes/compare/spine";
import { tellingOf } from "../../src/panes/compare/telling";
import { chance, madeOutline } from "../timeline/made-outline";

function runOf(actions: string[]): Outline {
  return madeOutline({
    steps: actions.map((action, i) => ({
      t0: i,
      t1: i + 1,
      name: action.split(" ")[0] ?? "",
      detail: action.split(" ").slice(1).join(" "),
    })),
  });
}

async function spineOf(left: string[], right: string[]): Promise<Spine> {
  const a = runOf(left),
    b = runOf(right);
  return makeSpine(await align(a, b), left.length, right.length, (i, k) => tellingOf(a, i) !== tellingOf(b, k));
}

const rowsOf = (spine: Spine): [number, number, number][] =>
  Array.from({ length: spine.length }, (_, row) => [
    spine.left[row] ?? -1,
    spine.right[row] ?? -1,
    spine.relation[row] ?? -1,
  ]);

describe("the spine", () => {
  it("of a branch and the run that it left begins to differ where it left it, whatever it did again", async () => {
    const parent = runOf(["read 1", "read 2", "pay 98", "mail"]),
      branch = runOf(["read 1", "pay 49", "mail"]);
    const pairs = await align(parent, branch, [2, 0]);
    expect([pairs.first, [...pairs.exact]]).toEqual([2, [1, 1, 0, 0, 1]]);
    const differ = (i: number, k: number): boolean => tellingOf(parent, i) !== tellingOf(branch, k);
    const spine = makeSpine(pairs, 4, 3, differ, 2);
    expect(rowsOf(spine).slice(0, 2)).toEqual([
      [0, -1, Relation.same],
      [1, -1, Relation.same],
    ]);
    expect([spine.first, spine.rowOfRight[0], spine.counts]).toEqual([2, 2, [3, 1, 0, 1]]);
    const turned = makeSpine(await align(branch, parent, [0, 2]), 3, 4, (k, i) => differ(i, k), 2);
    expect([turned.first, [...turned.right.slice(0, 2)], turned.counts]).toEqual([2, [0, 1], [3, 1, 1, 0]]);
  });

  it("re-syncs after an extra retry and finds the first meaningful difference", async () => {
    const left = ["open /", "read 1", "click a", "fill x", "pay 64"];
    const right = ["open /", "read 1", "click a", "click a", "fill x", "pay 32"];
    const spine = await spineOf(left, right);
    expect(spine.counts).toEqual([4, 1, 0, 1]);
    expect(rowsOf(spine).at(-1)).toEqual([4, 5, Relation.changed]);
    expect(spine.relation[spine.first]).toBe(Relation.right);
  });

  it("does not count ids and dates as differences", async () => {
    const spine = await spineOf(
      ["read order 4471", "post /r/550e8400-e29b-41d4-a716-446655440000", "log 2026-11-30T07:12:04Z"],
      ["read order 4471", "post /r/7d44b8f1-0c6f-4f5e-9a80-1f8f0f0a1b2c", "log 2026-12-01T09:00:00Z"],
    );
    expect(spine.first).toBe(-1);
    expect(spine.counts).toEqual([3, 0, 0, 0]);
  });

  it("holds every step of both sides once, in order, whatever the runs are", async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const next = chance(seed);
      const any = (): string[] =>
        Array.from(
          { length: Math.floor(next() * 30) },
          () => `${"abcd"[Math.floor(next() * 4)]} ${Math.floor(next() * 3)}`,
        );
      const left = any(),
        right = next() < 0.5 ? left.filter(() => next() < 0.8) : any();
      const spine = await spineOf(left, right);
      expect([...spine.left].filter((step) => step >= 0)).toEqual(left.map((_, i) => i));
      expect([...spine.right].filter((step) => step >= 0)).toEqual(right.map((_, i) => i));
      left.forEach((_, i) => expect(spine.left[spine.rowOfLeft[i] ?? -1]).toBe(i));
      right.forEach((_, i) => expect(spine.right[spine.rowOfRight[i] ?? -1]).toBe(i));
      expect(spine.counts.reduce((a, b) => a + b, 0)).toBe(spine.length);
    }
  });

  it("maps one playhead to both sides: a side without a step stays at the last one before", async () => {
    const spine = await spineOf(["a 1", "b 1", "c 1"], ["a 1", "x 1", "y 1", "c 1"]);
    const both = Array.from({ length: spine.length }, (_, row) => [stepAt(spine.left, row), stepAt(spine.right, row)]);
    expect(both[0]).toEqual([0, 0]);
    expect(both.at(-1)).toEqual([2, 3]);
    for (let row = 1; row < both.length; row++) {
      expect(
        (both[row]?.[0] ?? 0) >= (both[row - 1]?.[0] ?? 0) && (both[row]?.[1] ?? 0) >= (both[row - 1]?.[1] ?? 0),
      ).toBe(true);
    }
  });

  it("leads from difference to difference, both ways, and stops at the last", async () => {
    const spine = await spineOf(["a 1", "b 1", "c 1", "d 1"], ["a 1", "b 2", "c 1", "d 2"]);
    expect(nextDifference(spine, -1, 1)).toBe(1);
    expect(nextDifference(spine, 1, 1)).toBe(3);
    expect(nextDifference(spine, 3, 1)).toBe(-1);
    expect(nextDifference(spine, 3, -1)).toBe(1);
  });
});

describe("folding", () => {
  const long = async (): Promise<Spine> => {
    const same = Array.from({ length: 100 }, (_, i) => `a ${i}`);
    return spineOf([...same, "x 1", ...same, "end"], [...same, "x 2", ...same, "end"]);
  };

  it("shows differences with their neighbours, and each row once", async () => {
    const spine = await long();
    const shown = folded(spine, new Set(), -1);
    expect(shown.length).toBeLessThan(12);
    const covered = shown.flatMap((one) =>
      "row" in one ? [one.row] : Array.from({ length: one.to - one.from }, (_, i) => one.from + i),
    );
    expect(covered).toEqual(Array.from({ length: spine.length }, (_, i) => i));
    expect(shown.some((one) => "row" in one && one.row === spine.first)).toBe(true);
  });

  it("never folds the playhead's row away, and opens a stretch that is asked for", async () => {
    const spine = await long();
    for (const keep of [0, 50, 97, 150, spine.length - 1]) {
      const shown = folded(spine, new Set(), keep);
      const place = placeOf(shown, keep);
      expect(shown[place]).toEqual({ row: keep });
    }
    const first = folded(spine, new Set(), -1).find((one) => "from" in one);
    expect(first).toBeDefined();
    const opened = folded(spine, new Set([first && "key" in first ? first.key : -1]), -1);
    expect(opened.length).toBeGreaterThan(95);
  });
});
