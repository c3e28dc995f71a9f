/**
 * What is hidden on the screen, and the few who may see it for a while.
 *
 * Observations, console and network are masked until someone reveals a field (one row), a step or the whole session,
 * says why, and the record of that is written: by the server into `audit.jsonl`, else it is kept in this page. After
 * five minutes all of it is masked again. This hides from eyes that pass by. It is no secrecy: the file holds the text.
 */
import { signal } from "@preact/signals";
import { sensitive } from "../core/query";
import type { Row } from "../core/types";
import { drawer, maskOn, run, step } from "./app";
import { post } from "./server";

export type Scope = "field" | "step" | "session";

/** One reveal: of the row `seq`, of the step that `seq` belongs to, or of everything. `until` is Unix time in ms. */
export interface Reveal {
  scope: Scope;
  seq: number;
  /** The step; -1 for a session. */
  step: number;
  reason: string;
  at: string;
  until: number;
}

export const REVEAL_MS = 5 * 60_000;
export const MASKED = "[masked]";

const reveals = signal<Reveal[]>([]);
/** What was revealed in this page, for whom no server keeps it. */
export const auditTrail = signal<Reveal[]>([]);
/** What the reveal dialog is asked for. */
export const revealing = signal<{ scope: Scope; seq: number; step: number }>({ scope: "step", seq: -1, step: -1 });

export { sensitive };

let timer: ReturnType<typeof setTimeout> | undefined;

/**
 * Whether what the row `seq` holds is hidden. `scope` is the finest reveal that may open it: a "field" is opened by a
 * reveal of its row, of its step or of the session; a "session" thing only by a reveal of the session. `shownIn` is the
 * step it is shown in, which counts as its own (a screen that was taken before, a row of a lane beside others).
 */
export function masked(scope: Scope, seq: number, shownIn?: number): boolean {
  const now = Date.now();
  const open = reveals.value.filter((reveal) => reveal.until > now);
  if (open.length === 0) return maskOn.value;
  if (open.some((reveal) => reveal.scope === "session")) return false;
  if (scope === "session") return maskOn.value;
  const own = shownIn ?? stepOf(seq);
  if (open.some((reveal) => reveal.scope === "step" && reveal.step === own)) return false;
  if (scope === "step") return maskOn.value;
  return open.some((reveal) => reveal.scope === "field" && reveal.seq === seq) ? false : maskOn.value;
}

/** The text where it may be seen, else a word in its place: what goes to the clipboard and into a search. */
export function seen(text: string, scope: Scope, seq: number, shownIn?: number): string {
  return masked(scope, seq, shownIn) ? MASKED : text;
}

/** The row as it may be shown and copied: its fields of contents masked, what it is left as it is. */
export function shown(row: Row, shownIn?: number): Row {
  if (!sensitive(row) || !masked("field", row.seq, shownIn)) return row;
  const hidden = ["value", "result", "error", "body", "said_error"];
  const data = Object.fromEntries(
    Object.entries(row.data).map(([key, value]) => [key, hidden.includes(key) ? MASKED : value]),
  );
  return { ...row, data };
}

/** Opens the dialog that asks for the reason: for the row `seq`, as it is shown at the step under the playhead. */
export function askReveal(scope: Scope, seq?: number): void {
  const steps = run.value?.outline.steps;
  revealing.value = { scope, seq: seq ?? (steps && steps.length > 0 ? steps.seq(step.value) : 0), step: step.value };
  drawer.value = "reveal";
}

/** Reveals for five minutes. With a server behind the page nothing is shown before the server has written who saw it. */
export async function reveal(scope: Scope, seq: number, reason: string, at: number = stepOf(seq)): Promise<void> {
  const why = reason.trim();
  if (why === "") throw new Error("Say why: the reason is written beside the recording.");
  const entry: Reveal = {
    scope,
    seq,
    reason: why,
    step: scope === "session" ? -1 : at,
    at: new Date().toISOString(),
    until: Date.now() + REVEAL_MS,
  };
  const server = run.value?.server ?? null;
  if (server !== null) await post(`${server}audit`, { what: "reveal", scope, seq, reason: why });
  auditTrail.value = [...auditTrail.value, entry];
  reveals.value = [...reveals.value, entry];
  plan();
}

/** Masks everything again, now. */
export function maskAgain(): void {
  reveals.value = [];
  if (timer !== undefined) clearTimeout(timer);
  timer = undefined;
}

/** The reveals that still hold, the widest first. */
export function revealed(): Reveal[] {
  const order: Scope[] = ["session", "step", "field"];
  return reveals.value
    .filter((entry) => entry.until > Date.now())
    .sort((a, b) => order.indexOf(a.scope) - order.indexOf(b.scope) || b.until - a.until);
}

function stepOf(seq: number): number {
  return run.value?.outline.steps.of(seq) ?? -1;
}

/** Panes read `masked` again when a reveal has ended: the list changes then. */
function plan(): void {
  if (timer !== undefined) clearTimeout(timer);
  timer = undefined;
  const next = Math.min(...reveals.value.map((entry) => entry.until));
  if (!Number.isFinite(next)) return;
  timer = setTimeout(
    () => {
      reveals.value = reveals.value.filter((entry) => entry.until > Date.now());
      plan();
    },
    Math.max(0, next - Date.now()),
  );
}
