/**
 * The outline as panes see it: columns that a fold made, in this thread or in a worker, and the questions asked of them.
 *
 * A snapshot replaces the columns; texts are only ever added. `version` counts the snapshots.
 */
import {
  buffersOf,
  Columns,
  type Ending,
  MARK_COLUMNS,
  MOVED_COLUMNS,
  REQUEST_COLUMNS,
  SPAN_COLUMNS,
  STEP_COLUMNS,
  type Table,
  type TextChunk,
  TextTable,
  TRACKS,
} from "./columns";
import type { Fold } from "./fold";
import { lastAtOrBelow } from "./log";
import { type MarkCode, type Marks, type Outline, type Spans, Status, type StatusCode, type Steps } from "./types";

export interface Snapshot {
  scanned: number;
  total: number;
  done: boolean;
  base: number;
  span: [number, number];
  lanes: string[];
  steps: Table<typeof STEP_COLUMNS>;
  spans: Table<typeof SPAN_COLUMNS>;
  marks: Table<typeof MARK_COLUMNS>;
  requests: Table<typeof REQUEST_COLUMNS>;
  moved: Table<typeof MOVED_COLUMNS>;
  texts: TextChunk;
  ending: Ending | null;
}

/** What a fold knows now. `over` says that no row comes any more. */
export function snapshot(fold: Fold, total: number, done: boolean, over: boolean): Snapshot {
  const steps = fold.steps.copy(),
    spans = fold.spans.copy(fold.order),
    marks = fold.marks.copy(),
    requests = fold.requests.copy(),
    moved = fold.moved.copy();
  steps.status.set(fold.statuses(over));
  const screens = new Map<number, number>(); // lane -> its newest screenshot
  for (let i = 0; i < steps.seq.length; i++) {
    const lane = steps.lane[i] as number,
      own = steps.screenshot[i] as number;
    if (own >= 0) screens.set(lane, own);
    else steps.screenshot[i] = screens.get(lane) ?? -1;
    const rest =
      (steps.t1[i] as number) - (steps.t0[i] as number) - (steps.think[i] as number) - (steps.tool[i] as number);
    steps.environment[i] = Math.max(0, rest);
  }
  for (let i = 0; i < spans.t1.length; i++) {
    if ((spans.t1[i] as number) >= 0) continue;
    spans.t1[i] = fold.span[1];
    if (over) spans.status[i] = Status.unknown;
  }
  return {
    scanned: fold.rows,
    total,
    done,
    base: fold.base,
    span: [...fold.span],
    lanes: [...fold.lanes],
    steps,
    spans,
    marks,
    requests,
    moved,
    texts: fold.texts.taken(),
    ending: fold.ending,
  };
}

export const transferred = (s: Snapshot): ArrayBuffer[] => [
  ...buffersOf(s.steps),
  ...buffersOf(s.spans),
  ...buffersOf(s.marks),
  ...buffersOf(s.requests),
  ...buffersOf(s.moved),
  s.texts.ends.buffer as ArrayBuffer,
  s.texts.bytes.buffer as ArrayBuffer,
];

/** An outline that takes snapshots as they come. */
export class Folded implements Outline {
  version = 0;
  scanned = 0;
  total: number;
  done = false;
  base = 0;
  span: [number, number];
  lanes: string[] = [];
  ending: Ending | null = null;
  steps: Steps = EMPTY_STEPS;
  spans: Spans = EMPTY_SPANS;
  marks: Marks = EMPTY_MARKS;
  /** The arrays of the model requests so far (`contexts.ts`). */
  requests: Table<typeof REQUEST_COLUMNS> = new Columns(REQUEST_COLUMNS).copy();
  moved: Table<typeof MOVED_COLUMNS> = new Columns(MOVED_COLUMNS).copy();
  private readonly texts = new TextTable();

  constructor(total: number, span: [number, number] | []) {
    this.total = total;
    this.span = span.length === 2 ? [...span] : [0, 0];
  }

  text(n: number): string {
    return this.texts.text(n);
  }

  take(s: Snapshot): void {
    this.texts.append(s.texts);
    this.scanned = s.scanned;
    this.total = s.total;
    this.done = s.done;
    this.base = s.base;
    // Until all is read the axis is as long as the index says, so that nothing moves while more comes in.
    this.span = s.done || s.span[1] > this.span[1] ? s.span : [s.span[0], this.span[1]];
    this.lanes = s.lanes;
    this.ending = s.ending;
    const text = (n: number): string => this.texts.text(n);
    this.steps = new StepView(s.steps, text);
    this.spans = new SpanView(s.spans, text);
    this.marks = new MarkView(s.marks, text);
    this.requests = s.requests;
    this.moved = s.moved;
    this.version++;
  }
}

type Text = (n: number) => string;

class StepView implements Steps {
  readonly length: number;
  private readonly byLane = new Map<number, number[]>();

