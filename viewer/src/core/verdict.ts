/**
 * How the run ended, in words, and the step on which the panel opens: the cause.
 *
 * That is the denied permission at most three steps before the failure, else the first failure, else the first denial,
 * else (in a comparison) the first divergence, else the start.
 */
import { costIn } from "./cost";
import { isObject, isText, type Json } from "./fields";
import type { Folded } from "./outline";
import { Mark, PERMISSIONS, Status, type Recording, type Steps, type Verdict } from "./types";

/** A denial explains a failure that came at most so many steps behind it. */
export const NEAR = 3;

const OUTCOMES: Record<string, Verdict["outcome"]> = {
  succeeded: "succeeded",
  success: "succeeded",
  failed: "failed",
  failure: "failed",
  partial: "partial",
  partly: "partial",
  interrupted: "interrupted",
};

export function verdictOf(recording: Recording, outline: Folded, divergence = -1): Verdict {
  const { steps } = outline,
    failed: number[] = [],
    denied: number[] = [];
  for (let i = 0; i < steps.length; i++) {
    if (failedIn(steps, i)) failed.push(i);
    if (steps.denied(i) > 0) denied.push(i);
  }
  const result = resultOf(recording);
  const ended = said(result, "outcome") ?? outline.ending?.outcome ?? null;
  const outcome = outcomeOf(recording, outline, ended);
  const cost = (result ? costIn(result) : null) ?? outline.ending?.cost ?? null;
  const verdict: Verdict = {
    ...(cost === null ? {} : { cost }),
    outcome,
    reason: outcome === "unknown" && ended !== null && ended !== "unknown" ? ended : reasonOf(result, outline),
    failedAt: -1,
    deniedAt: denied[0] ?? -1,
    openAt: 0,
    openBecause: "start",
  };
  // A run that says it failed, and shows no failure on the way, failed where it ended.
  if (failed.length === 0 && outcome === "failed" && outline.done && steps.length > 0 && denied.length === 0)
    failed.push(steps.length - 1);
  for (const at of failed) {
    const cause = denied.findLast((i) => i <= at && at - i <= NEAR);
    if (cause === undefined) continue;
    return { ...verdict, failedAt: at, deniedAt: cause, openAt: cause, openBecause: "denied before failure" };
  }
  const first = failed[0];
  if (first !== undefined) return { ...verdict, failedAt: first, openAt: first, openBecause: "first failure" };
  if (denied[0] !== undefined) return { ...verdict, openAt: denied[0], openBecause: "first denial" };
  if (divergence >= 0) return { ...verdict, openAt: divergence, openBecause: "first divergence" };
  return verdict;
}

/** Whether something in step `i` went wrong beside a denial. */
function failedIn(steps: Steps, i: number): boolean {
  const known = (steps as Partial<{ failed(i: number): boolean }>).failed;
  return known ? known.call(steps, i) : steps.status(i) === Status.failed;
}

function outcomeOf(recording: Recording, outline: Folded, ended: string | null): Verdict["outcome"] {
  const disposition =
    said(recording.manifest, "disposition") ??
    said(resultOf(recording), "disposition") ??
    outline.ending?.disposition ??
    null;
  if (ended !== null && ended !== "unknown") {
    const known = Object.hasOwn(OUTCOMES, ended.toLowerCase()) ? OUTCOMES[ended.toLowerCase()] : undefined;
    if (known) return known;
  }
  if (recording.kind === "live" && !outline.ending) return "running";
  // A log without an end and without a seal: its writer is gone.
  if (recording.kind === "directory" && outline.done && !outline.ending && recording.manifest === null)
    return "interrupted";
  if (disposition === "partial" || disposition === "sanitized-partial") return "interrupted";
  return "unknown";
}

/** What it failed with: the exception's name, the exit code, the signal, or why it stopped. */
function reasonOf(result: Json | null, outline: Folded): string {
  const { ending } = outline;
  const signal = said(result, "signal") ?? ending?.signal;
  if (signal) return signal;
  const error = result?.error,
    word = isObject(error) ? said(error, "type") : isText(error) ? error : ending?.error;
  // Of an exception's text only its name: the words are the agent's, and may be masked.
  if (word) return /^[\w.]+(?=: )/.exec(word)?.[0] ?? word.slice(0, 80);
  const exit = Number.isInteger(result?.exit) ? (result?.exit as number) : ending?.exit;
  if (exit) return `exit ${exit}`;
  return said(result, "reason") ?? ending?.reason ?? "";
}

const read = new WeakMap<Recording, Json | null>();

/** `result.json`, which stands in the index. */
export function resultOf(recording: Recording): Json | null {
  const known = read.get(recording);
  if (known !== undefined) return known;
  let parsed: unknown = null;
  try {
    parsed = JSON.parse(recording.index.result);
  } catch {
    parsed = null; // there is none yet, or it is not what was packed: the integrity says so
  }
  const result = isObject(parsed) ? parsed : null;
  if (result) read.set(recording, result);
  return result;
}

function said(holder: Json | null, name: string): string | null {
  const value = holder?.[name];
  return isText(value) && value !== "" ? value : null;
}

/** Permissions of the run by their word, counted from the marks. */
export function permissionsOf(outline: Folded): Record<string, number> {
  const counts: Record<string, number> = {},
    { marks } = outline;
  for (let i = 0; i < marks.length; i++) {
    if (marks.mark(i) !== Mark.permission) continue;
    const word = PERMISSIONS[marks.sub(i)] ?? "other";
    counts[word] = (counts[word] ?? 0) + 1;
  }
  return counts;
}
