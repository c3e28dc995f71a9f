/**
 * The fold over all rows into the outline's columns: steps, spans and marks, row by row in the order of the log.
 *
 * Steps are those of `engine/steps.py`, number for number. Only what a line, a span or a mark shows is kept of them; what a
 * step says in full is read again when somebody looks at it (`bodies.ts`).
 */
import { bodyNow, bodyOf, brokenOff, headerOf } from "./answers";
import { callNumber, UNKNOWN } from "./columns";
import { type Asked, failedResponse, OpenCalls, StepCounter } from "./counting";
import { readAnswer, readResults } from "./dialects";
import { isObject, isText, type Json, reference } from "./fields";
import { Ledger, MOST_LOADED, text } from "./ledger";
import { addedTexts } from "./requests";
import { ended, observed, outcome, permission, valueIn } from "./said";
import { firstLine, inLine } from "./telling";
import { Mark, type Row, Status } from "./types";

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

export class Fold extends Ledger {
  private counter = new StepCounter();
  private explicit = new Map<string, number[]>();
  private openCalls = new OpenCalls();
  private underWay = new Map<string, UnderWay>();

  /** The next row. Where contents have to be read for it, a promise: the next one has to wait for it. */
  row(row: Row): Promise<void> | void {
    this.span[0] = this.rows === 0 ? row.t : this.span[0];
    this.span[1] = Math.max(this.span[1], row.t);
    this.rows++;
    const { call } = row;
    if (call !== undefined) return this.crossing(row, call);
    switch (row.kind) {
      case "marker":
        return row.src === "step" ? this.marker(row) : outcome(this, row);
      case "permission":
        return permission(this, row);
      case "observation":
        return observed(this, row);
      case "snapshot_ref":
        if (row.src === "checkpoint") this.mark(row, Mark.checkpoint, 0, text(row.data.checkpoint_id));
        // The steps of a branch are numbered on from where it left its parent.
        if (row.src === "branch" && Number.isInteger(row.data.step) && this.steps.length === 0)
          this.base = Math.max(0, row.data.step as number);
        return;
      case "meta":
        if (row.src === "loss") this.mark(row, Mark.loss, 0, text(row.data.what));
        if (row.src === "end") ended(this, row);
        return;
    }
  }

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
      this.giveUp(open.step);
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
      kind: row.kind,
      name: text(data.name),
      lane: row.lane,
      started: row.seq,
      t: row.t,
      model: text(data["gen_ai.request.model"]),
      step: -1,
      span: -1,
      counts: false,
      givenUp: false,
      chunks: [],
      came: 0,
    };
    if (name === "decision/request") {
      const fresh = Array.isArray(data.results) ? data.results.filter(isText) : [];
      const wait =
        fresh.some((id) => this.openCalls.askedAs(id)) || reference(data.results) ? this.results(row, open) : undefined;
      if (wait) return wait.then(() => this.asked(row, open, call));
      return this.asked(row, open, call);
    }
    if (name === "action/tool_call") {
      const ref = reference(data.arguments);
      if (ref && ref.size <= MOST_LOADED && this.openCalls.needsArguments(open.name))
        return valueIn(data.arguments, this.contents).then((inputs) => this.acts(row, open, call, inputs));
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
    const body = isObject(row.data.body) ? row.data.body : {},
      number = callNumber(call);
    const arrays = Array.isArray(body.arrays) ? body.arrays.filter(isObject) : [{}];
    for (const array of arrays.length > 0 ? arrays : [{}]) {
      const { requests } = this,
        at = requests.push(),
        form = array as Json;
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
    const failed = failedResponse(data),
      status = typeof data.status === "number" ? data.status : 0;
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
    const input = counted("input"),
      output = counted("output");
    this.steps.set("tokensIn", step, input ?? 0);
    this.steps.set("tokensOut", step, output ?? 0);
    this.steps.set("hasTokens", step, (input === null ? 0 : 1) | (output === null ? 0 : 2));
  }

  private read(row: Row, open: UnderWay, body: string | Uint8Array): void {
    const { data } = row,
      { step } = open;
    const answer = readAnswer(
      open.name,
      typeof data.status === "number" ? data.status : 0,
      headerOf(data, "content-type"),
      body,
    );
    const error = answer?.error ?? brokenOff(data, answer?.finish);
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
    if (!answer?.calls.length)
      this.nameUnless(step, error ? "(no answer)" : "(answer)", error ?? firstLine(answer?.text ?? ""));
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
    const { moved } = this,
      at = moved.push();
    moved.set("seq", at, row.seq);
    moved.set("step", at, asked.step);
    moved.set("place", at, asked.place);
    moved.set("outside", at, outside);
  }

  private returned(row: Row, open: UnderWay): void {
    const { data } = row,
      { step } = open,
      failed = "error" in data || "unrecordable" in data;
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
}
