/**
 * The step that the list of steps stands at: the one under the playhead; and while a hand drags that along the timeline,
 * the one where the hand last paused.
 *
 * Rows fly by too fast to be read then, and drawing them costs more than everything else that goes along with the hand:
 * the playhead, the clock, the screen. Where the hand slows down or lets go, the list is there.
 */
import { computed, effect, signal } from "@preact/signals";
import { step } from "./app";

/** A hand that stands still for so long has paused. */
export const PAUSE_MS = 60;
/** A hand that never pauses: the list is no further behind than that. */
export const LATEST_MS = 400;

/** Where the list stays for now; null where it goes along. */
const held = signal<number | null>(null);
let end = (): void => undefined;

export const trailing = computed(() => held.value ?? step.value);

/** A hand begins to drag the playhead. */
export function trail(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** When the playhead left the step that the list stands at; 0 while it is there. */
  let left = 0;
  const follow = (): void => {
    left = 0;
    held.value = step.peek();
  };
  end();
  follow();
  const watched = effect(() => {
    if (step.value === held.peek()) return;
    const now = performance.now();
    left ||= now;
    clearTimeout(timer);
    timer = setTimeout(follow, Math.max(0, Math.min(PAUSE_MS, left + LATEST_MS - now)));
  });
  end = () => {
    watched();
    clearTimeout(timer);
    held.value = null;
  };
}

/** It let go: the list goes along again. */
export function trailNoMore(): void {
  end();
  end = () => undefined;
}
