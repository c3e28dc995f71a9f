/** The folded axis: times and pixels are one to one, in order, whatever gaps there are; zoom and pan stay in the run. */
import { describe, expect, it } from "vitest";
import {
  BREAK_PX,
  NARROWEST_NS,
  active,
  breaks,
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
  type Axis,
} from "../../src/core/axis";
import { Mark } from "../../src/core/types";
import { chance, madeOutline, madeRun } from "./made-outline";

const SECOND = 1e9;

/** An axis with random gaps, and a window on it. */
function madeUp(seed: number): { axis: Axis; t0: number; t1: number; width: number; next: () => number } {
  const next = chance(seed);
  const gaps: number[] = [];
  let t = next() * 10 * SECOND;
  for (let n = Math.floor(next() * 12); n > 0; n--) {
    const from = t,
      to = from + (5 + next() ** 4 * 1e5) * SECOND;
    gaps.push(from, to);
    // Now and then a gap begins where the one before ended.
    t = to + (next() < 0.2 ? 1 : next() * 60 * SECOND);
  }
  const end = t + next() * 20 * SECOND + 1;
  const axis = makeAxis([0, end], Float64Array.from(gaps), (from) => (from * 7) % 3 < 0.4);
  const a = next() * end,
    b = next() * end;
  const [t0, t1] = next() < 0.3 ? whole(axis) : clamp(axis, a, b);
  return { axis, t0, t1, width: 200 + next() * 1800, next };
}

describe("the folded axis", () => {
  it("puts the window's ends on the picture's edges, and rises from one to the other", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const { axis, t0, t1, width } = madeUp(seed);
      const at = project(axis, t0, t1, width);
      expect(toX(at, t0)).toBeCloseTo(0, 3);
      expect(toX(at, t1)).toBeCloseTo(width, 3);
      const places = Array.from({ length: 200 }, (_, i) => toX(at, axis.start + ((axis.end - axis.start) * i) / 199));
      expect(places.every((x, i) => i === 0 || x >= (places[i - 1] ?? 0) - 1e-6)).toBe(true);
    }
  });

  it("finds the time of a place, and the place of a time", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const { axis, t0, t1, width, next } = madeUp(seed);
      const at = project(axis, t0, t1, width);
      const places = Array.from({ length: 50 }, () => next() * width);
      const off = places.map((x) => Math.abs(toX(at, toT(at, x)) - x));
      expect(Math.max(...off)).toBeLessThan(0.01);
    }
  });

  it("draws every closed gap equally wide, however long it was, and leaves the rest its scale", () => {
    const axis = makeAxis(
      [0, 40_000 * SECOND],
      Float64Array.of(10 * SECOND, 20 * SECOND, 30 * SECOND, 39_980 * SECOND),
      () => false,
    );
    const at = project(axis, ...whole(axis), 1000);
    expect(toX(at, 20 * SECOND) - toX(at, 10 * SECOND)).toBeCloseTo(BREAK_PX, 6);
    expect(toX(at, 39_980 * SECOND) - toX(at, 30 * SECOND)).toBeCloseTo(BREAK_PX, 6);
    expect(toX(at, 10 * SECOND)).toBeCloseTo(toX(at, 30 * SECOND) - toX(at, 20 * SECOND), 6);
    expect(active(axis, axis.end)).toBe(40 * SECOND);
    expect(breaks(axis, 15 * SECOND)).toBe(0.5);
  });

  it("leaves room for what happened when there are hundreds of gaps", () => {
    const gaps = Array.from({ length: 600 }, (_, i) => (i + 1) * 10 * SECOND + (i % 2 ? 0 : SECOND));
    const axis = makeAxis([0, 6100 * SECOND], Float64Array.from(gaps), () => false);
    const at = project(axis, ...whole(axis), 1000);
    expect(active(axis, axis.end) * at.scale).toBeGreaterThan(500);
  });

  it("keeps what is under the pointer there while zooming, and never leaves the run", () => {
    for (let seed = 1; seed <= 120; seed++) {
      const { axis, t0, t1, width, next } = madeUp(seed);
      let at = project(axis, t0, t1, width);
      for (let i = 0; i < 12; i++) {
        const x = next() * width,
          factor = Math.exp((next() - 0.5) * 3);
        const under = toT(at, x);
        const [from, to] = zoom(at, x, factor);
        expect(from).toBeGreaterThanOrEqual(axis.start);
        expect(to).toBeLessThanOrEqual(axis.end);
        expect(to).toBeGreaterThan(from);
        const before = at;
        at = project(axis, from, to, width);
        const free = from > axis.start && to < axis.end && at.breakPx === before.breakPx;
        if (free) expect(Math.abs(toX(at, under) - x)).toBeLessThan(0.5);
      }
    }
  });

  it("never zooms nearer than the nearest, and back out to the whole run", () => {
    const axis = makeAxis([0, 3600 * SECOND], Float64Array.of(100 * SECOND, 2000 * SECOND), () => false);
    let at = project(axis, ...whole(axis), 1000);
    for (let i = 0; i < 60; i++) at = project(axis, ...zoom(at, 200, 0.5), 1000);
    expect(at.t1 - at.t0).toBeGreaterThanOrEqual(NARROWEST_NS * 0.999);
    for (let i = 0; i < 60; i++) at = project(axis, ...zoom(at, 200, 2), 1000);
    expect([at.t0, at.t1]).toEqual(whole(axis));
  });

  it("pans by pixels at the same scale, and stops at both ends", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const { axis, t0, t1, width, next } = madeUp(seed);
      const at = project(axis, t0, t1, width);
      const dx = (next() - 0.5) * width;
      const moved = project(axis, ...pan(at, dx), width);
      const inside = moved.t0 > axis.start && moved.t1 < axis.end;
      if (inside && Math.abs(moved.breakPx - at.breakPx) < 1e-9) expect(moved.scale / at.scale).toBeCloseTo(1, 4);
      const [end] = [pan(at, 1e12)];
      expect(end[1]).toBeCloseTo(axis.end, -1);
      expect(pan(at, -1e12)[0]).toBeCloseTo(axis.start, -1);
    }
  });

  it("names the gap nearest to a time", () => {
    const axis = makeAxis([0, 100], Float64Array.of(10, 20, 50, 60), () => false);
    expect([0, 15, 30, 40, 90].map((t) => nearestGap(axis, t))).toEqual([0, 0, 0, 1, 1]);
    expect(
      nearestGap(
        makeAxis([0, 100], new Float64Array(0), () => false),
        5,
      ),
    ).toBe(-1);
  });
});

