/** Alignment: both runs stand in it whole and in order, what is the same is found, and no shorter script exists. */
import { describe, expect, it } from "vitest";
import { difference, pairs } from "../../src/core/alignment";

/** A generator that gives the same numbers in every run. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** The length of the longest common subsequence, by the textbook. */
function common(a: Int32Array, b: Int32Array): number {
  const row = new Int32Array(b.length + 1);
  for (const x of a) {
    let corner = 0;
    for (let j = 1; j <= b.length; j++) {
      const above = row[j] as number;
      row[j] = x === b[j - 1] ? corner + 1 : Math.max(above, row[j - 1] as number);
      corner = above;
    }
  }
  return row[b.length] as number;
}

describe("difference", () => {
  it("keeps both sides in order, pairs only what is equal, and is the shortest", () => {
    const next = chance(7);
    for (let round = 0; round < 400; round++) {
      const make = (): Int32Array => Int32Array.from({ length: next(14) }, () => next(4));
      const a = make(),
        b = make(),
        out = difference([a, b]);
      expect(out.map(([x]) => x).filter((x) => x >= 0)).toEqual([...a.keys()]);
      expect(out.map(([, y]) => y).filter((y) => y >= 0)).toEqual([...b.keys()]);
      const same = out.filter(([x, y]) => x >= 0 && y >= 0);
      for (const [x, y] of same) expect(a[x]).toBe(b[y]);
      expect(same.length).toBe(common(a, b));
    }
  });

  it("comes to an end where everything differs, and finds what stands out all the same", () => {
    const a = Int32Array.from({ length: 4000 }, (_, i) => (i === 2000 ? -1 : i)),
      b = Int32Array.from({ length: 4000 }, (_, i) => (i === 1990 ? -1 : -i - 5));
    const out = difference([a, b]);
    expect(out.filter(([x, y]) => x >= 0 && y >= 0)).toEqual([[2000, 1990]]);
    expect(out.length).toBe(7999);
  });
});

describe("pairs", () => {
  const keys = (...steps: string[]) => ({ whole: steps, action: steps.map((step) => step.split(" ")[0] as string) });

  it("finds the inserted step and the changed argument, and where the runs part first", () => {
    const left = keys("open a", "fill 64", "click b"),
      right = keys("open a", "read rules", "fill 32", "click b", "say done");
    const found = pairs(left, right);
    expect([...found.left]).toEqual([0, -1, 1, 2, -1]);
    expect([...found.right]).toEqual([0, 1, 2, 3, 4]);
    expect([...found.exact]).toEqual([1, 0, 0, 1, 0]);
    expect(found.first).toBe(1);
    expect(pairs(left, left).first).toBe(-1);
  });
});