  constructor(
    private readonly at: Table<typeof STEP_COLUMNS>,
    private readonly texts: Text,
  ) {
    this.length = at.seq.length;
  }

  private number(column: keyof typeof STEP_COLUMNS, i: number): number {
    return this.at[column][i] ?? 0;
  }

  seq(i: number): number {
    return this.number("seq", i);
  }
  end(i: number): number {
    return this.number("end", i);
  }
  t0(i: number): number {
    return this.number("t0", i);
  }
  t1(i: number): number {
    return this.number("t1", i);
  }
  lane(i: number): number {
    return this.number("lane", i);
  }
  status(i: number): StatusCode {
    return this.number("status", i) as StatusCode;
  }
  name(i: number): string {
    return this.texts(this.number("name", i));
  }
  detail(i: number): string {
    return this.texts(this.number("detail", i));
  }
  thought(i: number): string {
    return this.texts(this.number("thought", i));
  }
  observed(i: number): string {
    return this.texts(this.number("observed", i));
  }
  model(i: number): string {
    return this.texts(this.number("model", i));
  }
  tokensIn(i: number): number {
    return this.number("tokensIn", i);
  }
  tokensOut(i: number): number {
    return this.number("tokensOut", i);
  }
  think(i: number): number {
    return this.number("think", i);
  }
  tool(i: number): number {
    return this.number("tool", i);
  }
  environment(i: number): number {
    return this.number("environment", i);
  }
  denied(i: number): number {
    return this.number("denied", i);
  }
  requested(i: number): number {
    return this.number("requested", i);
  }
  consoleLines(i: number): number {
    return this.number("consoleLines", i);
  }
  requests(i: number): number {
    return this.number("requests", i);
  }
  retries(i: number): number {
    return this.number("retries", i);
  }
  screenshot(i: number): number {
    return i < this.length ? this.number("screenshot", i) : -1;
  }

  /** Whether something in it went wrong, also where it counts as denied. */
  failed(i: number): boolean {
    return this.number("failed", i) > 0;
  }

  of(seq: number, lane?: number): number {
    const { seq: begins } = this.at;
    if (this.length === 0 || (begins[0] as number) > seq) return -1;
    if (lane === undefined) return lastAtOrBelow(begins, seq);
    const own = this.stepsOf(lane);
    // A lane without a step of its own belongs to whatever step is under way.
    if (own.length === 0 || (begins[own[0] as number] as number) > seq) return lastAtOrBelow(begins, seq);
    let low = 0,
      high = own.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((begins[own[middle] as number] as number) <= seq) low = middle + 1;
      else high = middle;
    }
    return own[low - 1] as number;
  }

  private stepsOf(lane: number): number[] {
    const known = this.byLane.get(lane);
    if (known) return known;
    const own: number[] = [];
    for (let i = 0; i < this.length; i++) if (this.at.lane[i] === lane) own.push(i);
    this.byLane.set(lane, own);
    return own;
  }
}

class SpanView implements Spans {
  readonly length: number;

  constructor(
    private readonly at: Table<typeof SPAN_COLUMNS>,
    private readonly texts: Text,
  ) {
    this.length = at.seq.length;
  }

  t0(i: number): number {
    return this.at.t0[i] ?? 0;
  }
  t1(i: number): number {
    return this.at.t1[i] ?? 0;
  }
  seq(i: number): number {
    return this.at.seq[i] ?? 0;
  }
  step(i: number): number {
    return this.at.step[i] ?? -1;
  }
  track(i: number): (typeof TRACKS)[number] {
    return TRACKS[this.at.track[i] ?? 0] ?? "decision";
  }
  status(i: number): StatusCode {
    return (this.at.status[i] ?? 0) as StatusCode;
  }
  name(i: number): string {
    return this.texts(this.at.name[i] ?? 0);
  }
  code(i: number): number {
    return this.at.code[i] ?? 0;
  }
}

class MarkView implements Marks {
  readonly length: number;

  constructor(
    private readonly at: Table<typeof MARK_COLUMNS>,
    private readonly texts: Text,
  ) {
    this.length = at.seq.length;
  }

  t(i: number): number {
    return this.at.t[i] ?? 0;
  }
  seq(i: number): number {
    return this.at.seq[i] ?? 0;
  }
  step(i: number): number {
    return this.at.step[i] ?? -1;
  }
  mark(i: number): MarkCode {
    return (this.at.mark[i] ?? 0) as MarkCode;
  }
  sub(i: number): number {
    return this.at.sub[i] ?? 0;
  }
  name(i: number): string {
    return this.texts(this.at.name[i] ?? 0);
  }
}

const NONE: Text = () => "";
const EMPTY_STEPS: Steps = new StepView(new Columns(STEP_COLUMNS).copy(), NONE);
const EMPTY_SPANS: Spans = new SpanView(new Columns(SPAN_COLUMNS).copy(), NONE);
const EMPTY_MARKS: Marks = new MarkView(new Columns(MARK_COLUMNS).copy(), NONE);