describe("gaps", () => {
  it("are where nothing lasts and nothing happens for more than five seconds", () => {
    const outline = madeOutline({
      steps: [
        { t0: 0, t1: 2 * SECOND },
        { t0: 40 * SECOND, t1: 90 * SECOND },
      ],
      // A call that lasts through 20 quiet seconds is no gap; a wait inside of a step is one.
      spans: [{ t0: 40 * SECOND, t1: 60 * SECOND, track: "tool" }],
      marks: [
        { t: 11 * SECOND, mark: Mark.console },
        { t: 71 * SECOND, mark: Mark.permission },
      ],
      span: [0, 94 * SECOND],
    });
    expect([...findGaps(outline)].map((t) => t / SECOND)).toEqual([2, 11, 11, 40, 60, 71, 71, 90]);
  });

  it("hold nothing, in runs of any kind", () => {
    for (const seed of [1, 2, 3]) {
      const outline = madeRun(200, seed);
      const gaps = findGaps(outline);
      for (let g = 0; g < gaps.length; g += 2) {
        const from = gaps[g] ?? 0,
          to = gaps[g + 1] ?? 0;
        expect(to - from).toBeGreaterThan(5 * SECOND);
        let inside = 0;
        for (let i = 0; i < outline.spans.length; i++)
          if (outline.spans.t1(i) > from && outline.spans.t0(i) < to) inside += 1;
        for (let i = 0; i < outline.marks.length; i++)
          if (outline.marks.t(i) > from && outline.marks.t(i) < to) inside += 1;
        expect(inside).toBe(0);
      }
    }
  });
});
