/**
 * Playing a run: its own clock, so many times as fast, with or without the pauses in which nothing happened.
 *
 * Nothing plays by itself. While it plays, each frame of the screen moves the playhead by the time that has passed.
 */
import { effect } from "@preact/signals";
import { lowerBound } from "../../core/axis";
import { following, liveState, outline, playhead, playing, run, skipIdle, speed, version } from "../../state/app";
import { advance } from "../../state/moves";
import { gaps } from "../timeline/camera";

export const SPEEDS = [0.5, 1, 2, 4, 8, 16] as const;
/** A frame that came later than this (a hidden tab) does not make the playhead jump. */
const LONGEST_FRAME_MS = 250;

/** Where the playhead is `ms` later. `pauses` are gaps `[from, to, ...]` to leave out, or null to sit them through. */
export function played(t: number, ms: number, times: number, pauses: Float64Array | null, end: number): number {
  let left = ms * 1e6 * times;
  let at = t;
  if (pauses !== null) {
    // The first gap that ends after now. Even places of the list are starts, odd ones ends.
    for (let i = evenBelow(lowerBound(pauses, at)); i + 1 < pauses.length; i += 2) {
      const from = pauses[i] ?? 0,
        to = pauses[i + 1] ?? 0;
      if (to <= at) continue;
      const before = Math.max(from - at, 0);
      if (before > left) break;
      left -= before;
      at = to;
    }
  }
  return Math.min(at + left, end);
}

function evenBelow(n: number): number {
  return n - (n % 2);
}

/** Keeps the playhead at the end of a live run that is followed, also when its rows are folded a little later. */
export function startFollowing(): () => void {
  return effect(() => {
    void version.value;
    const now = outline.value;
    if (now !== null && following.value && liveState.value !== "off" && playhead.peek() < now.span[1])
      advance(now.span[1]);
  });
}

/** Keeps the playhead going while `playing` is set. Returns the end of it. */
export function startPlayback(): () => void {
  let frame = 0;
  const stop = effect(() => {
    cancelAnimationFrame(frame);
    if (!playing.value) return;
    const open = run.value;
    if (open === null || following.peek()) {
      playing.value = false;
      return;
    }
    const [begin, end] = open.outline.span;
    if (playhead.peek() >= end) advance(begin);
    let before = performance.now();
    const step = (now: number): void => {
      const current = outline.peek();
      if (current === null || !playing.peek()) return;
      const last = current.span[1];
      const ms = Math.min(Math.max(now - before, 0), LONGEST_FRAME_MS);
      before = now;
      const to = played(playhead.peek(), ms, speed.peek(), skipIdle.peek() ? gaps.peek() : null, last);
      advance(to);
      if (to >= last) playing.value = false;
      else frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
  });
  return () => {
    stop();
    cancelAnimationFrame(frame);
  };
}
