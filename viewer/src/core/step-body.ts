/**
 * One step in full: its rows, what the model decided, which tools ran, permissions, console, network, what was observed.
 *
 * Read when somebody looks at the step. What stands in contents is loaded up to a size that a person reads.
 */
import { bodyOf, brokenOff, headerOf } from "./answers";
import { messagesOf } from "./contexts";
import { OpenCalls } from "./counting";
import { readAnswer, readResults, type Answer } from "./dialects";
import { isObject, isText, type Json, reference } from "./fields";
import type { Folded } from "./outline";
import type { LogRecording } from "./recording";
import { addedTexts } from "./requests";
import { observations, stateOf } from "./seen";
import {
  PERMISSIONS,
  type ActedOn,
  type ConsoleLine,
  type Decision,
  type Exchange,
  type PermissionCard,
  type Row,
  type StepBody,
  type ToolCall,
} from "./types";
import { isJsonContent, missing, plain, valueOf } from "./values";

const MOST_BLOCKS = 24; // of a step that lasts very long, its beginning and its end
const MOST_VALUE = 4 << 20;

const text = (value: unknown): string => (isText(value) ? value : typeof value === "number" ? String(value) : "");
const count = (value: unknown): number | null => (Number.isInteger(value) ? (value as number) : null);
const ms = (value: unknown): number | null => (typeof value === "number" ? value / 1e6 : null);
const listed = (value: unknown): unknown[] =>
  Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];

/** Read step `i`. Rejects where the recording cannot be read, or `signal` says that nobody waits any more. */
export async function loadStep(
  recording: LogRecording,
  outline: Folded,
  i: number,
  signal?: AbortSignal,
): Promise<StepBody> {
  const rows = await rowsOf(recording, outline, i, signal);
  const values = new Values(recording);
  const [decision, calls] = await decisionAndCalls(recording, outline, i, rows, values);
  signal?.throwIfAborted();
  const lines: ConsoleLine[] = [],
    network: Exchange[] = [];
  for (const row of rows.filter(
    (row) => row.kind === "observation" && (row.src === "console" || row.src === "network"),
  )) {
    for (const value of listed(await values.of(row.data.value)))
      if (row.src === "console") lines.push(consoleLine(row, value));
      else if (isObject(value)) network.push(exchange(row, value));
  }
  const seen = await observations(recording, outline, i, rows);
  signal?.throwIfAborted();
  const state = await stateOf(recording, outline, i, (form) => values.of(form));
  return {
    index: i,
    rows,
    decision,
    calls,
    permissions: cards(rows),
    console: lines,
    network,
    ...seen,
    state,
    acted: actedOn(calls),
  };
}

/** The rows of a step: those of its lane up to the next one, and how its crossings ended. */
export async function rowsOf(
  recording: LogRecording,
  outline: Folded,
  i: number,
  signal?: AbortSignal,
): Promise<Row[]> {
  const { steps, lanes } = outline,
    first = recording.log.blockOf(steps.seq(i)),
    last = recording.log.blockOf(steps.end(i));
  const numbers = new Map(lanes.map((name, at) => [name, at]));
  const stepAt = (row: Row): number => steps.of(row.seq, numbers.get(row.lane) ?? -1);
  const calls = new Map<string, number>(),
    rows: Row[] = [];
  for (let block = first; block <= last; block++) {
    if (last - first >= MOST_BLOCKS && block === first + MOST_BLOCKS / 2) block = last - MOST_BLOCKS / 2 + 1;
    signal?.throwIfAborted();
    for (const row of await recording.rows(block)) {
      if (row.seq < steps.seq(i) || row.seq > steps.end(i)) continue;
      const begins = row.call === undefined || isText(row.key);
      const step = begins ? stepAt(row) : calls.get(row.call as string);
      if (begins && row.call !== undefined) calls.set(row.call, stepAt(row));
      if (step === i) rows.push(row);
    }
  }
  return rows;
}

/** Values of rows, as readable JSON; those in contents are loaded where they are not too large to read. */
class Values {
  constructor(private readonly recording: LogRecording) {}

