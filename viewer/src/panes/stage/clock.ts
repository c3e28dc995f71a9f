/**
 * The run's clock for layers that have a time of their own: casts, videos, DOM replays follow the playhead by it.
 */
import { useEffect, useRef } from "preact/hooks";
import type { Outline, Row } from "../../core/types";
import { moment, playhead, step } from "../../state/app";

/** Seeking costs these layers a decode: they follow at this pace while the playhead runs. */
const PACE_MS = 120;

/** Where the layer should stand, in ns of the run: the playhead, or with "after" the end of its step. */
export function layerTime(outline: Outline): number {
  if (moment.value !== "after" || step.value >= outline.steps.length) return playhead.value;
  return Math.max(playhead.value, outline.steps.t1(step.value));
}

/** Unix time of t = 0 in ns; 0 where the header does not say. A double has it to a quarter of a microsecond. */
export function wallStart(header: Row): number {
  const text = header.data.t0_wall;
  const value = typeof text === "string" || typeof text === "number" ? Number(text) : 0;
  return Number.isFinite(value) ? value : 0;
}

/** Calls `seek` with the newest time, never faster than the pace, and always with the last one. */
export function useFollow(time: number, seek: ((time: number) => void) | null): void {
  const state = useRef<{ timer: ReturnType<typeof setTimeout> | null; due: number; last: number }>({
    timer: null,
    due: NaN,
    last: 0,
  });
  useEffect(() => {
    const now = state.current;
    now.due = time;
    if (seek === null) return;
    const go = (): void => {
      now.timer = null;
      now.last = performance.now();
      seek(now.due);
    };
    if (now.timer !== null) clearTimeout(now.timer);
    const wait = now.last + PACE_MS - performance.now();
    if (wait <= 0) go();
    else now.timer = setTimeout(go, wait);
  }, [time, seek]);
  useEffect(
    () => () => {
      if (state.current.timer !== null) clearTimeout(state.current.timer);
    },
    [],
  );
}
