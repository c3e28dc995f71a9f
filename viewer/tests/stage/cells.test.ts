/** The filmstrip shows the window it is given: never more cells than have room, and every failure and denial. */
import { describe, expect, it } from "vitest";
import { Status, type Outline } from "../../src/core/types";
import { cells, MOST, room } from "../../src/panes/filmstrip/cells";
import { outlineOf, type StepOf } from "../state/memory";
import { dice } from "./dice";

function outline(count: number, change: (i: number) => Partial<StepOf> = () => ({})): Outline {
  const made = outlineOf(
    Array.from({ length: count }, (_, i) => ({ name: "step", at: i * 100, took: [10, 10, 10], ...change(i) })),
  );
  made.steps.screenshot = (i) => i * 10 + 5;
  return made;
}

const all: [number, number] = [0, Number.MAX_SAFE_INTEGER];

describe("cells", () => {
  it("are as many as there is room for, and no more than twenty", () => {
    expect([0, 90, 200, 1412, 9_999].map(room)).toEqual([1, 1, 2, 14, MOST]);
  });

  it("share the window's steps among them without a gap", () => {
    for (let seed = 1; seed < 40; seed += 1) {
      const roll = dice(seed);
      const made = outline(1 + roll.upTo(400), () =>
        roll.upTo(30) === 0
          ? { status: Status.failed }
          : roll.upTo(30) === 0
            ? { status: Status.denied, denied: 1 }
            : {},
      );
      const most = 1 + roll.upTo(19);
      const found = cells(made, all, most);
      expect(found.length).toBeLessThanOrEqual(most);
      expect(found[0]!.from).toBe(0);
      expect(found.at(-1)!.to).toBe(made.steps.length);
      found.forEach((cell, i) => expect(cell.from).toBe(i === 0 ? 0 : found[i - 1]!.to));
      for (let i = 0; i < made.steps.length; i += 1) {
        const cell = found.find(({ from, to }) => i >= from && i < to)!;
        if (made.steps.status(i) === Status.failed) expect(cell.failed).toBe(true);
        if (made.steps.status(i) === Status.denied) expect(cell.denied).toBe(true);
      }
      for (const { step, from, to, failed } of found) {
        expect(step >= from && step < to).toBe(true);
        if (failed) expect(made.steps.status(step)).toBe(Status.failed);
      }
    }
  });

  it("are those of the window, with the step that was under way when it begins", () => {
    const found = cells(outline(100), [4_250e6, 4_720e6], 20);
    expect(found.map(({ step }) => step)).toEqual([42, 43, 44, 45, 46, 47]);
  });

  it("are shared by steps that changed nothing on the screen, unless one has a mark", () => {
    const made = outline(6, (i) => (i === 4 ? { status: Status.failed } : {}));
    made.steps.screenshot = (i) => (i < 2 ? 5 : 25);
    expect(cells(made, all, 20).map(({ from, to, step, failed }) => [from, to, step, failed])).toEqual([
      [0, 2, 0, false],
      [2, 4, 2, false],
      [4, 5, 4, true],
      [5, 6, 5, false],
    ]);
  });

  it("are none where no step has begun", () => {
    expect(cells(outline(0), all, 20)).toEqual([]);
    expect(cells(outline(3), [-10, -5], 20)).toEqual([]);
  });
});
