/**
 * The fold over all rows into the outline's columns: steps, spans and marks, row by row in the order of the log.
 *
 * Steps are those of `engine/steps.py`, number for number. Only what a line, a span or a mark shows is kept of them; what a
 * step says in full is read again when somebody looks at it (`bodies.ts`).
 */
import { bodyNow, bodyOf, headerOf } from "./answers";
import { callNumber, Columns, type Ending, MARK_COLUMNS, MOVED_COLUMNS, REQUEST_COLUMNS, SPAN_COLUMNS, STEP_COLUMNS, TextWriter, TRACKS, UNKNOWN } from "./columns";
import { type Asked, failedResponse, OpenCalls, StepCounter } from "./counting";
import { readAnswer, readResults } from "./dialects";
import { isObject, isText, type Json, reference } from "./fields";
import type { Contents } from "./recording";
import { addedTexts } from "./requests";
import { firstLine, inLine, telling } from "./telling";
import { Mark, type MarkCode, PERMISSIONS, type Row, Status } from "./types";
import { plain, valueOf } from "./values";

const MOST_LOADED = 1 << 20; // bytes of a content that the fold reads
const CONSOLE: Record<string, number> = { warning: 1, warn: 1, error: 2 };

/** One crossing that has not ended. */
interface UnderWay {
  kind: string;
  name: string;
  lane: string;
  started: number;
  t: number;
  model: string;
  step: number;
  span: number;
  /** Whether it counts for its step: a decision inside a tool does not. */
  counts: boolean;
  givenUp: boolean;
  chunks: unknown[];
  came: number;
}

export class Fold {
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
  private counter = new StepCounter();
  private explicit = new Map<string, number[]>();
  private current = new Map<string, number>();
  private last = -1;
  private openCalls = new OpenCalls();
  private underWay = new Map<string, UnderWay>();
  private running = new Map<number, number>(); // step -> crossings under way
  private calls = new Map<number, { count: number; named: boolean }>();
  private unknown = new Set<number>();

  constructor(private readonly contents: Contents) {}

  /** The next row. Where contents have to be read for it, a promise: the next one has to wait for it. */
  row(row: Row): Promise<void> | void {
    this.span[0] = this.rows === 0 ? row.t : this.span[0];
    this.span[1] = Math.max(this.span[1], row.t);
    this.rows++;
    const { call } = row;
    if (call !== undefined) return this.crossing(row, call);
    switch (row.kind) {
      case "marker":
        return row.src === "step" ? this.marker(row) : this.outcome(row);
      case "permission":
        return this.permission(row);
      case "observation":
        return this.observation(row);
      case "snapshot_ref":
        if (row.src === "checkpoint") this.mark(row, Mark.checkpoint, 0, text(row.data.checkpoint_id));
        // The steps of a branch are numbered on from where it left its parent.
        if (row.src === "branch" && Number.isInteger(row.data.step) && this.steps.length === 0) this.base = Math.max(0, row.data.step as number);
        return;
      case "meta":
        if (row.src === "loss") this.mark(row, Mark.loss, 0, text(row.data.what));
        if (row.src === "end") this.end(row);
        return;
      case "decision":
      case "action":
        return;
      default:
        return;
    }
  }

  /** Step that a row of `lane` belongs to now: the last of its lane; of a lane without steps, the last of all. */
  private at(lane: string): number {
    return this.current.get(lane) ?? this.last;
  }

