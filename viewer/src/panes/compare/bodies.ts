/** The bodies of the pair under the playhead: both sides, loaded when it rests, kept until the next are there. */
import { effect, signal } from "@preact/signals";
import type { StepBody } from "../../core/types";
import { body, other, run, type Open } from "../../state/app";
import { loadBody } from "../../state/reading";
import { pairSteps } from "./state";

export interface Sides {
  left: StepBody | null;
  right: StepBody | null;
}

export const sides = signal<Sides>({ left: null, right: null });
export const sidesTrouble = signal("");

const REST_MS = 90;

export function watchBodies(): () => void {
  let rest: ReturnType<typeof setTimeout> | undefined;
  let abort: AbortController | undefined;
  const stop = effect(() => {
    const { left, right } = pairSteps.value;
    const a = run.value,
      b = other.value;
    clearTimeout(rest);
    abort?.abort();
    if (a === null || b === null) return;
    const mine = new AbortController();
    abort = mine;
    rest = setTimeout(() => {
      Promise.all([load(a, left, mine.signal), load(b, right, mine.signal)]).then(
        ([one, two]) => {
          if (mine.signal.aborted) return;
          sides.value = { left: one, right: two };
          sidesTrouble.value = "";
        },
        (reason: unknown) => {
          if (!mine.signal.aborted) sidesTrouble.value = reason instanceof Error ? reason.message : String(reason);
        },
      );
    }, REST_MS);
  });
  return () => {
    clearTimeout(rest);
    abort?.abort();
    stop();
    sides.value = { left: null, right: null };
  };
}

async function load(open: Open, step: number, signal: AbortSignal): Promise<StepBody | null> {
  if (step < 0) return null;
  const known = body.peek();
  // The inspector has the left side's already.
  if (open === run.peek() && known?.index === step) return known;
  return loadBody(open, step, signal);
}
