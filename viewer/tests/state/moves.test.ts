/** Step and playhead move as one, within the run, past filters, to problems and permissions. */
// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from "vitest";
import { filter, following, liveState, page, playhead, run, step, unseen } from "../../src/state/app";
import { problems } from "../../src/state/filter";
import {
  advance,
  first,
  goTo,
  grew,
  last,
  moveBy,
  seek,
  seekRow,
  stepAt,
  toLive,
  toPermission,
  toProblem,
} from "../../src/state/moves";
import { DENIED, FAILED, STORY, outlineOf, story } from "./memory";

beforeEach(() => {
  run.value = story();
  page.value = "run";
  filter.value = "all";
  following.value = false;
  liveState.value = "off";
  unseen.value = 0;
  goTo(0);
});

describe("the playhead", () => {
  it("stands at the begin of the step it was sent to, and never outside of the run", () => {
    for (const [to, at] of [
      [5, 5],
      [-3, 0],
      [1e9, STORY.length - 1],
      [7.9, 7],
    ] as const) {
      goTo(to);
      expect(step.value).toBe(at);
      expect(playhead.value).toBe(run.value?.outline.steps.t0(at));
    }
    seek(-1);
    expect(playhead.value).toBe(0);
    seek(Infinity);
    expect(playhead.value).toBe(run.value?.outline.span[1]);
  });

  it("is in the last step that began, at every time of the run", () => {
    const { outline } = story();
    const { steps } = outline;
    for (let k = 0; k < 500; k++) {
      const t = (outline.span[1] * k) / 499;
      let slow = 0;
      for (let i = 0; i < steps.length; i++) if (steps.t0(i) <= t) slow = i;
      expect(stepAt(outline, t)).toBe(slow);
      seek(t);
      expect(step.value).toBe(slow);
    }
  });

  it("goes to a row's own time where it is known", () => {
    const t = (STORY[FAILED]?.at ?? 0) * 1e6 + 5e9;
    seekRow(414, t);
    expect([step.value, playhead.value]).toEqual([FAILED, t]);
    seekRow(414);
    expect(playhead.value).toBe(run.value?.outline.steps.t0(FAILED));
  });

  it("does nothing in a run without steps", () => {
    run.value = { ...story(), outline: outlineOf([]) };
    for (const move of [() => goTo(3), () => moveBy(1), first, last, () => toProblem(1), () => toPermission(1)])
      expect(move).not.toThrow();
  });
});

describe("problems and permissions", () => {
  it("are visited one after another in both directions, and it is said where none is left", () => {
    expect(toProblem(1)).toBe(true);
    expect(step.value).toBe(DENIED);
    expect(toProblem(1)).toBe(true);
    expect(step.value).toBe(FAILED);
    expect(toProblem(1)).toBe(false);
    expect(step.value).toBe(FAILED);
    expect(toProblem(-1)).toBe(true);
    expect(step.value).toBe(DENIED);
    expect(toProblem(-1)).toBe(false);
  });

  it("from a step in between the next is the one behind it", () => {
    goTo(DENIED - 3);
    expect(toProblem(1)).toBe(true);
    expect(step.value).toBe(DENIED);
    goTo(STORY.length - 1);
    expect(toProblem(-1)).toBe(true);
    expect(step.value).toBe(FAILED);
  });

  it("two permissions of one step are two places", () => {
    goTo(DENIED);
    const places: number[] = [];
    while (toPermission(1)) places.push(playhead.value);
    expect(places).toHaveLength(2);
    expect(step.value).toBe(DENIED);
    expect(new Set(places).size).toBe(2);
  });

  it("a step that failed and was denied counts once", () => {
    const outline = outlineOf([{ name: "a", at: 0, took: [1, 1, 1], status: 2, denied: 1 }]);
    expect(problems(outline)).toEqual([0]);
  });
});

describe("a filter", () => {
  it("is what J and K walk along", () => {
    filter.value = "denied";
    goTo(0);
    moveBy(1);
    expect(step.value).toBe(DENIED);
    moveBy(1);
    expect(step.value).toBe(DENIED);
    filter.value = "failed";
    last();
    expect(step.value).toBe(FAILED);
    goTo(STORY.length - 1);
    moveBy(-1);
    expect(step.value).toBe(FAILED);
  });
});

describe("a live run", () => {
  beforeEach(() => {
    liveState.value = "live";
  });

  it("takes the playhead along until somebody moves, then counts what comes", () => {
    toLive();
    expect([following.value, playhead.value]).toEqual([true, run.value?.outline.span[1]]);
    grew(3);
    expect([playhead.value, unseen.value]).toEqual([run.value?.outline.span[1], 0]);
    goTo(2);
    grew(12);
    expect([following.value, unseen.value, step.value]).toEqual([false, 12, 2]);
    toLive();
    expect(unseen.value).toBe(0);
  });

  it("is not let go of by the clock", () => {
    toLive();
    advance(run.value?.outline.span[1] ?? 0);
    expect(following.value).toBe(true);
  });
});
