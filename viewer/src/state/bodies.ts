/**
 * The bodies of the step under the playhead: loaded at once where it went by a single move or the hand let it go, else
 * when it rests, never while it runs.
 *
 * What is shown stays until the next is there, so nothing blanks; a step that was left before its bodies came is given
 * up. Its neighbour in the direction of the last move is loaded ahead, so that one more press finds it there.
 */
import { effect, signal } from "@preact/signals";
import { loadBody } from "./reading";
import { body, run, step, version, type Open } from "./app";
import type { StepBody } from "../core/types";

/** A playhead that moved less than this ago is on its way: its step is loaded when it has stood still for `REST_MS`. */
export const QUIET_MS = 200;
export const REST_MS = 150;
const KEPT = 12;

/** Why the step's bodies could not be loaded; null while they can. */
export const bodyTrouble = signal<string | null>(null);
/** True while bodies of the step under the playhead are on their way. */
export const loading = signal(false);

/** Begins at once what waits for the playhead to rest. */
let hurry = (): void => undefined;

/** The hand has let go of the playhead: it will not move on by itself. */
export function rested(): void {
  hurry();
}

const kept = new WeakMap<Open, Map<string, StepBody>>();

export function startBodies(): () => void {
  let rest: ReturnType<typeof setTimeout> | undefined;
  let frame = 0;
  let abort: AbortController | undefined;
  let before = 0;
  let moved = -QUIET_MS;
  /** What is on its way or waited for. */
  let wanted: { open: Open; key: string } | null = null;
  let waiting: (() => Promise<void>) | null = null;
  const noWait = (): void => {
    clearTimeout(rest);
    cancelAnimationFrame(frame);
    waiting = null;
  };
  const giveUp = (): void => {
    noWait();
    abort?.abort();
    wanted = null;
  };
  const stop = effect(() => {
    const open = run.value;
    const i = step.value;
    void version.value;
    if (open === null || i >= open.outline.steps.length) return giveUp();
    const key = keyOf(open, i);
    if (wanted?.open === open && wanted.key === key) return;
    giveUp();
    const now = performance.now();
    const alone = now - moved >= QUIET_MS;
    moved = now;
    const known = kept.get(open)?.get(key);
    if (known !== undefined) {
      body.value = known;
      loading.value = false;
      return;
    }
    const mine = { open, key };
    wanted = mine;
    const begin = async (): Promise<void> => {
      noWait();
      abort = new AbortController();
      const towards = Math.sign(i - before) || 1;
      before = i;
      // What could not be read is asked for again when the next rows have come.
      if (!(await load(open, i, key, towards, abort.signal)) && wanted === mine) wanted = null;
    };
    // A slow frame may hold back the hand's next move, which then comes before the frame that is waited for.
    const later = (): void => {
      if (document.hidden) void begin();
      else frame = requestAnimationFrame(() => void begin());
    };
    waiting = begin;
    rest = alone ? setTimeout(begin, 0) : setTimeout(later, REST_MS);
  });
  hurry = () => void waiting?.();
  return () => {
    giveUp();
    stop();
  };
}

async function load(open: Open, i: number, key: string, towards: number, signal: AbortSignal): Promise<boolean> {
  loading.value = true;
  try {
    const found = await loadBody(open, i, signal);
    if (signal.aborted) return false;
    keep(open, key, found);
    if (run.peek() === open && step.peek() === i) {
      body.value = found;
      bodyTrouble.value = null;
    }
    loading.value = false;
    const next = i + towards;
    if (next < 0 || next >= open.outline.steps.length || kept.get(open)?.has(keyOf(open, next))) return true;
    const ahead = await loadBody(open, next, signal);
    if (!signal.aborted) keep(open, keyOf(open, next), ahead);
    return true;
  } catch (reason) {
    if (signal.aborted) return false;
    loading.value = false;
    bodyTrouble.value = reason instanceof Error ? reason.message : String(reason);
    return false;
  }
}

/** A step that still gets rows is another one with every row. */
function keyOf(open: Open, i: number): string {
  const { steps } = open.outline;
  return `${i}:${steps.end(i)}:${steps.status(i)}`;
}

function keep(open: Open, key: string, found: StepBody): void {
  const all = kept.get(open) ?? new Map<string, StepBody>();
  kept.set(open, all);
  all.set(key, found);
  for (const oldest of all.keys()) {
    if (all.size <= KEPT) break;
    all.delete(oldest);
  }
}