  async of(form: unknown): Promise<unknown> {
    const gone = missing(form);
    if (gone) return gone;
    const ref = reference(form);
    if (!ref || !isJsonContent(ref) || ref.size > MOST_VALUE) return plain(form);
    const data = await this.recording.contents.content(ref);
    if ("missing" in data) return data;
    try {
      return valueOf(ref, new TextDecoder().decode(data));
    } catch {
      return { missing: "corrupt", why: "its content is no JSON" };
    }
  }

  /** A field that readers rely on, where it had no room in its row. */
  async field(data: Json, name: string): Promise<unknown> {
    return reference(data[name]) ? this.of(data[name]) : data[name];
  }
}

interface Crossing {
  start: Row;
  chunks: Row[];
  end: Row | null;
  unknown: Row | null;
}

function crossings(rows: Row[]): Crossing[] {
  const found = new Map<string, Crossing>();
  for (const row of rows) {
    if (row.call === undefined || row.src === "sample") continue;
    const open = found.get(row.call);
    if (isText(row.key)) found.set(row.call, { start: row, chunks: [], end: null, unknown: null });
    else if (!open) continue;
    else if (row.kind === "meta") open.unknown = row;
    else if (row.src === "chunk") open.chunks.push(row);
    else open.end = row;
  }
  return [...found.values()];
}

async function decisionAndCalls(
  recording: LogRecording,
  outline: Folded,
  i: number,
  rows: Row[],
  values: Values,
): Promise<[Decision | null, ToolCall[]]> {
  const asked = new OpenCalls(),
    calls: ToolCall[] = [];
  // In the order in which things became known: a call is asked for when its answer is whole, a tool begins when it begins.
  const known = (crossing: Crossing): number =>
    crossing.start.kind === "decision" ? (crossing.end ?? crossing.start).seq : crossing.start.seq;
  const all = crossings(rows)
    .filter(({ start }) => start.kind === "action" || !isText(start.parent_id))
    .sort((a, b) => known(a) - known(b));
  let last: { crossing: Crossing; answer: Answer | null; error: string | null } | null = null;
  for (const crossing of all) {
    if (crossing.start.kind === "action") {
      if (movedTo(outline, crossing.start.seq, i) === null) await ran(crossing, asked, calls, values);
      continue;
    }
    const { answer, error } = await answerOf(recording, crossing, values);
    if (crossing.end || !last) last = { crossing, answer, error };
    for (const use of answer?.calls ?? []) {
      const ran = use.runner === "client" ? "unanswered" : "outside";
      const seq = crossing.end?.seq ?? crossing.start.seq,
        id = use.id || null,
        nothing = { result: null, error: null, effect: null, ms: null };
      calls.push({ seq, end: null, id, name: use.name, arguments: parsed(use.arguments), ...nothing, ran });
      if (use.runner === "client") asked.add({ ...use, step: i, place: calls.length - 1 });
    }
  }
  await later(recording, outline, i, calls, values);
  return [last && (await decisionOf(recording, outline, last.crossing, last.answer, last.error)), calls];
}

/** The step whose call the tool at row `seq` answers, where that is another one than `i`. */
function movedTo(outline: Folded, seq: number, i: number): number | null {
  const at = outline.moved.seq.indexOf(seq),
    step = outline.moved.step[at];
  return at < 0 || step === undefined || step === i || outline.moved.outside[at] === 1 ? null : step;
}

