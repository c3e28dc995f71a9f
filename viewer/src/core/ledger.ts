/**
 * The columns of an outline while they are filled: steps, spans and marks, and the few ways in which something is entered.
 *
 * Which step a row belongs to is decided here; what a row means, in `fold.ts` (crossings) and `said.ts` (all others).
 */
import {
  Columns,
  type Ending,
  MARK_COLUMNS,
  MOVED_COLUMNS,
  REQUEST_COLUMNS,
  SPAN_COLUMNS,
  STEP_COLUMNS,
  TextWriter,
  TRACKS,
} from "./columns";
import { isText } from "./fields";
import type { Contents } from "./recording";
import { firstLine, telling } from "./telling";
import { Mark, type MarkCode, type Row, Status } from "./types";

export const MOST_LOADED = 1 << 20; // bytes of a content that is read for an outline

export class Ledger {
  readonly steps = new Columns(STEP_COLUMNS);
  readonly spans = new Columns(SPAN_COLUMNS);
  readonly marks = new Columns(MARK_COLUMNS);
  /** A row for each array of a model request: what it adds to which prefix, so that one can be put together later. */
  readonly requests = new Columns(REQUEST_COLUMNS);
  /**
   * Calls that were answered elsewhere: the row (of a tool that ran in a later step; with `outside`, of the request that
   * brought the result), the step that asked, and the call's place in it.
   */
  readonly moved = new Columns(MOVED_COLUMNS);
  readonly texts = new TextWriter();
  readonly lanes: string[] = [];
  /** Spans by their beginning: an exchange is known when it ended, and began before. */
  readonly order: number[] = [];
  readonly span: [number, number] = [0, 0];
  rows = 0;
  /** The number of the first step. */
  base = 0;
  ending: Ending | null = null;

  private laneNumbers = new Map<string, number>();
  private current = new Map<string, number>();
  private last = -1;
  private running = new Map<number, number>(); // step -> crossings under way
  private calls = new Map<number, { count: number; named: boolean }>();
  private unknown = new Set<number>();

  constructor(readonly contents: Contents) {}

  /** Step that a row of `lane` belongs to now: the last of its lane; of a lane without steps, the last of all. */
  at(lane: string): number {
    return this.current.get(lane) ?? this.last;
  }

  lane(name: string): number {
    let number = this.laneNumbers.get(name);
    if (number === undefined) {
      // Behind the last number of the column all further lanes are one.
      number = Math.min(this.lanes.length, 0xffff);
      this.laneNumbers.set(name, number);
      if (number === this.lanes.length) this.lanes.push(name);
    }
    return number;
  }

  /** A row lies in its step: the step reaches up to it. */
  reach(step: number, row: Row): void {
    if (step < 0) return;
    const { end, t1 } = this.steps.at;
    if (row.seq > (end[step] as number)) end[step] = row.seq;
    if (row.t > (t1[step] as number)) t1[step] = row.t;
  }

  open(row: Row, name = ""): number {
    const { steps } = this,
      step = steps.push();
    steps.set("seq", step, row.seq);
    steps.set("end", step, row.seq);
    steps.set("t0", step, row.t);
    steps.set("t1", step, row.t);
    steps.set("lane", step, this.lane(row.lane));
    steps.set("screenshot", step, -1);
    steps.set("name", step, this.texts.add(name));
    this.calls.delete(this.current.get(row.lane) ?? -1);
    this.calls.set(step, { count: 0, named: name !== "" });
    this.current.set(row.lane, step);
    this.last = step;
    return step;
  }

  mark(row: Row, mark: MarkCode, sub = 0, name = "", step = this.at(row.lane)): void {
    const n = this.marks.push(),
      { at } = this.marks;
    at.t[n] = row.t;
    at.seq[n] = row.seq;
    at.step[n] = step;
    at.mark[n] = mark;
    at.sub[n] = sub;
    at.name[n] = this.texts.add(name);
    this.reach(step, row);
  }

  beginSpan(row: Row, t0: number, step: number, track: (typeof TRACKS)[number], name: string): number {
    const { spans, order } = this,
      at = spans.push(),
      columns = spans.at;
    columns.t0[at] = t0;
    columns.t1[at] = -1;
    columns.seq[at] = row.seq;
    columns.step[at] = step;
    columns.track[at] = TRACKS.indexOf(track);
    columns.status[at] = Status.running;
    columns.name[at] = this.texts.add(name);
    let place = order.length;
    while (place > 0 && spans.get("t0", order[place - 1] as number) > t0) place--;
    if (place === order.length) order.push(at);
    else order.splice(place, 0, at);
    return at;
  }

  endSpan(span: number, t1: number, status: number, code = 0): void {
    this.spans.set("t1", span, t1);
    this.spans.set("status", span, status);
    this.spans.set("code", span, Math.min(code, 0xffff));
  }

  /** A call of the step; the first one gives it its name. Returns its place. */
  called(step: number, name: string, said: unknown): number {
    const calls = this.calls.get(step) ?? { count: 1, named: true };
    if (!calls.named) {
      calls.named = true;
      this.steps.set("name", step, this.texts.add(name));
      this.steps.set("detail", step, this.texts.add(telling(isText(said) ? parsed(said) : said)));
    } else if (calls.count === 0) {
      this.steps.set("detail", step, this.texts.add(`${name} ${telling(isText(said) ? parsed(said) : said)}`.trim()));
    }
    return calls.count++;
  }

  /** Names a step that has no better name yet; a call that comes later takes its place. */
  nameUnless(step: number, name: string, detail: string): void {
    const calls = this.calls.get(step);
    if (!calls || calls.count > 0) return;
    if (!calls.named) this.steps.set("name", step, this.texts.add(name));
    this.steps.set("detail", step, this.texts.add(firstLine(detail)));
  }

  observe(step: number, said: string): void {
    const line = firstLine(said);
    if (step >= 0 && line) this.steps.set("observed", step, this.texts.add(line));
  }

  fail(row: Row, step: number, said: string): void {
    this.mark(row, Mark.error, 0, firstLine(said), step);
  }

  hold(step: number): void {
    this.running.set(step, (this.running.get(step) ?? 0) + 1);
  }

  release(step: number): void {
    const left = (this.running.get(step) ?? 0) - 1;
    if (left > 0) this.running.set(step, left);
    else this.running.delete(step);
  }

  /** Nobody will know how a crossing of the step ended. */
  giveUp(step: number): void {
    if (step >= 0) this.unknown.add(step);
  }

  /** The status of each step: `over` says that no row comes any more. */
  statuses(over: boolean): Uint8Array {
    const { steps } = this,
      found = new Uint8Array(steps.length),
      here = new Set(this.current.values());
    for (let i = 0; i < steps.length; i++) {
      const open = this.running.has(i);
      found[i] =
        steps.get("denied", i) > 0
          ? Status.denied
          : steps.get("failed", i) > 0
            ? Status.failed
            : !over && (open || here.has(i))
              ? Status.running
              : open || this.unknown.has(i)
                ? Status.unknown
                : Status.ok;
    }
    return found;
  }
}

/** A text, a number as one, nothing as "". */
export const text = (value: unknown): string =>
  isText(value) ? value : typeof value === "number" ? String(value) : "";

function parsed(said: string): unknown {
  try {
    return JSON.parse(said);
  } catch {
    return said;
  }
}
