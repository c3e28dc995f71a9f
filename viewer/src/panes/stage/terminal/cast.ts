/**
 * Asciicast files (version 2 and the older 1): read enough to place them on the run's clock and to judge their size.
 *
 * The player gets the events that were read here, never the file: so it fetches nothing and parses no stranger's text.
 */
import { isObject } from "../../../core/fields";

export type CastEvent = [seconds: number, code: "o" | "r", data: string];

export interface Cast {
  columns: number;
  rows: number;
  events: CastEvent[];
  /** Seconds from its start to its last event. */
  duration: number;
  /** Unix seconds, where the header says so. */
  timestamp: number | null;
  title: string;
  /** Lines that are no events. */
  damaged: number;
}

/** A cast with more events than this is cut there; the pane says so. */
export const EVENTS = 500_000;
/** No session lasts longer (116 days): a later event is a damaged one. */
const LONGEST = 1e7;
const isTime = (value: unknown): value is number => typeof value === "number" && value >= 0 && value <= LONGEST;

/** Null where `text` is no asciicast. */
export function readCast(text: string): Cast | null {
  const newline = text.indexOf("\n");
  const first = newline < 0 ? text : text.slice(0, newline);
  const header = parse(first);
  if (isObject(header) && header.version === 2) return readLines(header, text, first.length + 1);
  const whole = parse(text);
  return isObject(whole) && whole.version === 1 ? readStdout(whole) : null;
}

/**
 * Where it began on the run's clock, in ns. The row is written behind its last event, so it began no later than that
 * says; its own timestamp is better, and where it is a whole second, right to that second.
 */
export function castStart(cast: Cast, rowT: number, t0Wall: number): number {
  const byRow = rowT - cast.duration * 1e9;
  if (cast.timestamp === null || t0Wall <= 0) return byRow;
  const byClock = cast.timestamp * 1e9 - t0Wall;
  if (!Number.isInteger(cast.timestamp)) return byClock;
  return Math.min(Math.max(byRow, byClock), byClock + 1e9);
}

function empty(header: Record<string, unknown>): Cast {
  const side = (value: unknown, otherwise: number): number =>
    typeof value === "number" && Number.isInteger(value) && value > 0 && value <= 1_000 ? value : otherwise;
  return {
    columns: side(header.width, 80),
    rows: side(header.height, 24),
    events: [],
    duration: 0,
    damaged: 0,
    timestamp: typeof header.timestamp === "number" && Number.isFinite(header.timestamp) ? header.timestamp : null,
    title: typeof header.title === "string" ? header.title : "",
  };
}

function readLines(header: Record<string, unknown>, text: string, from: number): Cast {
  const cast = empty(header);
  let at = from;
  while (at < text.length && cast.events.length < EVENTS) {
    const end = text.indexOf("\n", at);
    const line = text.slice(at, end < 0 ? text.length : end).trim();
    at = end < 0 ? text.length : end + 1;
    if (line === "") continue;
    const event = parse(line);
    if (!Array.isArray(event) || !isTime(event[0]) || typeof event[2] !== "string") {
      cast.damaged += 1;
      continue;
    }
    // Time does not run backwards in a terminal; a player would hang on a cast in which it does.
    const seconds = Math.max(cast.duration, event[0]);
    cast.duration = seconds;
    if (event[1] === "o" || event[1] === "r") cast.events.push([seconds, event[1], event[2]]);
  }
  return cast;
}

/** Version 1: one object, each event with the time since the one before. */
function readStdout(whole: Record<string, unknown>): Cast {
  const cast = empty(whole);
  for (const event of Array.isArray(whole.stdout) ? whole.stdout : []) {
    if (cast.events.length >= EVENTS) break;
    if (
      !Array.isArray(event) ||
      !isTime(event[0]) ||
      !isTime(cast.duration + event[0]) ||
      typeof event[1] !== "string"
    ) {
      cast.damaged += 1;
      continue;
    }
    cast.duration += event[0];
    cast.events.push([cast.duration, "o", event[1]]);
  }
  return cast;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
