/** The playback clock: the run's own time, so many times as fast, with pauses left out or sat through. */
import { describe, expect, it } from "vitest";
import { played } from "../../src/panes/transport/playback";
import { chance } from "../timeline/made-outline";

const SECOND = 1e9;
const pauses = Float64Array.of(10 * SECOND, 20 * SECOND, 30 * SECOND, 40_000 * SECOND);

describe("the clock", () => {
  it("goes as fast as it is told, and no further than the end", () => {
    expect(played(5 * SECOND, 100, 1, null, 100 * SECOND)).toBe(5.1 * SECOND);
    expect(played(5 * SECOND, 100, 16, null, 100 * SECOND)).toBe(6.6 * SECOND);
    expect(played(99.95 * SECOND, 100, 1, null, 100 * SECOND)).toBe(100 * SECOND);
  });

  it("leaves pauses out: what is left of a frame goes on behind them", () => {
    expect(played(9.95 * SECOND, 100, 1, pauses, 50_000 * SECOND)).toBeCloseTo(20.05 * SECOND, -3);
    expect(played(15 * SECOND, 100, 1, pauses, 50_000 * SECOND)).toBeCloseTo(20.1 * SECOND, -3);
    expect(played(19.5 * SECOND, 100, 1, pauses, 50_000 * SECOND)).toBeCloseTo(20.1 * SECOND, -3);
    expect(played(29.99 * SECOND, 50, 1, pauses, 50_000 * SECOND)).toBeCloseTo(40_000.04 * SECOND, -3);
    expect(played(9.95 * SECOND, 100, 1, null, 50_000 * SECOND)).toBe(10.05 * SECOND);
  });

  it("plays as much active time as has passed, whatever the pauses are", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const next = chance(seed);
      const gaps: number[] = [];
      let t = 0;
      for (let i = 0; i < 8; i++) gaps.push((t += next() * 3 * SECOND), (t += (5 + next() * 100) * SECOND));
      const list = Float64Array.from(gaps);
      const active = (at: number): number =>
        gaps.reduce(
          (sum, edge, i) => (i % 2 === 0 ? sum - Math.max(0, Math.min(at, gaps[i + 1] ?? 0) - edge) : sum),
          at,
        );
      let at = 0;
      for (let frame = 0; frame < 30; frame++) {
        const to = played(at, 16, 8, list, Infinity);
        expect(to).toBeGreaterThan(at);
        expect(active(to) - active(at)).toBeCloseTo(0.128 * SECOND, -2);
        at = to;
      }
    }
  });
});
