/**
 * What is made of the whole outline at once, while rows keep coming: made anew when the outline changed, but never for
 * more than a tenth of the time.
 */
import { computed, type ReadonlySignal, signal } from "@preact/signals";
import type { Outline } from "../../core/types";
import { outline, version } from "../../state/app";

/** After a making that took so long, wait so many times that long. */
const REST = 10;

/** `make(outline)` of the run that is open, or `empty`. */
export function paced<T>(make: (now: Outline) => T, empty: T): ReadonlySignal<T> {
  const again = signal(0);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let kept: { of: Outline | null; version: number; done: boolean; value: T; took: number; at: number } = {
    of: null,
    version: -1,
    done: false,
    value: empty,
    took: 0,
    at: 0,
  };
  return computed(() => {
    const now = outline.value;
    void version.value;
    void again.value;
    if (now === null) return empty;
    if (kept.of === now && kept.version === now.version && kept.done === now.done) return kept.value;
    const start = performance.now();
    const wait = kept.took * REST - (start - kept.at);
    if (kept.of === now && !now.done && wait > 0) {
      timer ??= setTimeout(() => {
        timer = undefined;
        again.value += 1;
      }, wait);
      return kept.value;
    }
    const value = make(now);
    const end = performance.now();
    kept = { of: now, version: now.version, done: now.done, value, took: end - start, at: end };
    return value;
  });
}