  private lane(name: string): number {
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
  private reach(step: number, row: Row): void {
    if (step < 0) return;
    const { end, t1 } = this.steps.at;
    if (row.seq > (end[step] as number)) end[step] = row.seq;
    if (row.t > (t1[step] as number)) t1[step] = row.t;
  }

  private open(row: Row, name = ""): number {
    const { steps } = this, step = steps.push();
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

  private mark(row: Row, mark: MarkCode, sub = 0, name = "", step = this.at(row.lane)): void {
    const n = this.marks.push(), { at } = this.marks;
    at.t[n] = row.t;
    at.seq[n] = row.seq;
    at.step[n] = step;
    at.mark[n] = mark;
    at.sub[n] = sub;
    at.name[n] = this.texts.add(name);
    this.reach(step, row);
  }

  private beginSpan(row: Row, t0: number, step: number, track: (typeof TRACKS)[number], name: string): number {
    const { spans, order } = this, at = spans.push(), columns = spans.at;
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

  private endSpan(span: number, t1: number, status: number, code = 0): void {
    this.spans.set("t1", span, t1);
    this.spans.set("status", span, status);
    this.spans.set("code", span, Math.min(code, 0xffff));
  }

  // ---------------------------------------------------------------------------------------------- crossings

  private crossing(row: Row, call: string): Promise<void> | void {
    const name = `${row.kind}/${row.src}`;
    if (name === "observation/sample") return this.reach(this.at(row.lane), row);
    if (isText(row.key)) return this.begun(row, call, name);
    const open = this.underWay.get(call);
    if (!open) return; // its started row is damaged
    this.reach(open.step, row);
    if (name === "decision/chunk") {
      open.came += isText(row.data.body) ? row.data.body.length : 1;
      if (open.came <= 8 << 20 && "body" in row.data) open.chunks.push(row.data.body);
    } else if (name === "meta/unknown") {
      open.givenUp = true;
      if (open.step >= 0) this.unknown.add(open.step);
      if (open.counts) this.release(open.step);
      this.endSpan(open.span, row.t, Status.unknown);
    } else if (name === "decision/response" || name === "observation/tool_result") {
      this.underWay.delete(call);
      return name === "decision/response" ? this.answered(row, open, call) : this.returned(row, open);
    }
  }

  private begun(row: Row, call: string, name: string): Promise<void> | void {
    const { data } = row;
    const open: UnderWay = {
      kind: row.kind, name: text(data.name), lane: row.lane, started: row.seq, t: row.t, model: text(data["gen_ai.request.model"]),
      step: -1, span: -1, counts: false, givenUp: false, chunks: [], came: 0,
    };
    if (name === "decision/request") {
      const fresh = Array.isArray(data.results) ? data.results.filter(isText) : [];
      const wait = fresh.some((id) => this.openCalls.askedAs(id)) || reference(data.results) ? this.results(row, open) : undefined;
      if (wait) return wait.then(() => this.asked(row, open, call));
      return this.asked(row, open, call);
    }
    if (name === "action/tool_call") {
      const ref = reference(data.arguments);
      if (ref && ref.size <= MOST_LOADED && this.openCalls.needsArguments(open.name))
        return this.value(data.arguments).then((inputs) => this.acts(row, open, call, inputs));
      return this.acts(row, open, call, data.arguments);
    }
    this.underWay.set(call, open);
  }

  private asked(row: Row, open: UnderWay, call: string): void {
    this.underWay.set(call, open);
    this.context(row, call);
    const nested = isText(row.parent_id);
    if (nested) {
      open.step = this.at(row.lane);
    } else {
      const { opens, again } = this.counter.request(row.lane, call, text(row.key));
      const inside = this.explicit.get(row.lane)?.at(-1);
      open.step = inside ?? (opens ? this.open(row) : this.at(row.lane));
      open.counts = true;
      this.hold(open.step);
      if (again && open.step >= 0) {
        this.steps.add("retries", open.step, 1);
        this.mark(row, Mark.retry, 0, open.name, open.step);
      }
    }
    open.span = this.beginSpan(row, row.t, open.step, "decision", open.model || open.name);
    this.reach(open.step, row);
  }

  private context(row: Row, call: string): void {
    const body = isObject(row.data.body) ? row.data.body : {}, number = callNumber(call);
    const arrays = Array.isArray(body.arrays) ? body.arrays.filter(isObject) : [{}];
    for (const array of arrays.length > 0 ? arrays : [{}]) {
      const { requests } = this, at = requests.push(), form = array as Json;
      requests.set("seq", at, row.seq);
      requests.set("call", at, number);
      requests.set("lane", at, this.lane(row.lane));
      requests.set("name", at, this.texts.add(text(form.name)));
      requests.set("known", at, Array.isArray(form.base) && typeof form.base[1] === "number" ? form.base[1] : 0);
      requests.set("added", at, Array.isArray(form.add) ? form.add.length : UNKNOWN);
    }
  }

  /** Results that came back in a request although the door never saw their tool. */
  private async results(row: Row, open: UnderWay): Promise<void> {
    const body = await addedTexts(row.data.body, this.contents, MOST_LOADED);
    for (const { id, text: said } of body === null ? [] : readResults(open.name, body)) {
      const call = this.openCalls.askedAs(id);
      if (!call) continue;
      this.openCalls.close(call);
      this.elsewhere(row, call, 1);
      this.observe(call.step, said);
    }
  }

  private answered(row: Row, open: UnderWay, call: string): Promise<void> | void {
    const { data } = row;
    const failed = failedResponse(data), status = typeof data.status === "number" ? data.status : 0;
    this.counter.response(call, failed);
    this.endSpan(open.span, row.t, failed ? Status.failed : Status.ok, status);
    if (!open.counts) return;
    if (!open.givenUp) this.release(open.step);
    const { step } = open;
    this.steps.add("think", step, typeof data.elapsed_ns === "number" ? data.elapsed_ns : 0);
    if ("error" in data) {
      this.steps.set("failed", step, this.steps.get("failed", step) | 1);
      this.fail(row, step, isObject(data.error) ? text(data.error.message) : "the model was not reached");
      this.nameUnless(step, "(no answer)", isObject(data.error) ? text(data.error.message) : "");
      return;
    }
    this.steps.set("model", step, this.texts.add(text(data["gen_ai.response.model"]) || open.model));
    this.tokens(step, data);
    const forms = "body" in data ? [...open.chunks, data.body] : open.chunks;
    const now = bodyNow(forms, data);
    if (now !== null) return this.read(row, open, now);
    return bodyOf(forms, data, this.contents).then((body) => {
      if (!isText(body) && "missing" in body) this.nameUnless(step, "(answer not here)", body.why);
      else this.read(row, open, body);
    });
  }

  private tokens(step: number, data: Json): void {
    const counted = (side: string): number | null => {
      const count = data[`gen_ai.usage.${side}_tokens`];
      return Number.isInteger(count) ? (count as number) : null;
    };
    const input = counted("input"), output = counted("output");
    this.steps.set("tokensIn", step, input ?? 0);
    this.steps.set("tokensOut", step, output ?? 0);
    this.steps.set("hasTokens", step, (input === null ? 0 : 1) | (output === null ? 0 : 2));
  }

  private read(row: Row, open: UnderWay, body: string | Uint8Array): void {
    const { data } = row, { step } = open;
    const answer = readAnswer(open.name, typeof data.status === "number" ? data.status : 0, headerOf(data, "content-type"), body);
    const error = answer?.error ?? (data.complete === false ? text(data.why) || "the answer broke off" : null);
    const failed = this.steps.get("failed", step) & ~1;
    this.steps.set("failed", step, failed | (error ? 1 : 0));
    if (error) {
      this.fail(row, step, error);
      this.spans.set("status", open.span, Status.failed);
    }
    if (answer?.model) this.steps.set("model", step, this.texts.add(answer.model));
    const thought = firstLine(answer?.reasoning || answer?.text || "");
    if (thought) this.steps.set("thought", step, this.texts.add(thought));
    for (const use of answer?.calls ?? []) {
      const place = this.called(step, use.name, use.arguments);
      if (use.runner === "client") this.openCalls.add({ ...use, step, place });
    }
    if (!answer?.calls.length) this.nameUnless(step, error ? "(no answer)" : "(answer)", error ?? firstLine(answer?.text ?? ""));
  }

  /** A call of the step; the first one gives it its name. Returns its place. */
  private called(step: number, name: string, said: unknown): number {
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
  private nameUnless(step: number, name: string, detail: string): void {
    const calls = this.calls.get(step);
    if (!calls || calls.count > 0) return;
    if (!calls.named) this.steps.set("name", step, this.texts.add(name));
    this.steps.set("detail", step, this.texts.add(firstLine(detail)));
  }

  private acts(row: Row, open: UnderWay, call: string, inputs: unknown): void {
    this.underWay.set(call, open);
    let step = this.at(row.lane);
    if (step < 0) {
      // It goes on with the step that was under way where the branch began.
      this.base = Math.max(0, this.base - 1);
      step = this.open(row);
    }
    const asked: Asked | undefined = this.openCalls.runAs(open.name, inputs);
    if (asked) this.openCalls.close(asked);
    else this.called(step, open.name, inputs);
    if (asked && asked.step !== step) this.elsewhere(row, asked, 0);
    open.step = step;
    open.counts = true;
    this.hold(step);
    open.span = this.beginSpan(row, row.t, step, "tool", open.name);
    this.reach(step, row);
  }

  private elsewhere(row: Row, asked: Asked, outside: number): void {
    const { moved } = this, at = moved.push();
    moved.set("seq", at, row.seq);
    moved.set("step", at, asked.step);
    moved.set("place", at, asked.place);
    moved.set("outside", at, outside);
  }

  private returned(row: Row, open: UnderWay): void {
    const { data } = row, { step } = open, failed = "error" in data || "unrecordable" in data;
    this.endSpan(open.span, row.t, failed ? Status.failed : Status.ok);
    if (!open.givenUp) this.release(step);
    this.steps.add("tool", step, typeof data.elapsed_ns === "number" ? data.elapsed_ns : 0);
    if ("error" in data) {
      const error = isObject(data.error) ? data.error : {};
      const said = isText(error.type) ? `${error.type}: ${text(error.message)}` : "it failed";
      this.steps.set("failed", step, this.steps.get("failed", step) | 2);
      this.fail(row, step, `${open.name}: ${said}`);
      this.observe(step, said);
    } else if ("result" in data) this.observe(step, inLine(data.result));
  }

  private observe(step: number, said: string): void {
    const line = firstLine(said);
    if (step >= 0 && line) this.steps.set("observed", step, this.texts.add(line));
  }

  private fail(row: Row, step: number, said: string): void {
    this.mark(row, Mark.error, 0, firstLine(said), step);
  }

  private hold(step: number): void {
    this.running.set(step, (this.running.get(step) ?? 0) + 1);
  }

  private release(step: number): void {
    const left = (this.running.get(step) ?? 0) - 1;
    if (left > 0) this.running.set(step, left);
    else this.running.delete(step);
  }

  // -------------------------------------------------------------------------------------- what the agent says

  private marker(row: Row): void {
    const begins = row.data.phase === "begin";
    const open = this.explicit.get(row.lane) ?? [];
    this.explicit.set(row.lane, open);
    if (begins) open.push(open.at(-1) ?? this.open(row, text(row.data.name)));
    const step = open.at(-1);
    if (!begins) open.pop();
    if (step !== undefined) this.reach(step, row);
    this.counter.marker(row.lane, begins);
  }

  private permission(row: Row): void {
    const number = PERMISSIONS.indexOf(row.src as (typeof PERMISSIONS)[number]);
    const step = this.current.get(row.lane) ?? this.last;
    this.mark(row, Mark.permission, number < 0 ? 255 : number, text(row.data.capability), step);
    if (step < 0) return;
    if (row.src === "denied" || row.src === "revoked") this.steps.add("denied", step, 1);
    if (row.src === "requested") this.steps.add("requested", step, 1);
  }

  private observation(row: Row): Promise<void> | void {
    const ref = reference(row.data.value);
    if (ref && (row.src === "console" || row.src === "network") && ref.size <= MOST_LOADED)
      return this.value(row.data.value).then((value) => this.observed(row, value));
    return this.observed(row, row.data.value);
  }

  private observed(row: Row, form: unknown): void {
    const step = this.at(row.lane);
    switch (row.src) {
      case "screenshot":
        if (step >= 0) this.steps.set("screenshot", step, row.seq);
        // By its content's name a picture is drawn from the index and the thumbnails alone.
        return this.mark(row, Mark.screenshot, 0, reference(form)?.name ?? "", step);
      case "console":
        for (const line of listed(form)) {
          const said = isObject(line) ? line : { text: line };
          this.mark(row, Mark.console, CONSOLE[text(said.level)] ?? 0, firstLine(text(said.text)), step);
          if (step >= 0) this.steps.add("consoleLines", step, 1);
        }
        return;
      case "network":
        for (const exchange of listed(form)) if (isObject(exchange)) this.exchange(row, exchange, step);
        return this.reach(step, row);
      default:
        this.mark(row, Mark.observation, 0, row.src, step);
        if (step >= 0 && this.steps.get("observed", step) === 0 && isText(form)) this.observe(step, form);
    }
  }

  private exchange(row: Row, said: Json, step: number): void {
    const status = typeof said.status === "number" ? said.status : 0, ms = typeof said.ms === "number" && said.ms > 0 ? said.ms : 0;
    const failed = status >= 400 || status === 0 || isText(said.error);
    const span = this.beginSpan(row, Math.max(0, row.t - ms * 1e6), step, "network", `${text(said.method) || "GET"} ${text(said.url)}`);
    this.endSpan(span, row.t, failed ? Status.failed : Status.ok, Math.max(0, Math.trunc(status)));
    if (step >= 0) this.steps.add("requests", step, 1);
  }

  private outcome(row: Row): void {
    if (row.src !== "outcome") return this.mark(row, Mark.observation, 0, row.src);
    this.mark(row, Mark.outcome, 0, text(row.data.outcome));
    this.ending = { ...(this.ending ?? NOTHING), outcome: text(row.data.outcome) || null };
  }

  private end(row: Row): void {
    const { data } = row, before = this.ending ?? NOTHING;
    const error = isObject(data.error) ? `${text(data.error.type)}: ${text(data.error.message)}` : text(data.error);
    this.ending = {
      outcome: text(data.outcome) || before.outcome, disposition: text(data.disposition) || null, error: error || null,
      exit: Number.isInteger(data.exit) ? (data.exit as number) : null, signal: text(data.signal) || null, reason: text(data.reason) || null,
    };
  }

  private async value(form: unknown): Promise<unknown> {
    const ref = reference(form);
    if (!ref) return plain(form);
    const data = await this.contents.content(ref);
    if ("missing" in data) return null;
    try {
      return valueOf(ref, new TextDecoder().decode(data));
    } catch {
      return null; // a content that is no JSON has nothing to draw
    }
  }

  // ------------------------------------------------------------------------------------------------ as it is now

  /** The status of each step: `over` says that no row comes any more. */
  statuses(over: boolean): Uint8Array {
    const { steps } = this, found = new Uint8Array(steps.length), here = new Set(this.current.values());
    for (let i = 0; i < steps.length; i++) {
      const open = this.running.has(i);
      found[i] =
        steps.get("denied", i) > 0 ? Status.denied
        : steps.get("failed", i) > 0 ? Status.failed
        : !over && (open || here.has(i)) ? Status.running
        : open || this.unknown.has(i) ? Status.unknown
        : Status.ok;
    }
    return found;
  }
}

const NOTHING: Ending = { outcome: null, disposition: null, error: null, exit: null, signal: null, reason: null };

const text = (value: unknown): string => (isText(value) ? value : typeof value === "number" ? String(value) : "");
const listed = (value: unknown): unknown[] => (Array.isArray(value) ? value : value === null || value === undefined ? [] : [value]);

function parsed(said: string): unknown {
  try {
    return JSON.parse(said);
  } catch {
    return said;
  }
}