/** Calls of this step that were answered elsewhere: a tool ran in a later step, or a later request brought the result. */
async function later(
  recording: LogRecording,
  outline: Folded,
  i: number,
  calls: ToolCall[],
  values: Values,
): Promise<void> {
  const { seq, step, place, outside } = outline.moved;
  for (let at = 0; at < seq.length; at++) {
    const number = place[at] as number,
      call = step[at] === i ? calls[number] : undefined;
    const row = call ? await recording.row(seq[at] as number) : null;
    if (!call || !row) continue;
    if (outside[at] === 1) {
      const body = await addedTexts(row.data.body, recording.contents, MOST_VALUE);
      const result =
        body === null ? undefined : readResults(text(row.data.name), body).find(({ id }) => id === call.id);
      Object.assign(call, { ran: "outside", result: result ? parsed(result.text) : null, end: row.seq });
      continue;
    }
    const where = outline.steps.of(row.seq, outline.lanes.indexOf(row.lane));
    const crossing = crossings(await rowsOf(recording, outline, where)).find(({ start }) => start.seq === row.seq);
    if (!crossing) continue;
    const alone: ToolCall[] = [];
    await ran(crossing, new OpenCalls(), alone, values);
    calls[number] = { ...(alone[0] as ToolCall), id: call.id };
  }
}

async function answerOf(
  recording: LogRecording,
  { start, chunks, end }: Crossing,
  values: Values,
): Promise<{ answer: Answer | null; error: string | null }> {
  if (!end) return { answer: null, error: "no answer is on record" };
  const { data } = end;
  if ("error" in data) {
    const error = await values.field(data, "error");
    return {
      answer: null,
      error: isObject(error) && isText(error.message) ? error.message : "the model was not reached",
    };
  }
  const forms = [...chunks, end].flatMap((row) => ("body" in row.data ? [row.data.body] : []));
  const body = await bodyOf(forms, data, recording.contents);
  if (!isText(body) && "missing" in body) return { answer: null, error: `the answer is not here: ${body.why}` };
  const answer = readAnswer(text(start.data.name), count(data.status) ?? 0, headerOf(data, "content-type"), body);
  const broken = brokenOff(data, answer?.finish);
  if (answer) return { answer, error: answer.error ?? broken };
  const said = isText(body) ? body : new TextDecoder().decode(body);
  // A route that is no known dialect: what came is shown as it came.
  const nothing = { model: null, reasoning: "", calls: [], finish: [], usage: null, error: null, alternatives: [] };
  return { answer: { ...nothing, text: said.slice(0, MOST_VALUE), complete: data.complete !== false }, error: broken };
}

async function decisionOf(
  recording: LogRecording,
  outline: Folded,
  { start, end }: Crossing,
  answer: Answer | null,
  error: string | null,
): Promise<Decision> {
  const asked = start.data,
    data = end?.data ?? {};
  const context = await messagesOf(recording, outline, start);
  return {
    seq: start.seq,
    end: end?.seq ?? start.seq,
    route: text(asked.name),
    model: answer?.model || text(data["gen_ai.response.model"]) || text(asked["gen_ai.request.model"]),
    seed: count(asked["gen_ai.request.seed"]),
    temperature: typeof asked["gen_ai.request.temperature"] === "number" ? asked["gen_ai.request.temperature"] : null,
    tokensIn: count(data["gen_ai.usage.input_tokens"]) ?? answer?.usage?.input ?? null,
    tokensOut: count(data["gen_ai.usage.output_tokens"]) ?? answer?.usage?.output ?? null,
    ms: ms(data.elapsed_ns),
    text: answer?.text ?? "",
    reasoning: answer?.reasoning ?? "",
    finish: answer?.finish ?? [],
    error,
    calls: (answer?.calls ?? []).map((use) => ({ id: use.id || null, name: use.name, arguments: use.arguments })),
    alternatives: answer?.alternatives ?? [],
    ...context,
  };
}

