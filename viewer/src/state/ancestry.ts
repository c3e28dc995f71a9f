/**
 * What stands before a branch: the steps that it took over from the run it left, read where they were written.
 *
 * A branch holds its own rows alone. The steps before them are numbers, names and states of its ancestors' own outlines;
 * each ancestor is opened, and judged, as a run of its own, so that its seal is said beside its part.
 */
import { effect, signal } from "@preact/signals";
import { run, version, type Open } from "./app";
import { runId, say } from "./link";
import { openServed } from "./open";

/** The run that one left, and the number of the first step of its own. */
export interface Left {
  run: string;
  step: number;
}

/** The ancestors that are open, nearest first: each says the steps from its base on, up to where it was left. */
export interface Older {
  of: Open;
  parts: Open[];
  /** Why there is no more of it; "" while it comes and where all is there. */
  missing: string;
}

export const older = signal<Older | null>(null);

export function leftOf(open: Open | null): Left | null {
  const parent = open?.recording.header.data["parent"];
  if (typeof parent !== "object" || parent === null) return null;
  const { run: left } = parent as { run?: unknown };
  return typeof left === "string" && left !== "" ? { run: left, step: open?.outline.base ?? 0 } : null;
}

/** How many steps of ancestors stand before those of `open`: none where nobody can give them. */
export function before(open: Open): number {
  const known = older.value?.of === open ? older.value : null;
  if (!reachable(open) || (known !== null && known.missing !== "" && known.parts.length === 0)) return 0;
  return leftOf(open)?.step ?? 0;
}

/** The ancestor that step `number` was recorded in, and its place there; null while it is not read, or not there. */
export function olderStep(open: Open, number: number): { part: Open; i: number } | null {
  for (const part of older.value?.of === open ? older.value.parts : []) {
    const i = number - (part.outline.base ?? 0);
    if (i >= 0) return i < part.outline.steps.length ? { part, i } : null;
  }
  return null;
}

/** To the run that this one left, at the step where they part; or at one before it. */
export function toParent(number?: number): void {
  const open = run.value,
    left = leftOf(open);
  if (open === null || left === null) return say("this run left no other");
  if (!reachable(open)) return say(`it left ${left.run}, which is not in this page`);
  const step = number ?? left.step,
    found = number === undefined ? null : olderStep(open, number);
  void openServed(found === null ? left.run : runId(found.part.recording.header.data), { step });
}

/** A bundle stands alone: no server looks for what it left. */
function reachable(open: Open): boolean {
  return open.server !== null && open.recording.kind !== "bundle" && leftOf(open) !== null;
}

/** Opens the ancestors of a branch once its own first rows are there. Returns the end of it. */
export function startAncestry(): () => void {
  let asked: Open | null = null;
  let ends: (() => void)[] = [];
  const close = (): void => {
    for (const end of ends.splice(0)) end();
  };
  const stop = effect(() => {
    void version.value;
    const open = run.value;
    if (open === asked) return;
    if (open !== null && (open.outline.version === 0 || !reachable(open))) return;
    asked = open;
    close();
    older.value = null;
    const mine: (() => void)[] = (ends = []);
    const wanted = (): boolean => asked === open && ends === mine;
    if (open !== null) void import("./climbing").then(({ climb }) => climb(open, mine, wanted));
  });
  return () => {
    stop();
    close();
  };
}
