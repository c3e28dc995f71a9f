/** The list of steps while a hand drags the playhead: it stays, follows a hand that pauses, and is never far behind. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { step } from "../../src/state/app";
import { LATEST_MS, PAUSE_MS, trail, trailing, trailNoMore } from "../../src/state/trailing";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  step.value = 3;
});
afterEach(() => {
  trailNoMore();
  vi.useRealTimers();
});

test("goes along with the playhead while nobody drags it", () => {
  expect(trailing.value).toBe(3);
  step.value = 7;
  expect(trailing.value).toBe(7);
});

test("stays while the hand moves on, and is there as soon as it pauses or lets go", () => {
  trail();
  step.value = 8;
  vi.advanceTimersByTime(PAUSE_MS - 1);
  step.value = 9;
  vi.advanceTimersByTime(PAUSE_MS - 1);
  expect(trailing.value).toBe(3);
  vi.advanceTimersByTime(1);
  expect(trailing.value).toBe(9);
  step.value = 12;
  expect(trailing.value).toBe(9);
  trailNoMore();
  expect(trailing.value).toBe(12);
});

test("is never further behind a hand that does not pause than it says", () => {
  trail();
  for (let moves = 0; moves < 100; moves++) {
    step.value++;
    vi.advanceTimersByTime(20);
    const behind = step.value - trailing.value;
    expect(behind * 20).toBeLessThanOrEqual(LATEST_MS + 20);
  }
  expect(trailing.value).toBeGreaterThan(3);
});