/** A tool's run: the call of the model that it answers, or one of its own. */
async function ran(
  { start, end, unknown }: Crossing,
  asked: OpenCalls,
  calls: ToolCall[],
  values: Values,
): Promise<void> {
  const inputs = await values.of(start.data.arguments ?? {});
  const known = asked.runAs(text(start.data.name), inputs);
  if (known) asked.close(known);
  const call: ToolCall = {
    seq: start.seq,
    end: end?.seq ?? unknown?.seq ?? null,
    id: known?.id || null,
    name: text(start.data.name),
    arguments: inputs,
    result: null,
    error: null,
    effect: isText(start.effect) ? start.effect : null,
    ms: ms(end?.data.elapsed_ns),
    ran: end ? "recorded" : "unknown",
  };
  if (known) calls[known.place] = call;
  else calls.push(call);
  if (unknown && !end) call.error = text(unknown.data.why) || "nobody knows how it ended";
  if (!end) return;
  const { data } = end;
  if ("error" in data) {
    const error = await values.field(data, "error");
    call.error =
      isObject(error) && isText(error.message)
        ? `${text(error.type)}: ${error.message}`
        : "it failed; its words are not here";
  } else if ("result" in data) call.result = await values.of(data.result);
  else if (isObject(data.unrecordable))
    call.error = `its result is not in the record: ${text(data.unrecordable.type)} at ${text(data.unrecordable.path)}`;
}

/** What was asked and how it was answered, one card each. */
function cards(rows: Row[]): PermissionCard[] {
  const found: PermissionCard[] = [],
    open: { card: PermissionCard; t: number }[] = [];
  for (const row of rows.filter(({ kind }) => kind === "permission")) {
    const word = PERMISSIONS.find((known) => known === row.src);
    if (!word) continue;
    const capability = text(row.data.capability),
      facts = plain(isObject(row.data.facts) ? row.data.facts : {}) as Json;
    const asked = word === "requested" ? undefined : open.findLast(({ card }) => sameAsk(card, capability, facts));
    if (asked) {
      Object.assign(asked.card, {
        answer: row.seq,
        word,
        facts: { ...asked.card.facts, ...facts },
        askedMs: (row.t - asked.t) / 1e6,
      });
      if (word !== "escalated") open.splice(open.indexOf(asked), 1);
      continue;
    }
    const card: PermissionCard = { seq: row.seq, answer: null, word, capability, facts, askedMs: null };
    found.push(card);
    if (word === "requested") open.push({ card, t: row.t });
  }
  return found;
}

function sameAsk(card: PermissionCard, capability: string, facts: Json): boolean {
  if (facts.id !== undefined && card.facts.id !== undefined) return facts.id === card.facts.id;
  return card.capability === capability;
}

const LEVELS: Record<string, ConsoleLine["level"]> = {
  log: "log",
  info: "info",
  warning: "warning",
  warn: "warning",
  error: "error",
  debug: "debug",
};

function consoleLine(row: Row, value: unknown): ConsoleLine {
  const said: Json = isObject(value) ? value : { text: value };
  const where = isText(said.url) ? `${said.url}${count(said.line) === null ? "" : `:${String(said.line)}`}` : "";
  const words = isText(said.text) ? said.text : (JSON.stringify(said.text ?? said) ?? "");
  return { seq: row.seq, t: row.t, level: LEVELS[text(said.level)] ?? "log", text: words, where };
}

function exchange(row: Row, said: Json): Exchange {
  const number = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);
  return {
    seq: row.seq,
    t: row.t,
    method: text(said.method) || "GET",
    url: text(said.url),
    status: number(said.status),
    ms: number(said.ms),
    size: number(said.size),
    type: text(said.type),
    call: row.call ?? null,
    error: isText(said.error) ? said.error : null,
  };
}

/** What the step's first aimed action was aimed at. Its box is for whoever has the tree (`panes/stage`). */
function actedOn(calls: ToolCall[]): ActedOn | null {
  for (const { name, arguments: said } of calls) {
    if (!isObject(said)) continue;
    const ref = text(said.ref) || null,
      selector = text(said.selector) || null,
      role = text(said.role) || null;
    const point =
      typeof said.x === "number" && typeof said.y === "number" ? ([said.x, said.y] as [number, number]) : null;
    const label = (role || ref || selector || point) && isText(said.name) ? said.name : null;
    if (ref || selector || role || point)
      return { verb: name.split(".").at(-1) ?? name, ref, role, name: label, selector, box: null, point };
  }
  return null;
}

function parsed(said: string): unknown {
  try {
    return plain(JSON.parse(said));
  } catch {
    return said;
  }
}
