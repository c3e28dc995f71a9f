/**
 * What an agent says beside its crossings, entered into the outline: permissions, observations, how it ended.
 */
import type { Ending } from "./columns";
import { costIn } from "./cost";
import { isObject, isText, type Json, reference } from "./fields";
import { type Ledger, MOST_LOADED, text } from "./ledger";
import type { Contents } from "./recording";
import { firstLine } from "./telling";
import { Mark, PERMISSIONS, type Row, Status } from "./types";
import { plain, valueOf } from "./values";

const LEVELS: Record<string, number> = { warning: 1, warn: 1, error: 2 };
const NOTHING: Ending = {
  outcome: null,
  disposition: null,
  error: null,
  exit: null,
  signal: null,
  reason: null,
  cost: null,
};

const listed = (value: unknown): unknown[] =>
  Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];

export function permission(ledger: Ledger, row: Row): void {
  const number = PERMISSIONS.indexOf(row.src as (typeof PERMISSIONS)[number]),
    step = ledger.at(row.lane);
  ledger.mark(row, Mark.permission, number < 0 ? 255 : number, text(row.data.capability), step);
  if (step < 0) return;
  if (row.src === "denied" || row.src === "revoked") ledger.steps.add("denied", step, 1);
  if (row.src === "requested") ledger.steps.add("requested", step, 1);
}

/** An observation; where its value has to be read first, a promise. */
export function observed(ledger: Ledger, row: Row): Promise<void> | void {
  const ref = reference(row.data.value);
  if (ref && (row.src === "console" || row.src === "network") && ref.size <= MOST_LOADED)
    return valueIn(row.data.value, ledger.contents).then((value) => enter(ledger, row, value));
  return enter(ledger, row, row.data.value);
}

function enter(ledger: Ledger, row: Row, form: unknown): void {
  const step = ledger.at(row.lane),
    { steps } = ledger;
  switch (row.src) {
    case "screenshot":
      if (step >= 0) steps.set("screenshot", step, row.seq);
      // By its content's name a picture is drawn from the index and the thumbnails alone.
      return ledger.mark(row, Mark.screenshot, 0, reference(form)?.name ?? "", step);
    case "console":
      for (const line of listed(form)) {
        const said = isObject(line) ? line : { text: line };
        ledger.mark(row, Mark.console, LEVELS[text(said.level)] ?? 0, firstLine(text(said.text)), step);
        if (step >= 0) steps.add("consoleLines", step, 1);
      }
      return;
    case "network":
      for (const exchange of listed(form)) if (isObject(exchange)) enterExchange(ledger, row, exchange, step);
      return ledger.reach(step, row);
    default:
      ledger.mark(row, Mark.observation, 0, row.src, step);
      if (step >= 0 && steps.get("observed", step) === 0 && isText(form)) ledger.observe(step, form);
  }
}

function enterExchange(ledger: Ledger, row: Row, said: Json, step: number): void {
  const status = typeof said.status === "number" ? said.status : 0,
    ms = typeof said.ms === "number" && said.ms > 0 ? said.ms : 0;
  const failed = status >= 400 || status === 0 || isText(said.error);
  // It is told as it ended: it began so much before.
  const span = ledger.beginSpan(
    row,
    Math.max(0, row.t - ms * 1e6),
    step,
    "network",
    `${text(said.method) || "GET"} ${text(said.url)}`,
  );
  ledger.endSpan(span, row.t, failed ? Status.failed : Status.ok, Math.max(0, Math.trunc(status)));
  if (step >= 0) ledger.steps.add("requests", step, 1);
}

export function outcome(ledger: Ledger, row: Row): void {
  if (row.src !== "outcome") return ledger.mark(row, Mark.observation, 0, row.src);
  ledger.mark(row, Mark.outcome, 0, text(row.data.outcome));
  const before = ledger.ending ?? NOTHING;
  ledger.ending = { ...before, outcome: text(row.data.outcome) || null, cost: costIn(row.data) ?? before.cost };
}

/** The row `meta/end`. */
export function ended(ledger: Ledger, row: Row): void {
  const { data } = row,
    before = ledger.ending ?? NOTHING;
  const error = isObject(data.error) ? `${text(data.error.type)}: ${text(data.error.message)}` : text(data.error);
  ledger.ending = {
    outcome: text(data.outcome) || before.outcome,
    disposition: text(data.disposition) || null,
    error: error || null,
    exit: Number.isInteger(data.exit) ? (data.exit as number) : null,
    signal: text(data.signal) || null,
    reason: text(data.reason) || null,
    cost: costIn(data) ?? before.cost,
  };
}

/** The value of a form, read from its content where it stands in one; null where it cannot be. */
export async function valueIn(form: unknown, contents: Contents): Promise<unknown> {
  const ref = reference(form);
  if (!ref) return plain(form);
  const data = await contents.content(ref);
  if ("missing" in data) return null;
  try {
    return valueOf(ref, new TextDecoder().decode(data));
  } catch {
    return null; // a content that is no JSON has nothing to draw
  }
}
