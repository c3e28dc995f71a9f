/**
 * The bodies of the step under the playhead: loaded when it rests, never while it runs.
 *
 * What is shown stays until the next is there, so nothing blanks; a step that was left before its bodies came is given
 * up. Its neighbour in the direction of the last move is loaded ahead, so that one more press finds it there.
 */
import { effect, signal } from "@preact/signals";
import { loadBody } from "./reading";
import { body, run, step, version, type Open } from "./app";
import type { StepBody } from "../core/types";

/** The playhead rests when it has stood still for this long. */
export const REST_MS = 90;
const KEPT = 12;

/** Why the step's bodies could not be loaded; null while they can. */
export const bodyTrouble = signal<string | null>(null);
/** True while bodies of the step under the playhead are on their way. */
export const loading = signal(false);

const kept = new WeakMap<Open, Map<string, StepBody>>();

export function startBodies(): () => void {
  let rest: ReturnType<typeof setTimeout> | undefined;
  let abort: AbortController | undefined;
  let before = 0;
  const stop = effect(() => {
    const open = run.value;
    const i = step.value;
    void version.value;
    clearTimeout(rest);
    if (open === null || i >= open.outline.steps.length) return;
    const key = keyOf(open, i);
    const shown = body.peek();
    if (shown !== null && shown === kept.get(open)?.get(key)) return;
    const known = kept.get(open)?.get(key);
    if (known !== undefined) {
      abort?.abort();
      body.value = known;
      loading.value = false;
      return;
    }
    rest = setTimeout(() => {
      abort?.abort();
      abort = new AbortController();
      const towards = Math.sign(i - before) || 1;
      before = i;
      void load(open, i, key, towards, abort.signal);
    }, REST_MS);
  });
  return () => {
    clearTimeout(rest);
    abort?.abort();
    stop();
  };
}

async function load(open: Open, i: number, key: string, towards: number, signal: AbortSignal): Promise<void> {
  loading.value = true;
  try {
    const found = await loadBody(open, i, signal);
    if (signal.aborted) return;
    keep(open, key, found);
    if (run.peek() === open && step.peek() === i) {
      body.value = found;
      bodyTrouble.value = null;
    }
    loading.value = false;
    const next = i + towards;
    if (next < 0 || next >= open.outline.steps.length || kept.get(open)?.has(keyOf(open, next))) return;
    const ahead = await loadBody(open, next, signal);
    if (!signal.aborted) keep(open, keyOf(open, next), ahead);
  } catch (reason) {
    if (signal.aborted) return;
    loading.value = false;
    bodyTrouble.value = reason instanceof Error ? reason.message : String(reason);
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
