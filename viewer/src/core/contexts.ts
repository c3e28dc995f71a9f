/**
 * The messages of a model request, put together from its row and the earlier ones that it builds on.
 *
 * A row names the prefix that an earlier request had by the value of its chain (`docs/format/contexts.md`). The outline
 * knows how long every request's arrays are; which one it was is decided by following the chain, link by link. Only the
 * newest part of a long conversation is read; what stands before it is counted.
 */
import { textOf } from "./answers";
import { callNumber, UNKNOWN } from "./columns";
import { type Body, messageArrays, obj, readMessages } from "./dialects";
import { isElement, isObject, isText, type Json, reference } from "./fields";
import type { Folded } from "./outline";
import type { LogRecording } from "./recording";
import { asHex, sha256 } from "./sha256";
import type { Message, Missing, Row } from "./types";
import { missing } from "./values";

const MOST_ROWS = 48; // earlier requests that are read for one
const CANDIDATES = 8;

export interface Context {
  messages: Message[] | Missing;
  /** How many of them the request before had. */
  kept: number;
}

interface ArrayForm {
  name: string;
  base: [string, number] | null;
  add: unknown[];
}

/** The messages of the request in `row`. */
export async function messagesOf(recording: LogRecording, outline: Folded, row: Row): Promise<Context> {
  const route = isText(row.data.name) ? row.data.name : "";
  const nothing = (why: Missing): Context => ({ messages: why, kept: 0 });
  const body = await bodyForm(recording, row);
  if ("missing" in body) return nothing(body as unknown as Missing);
  const reader = new Reader(recording, outline, isText(body.tier));
  const template = await reader.text(row, body.template);
  if (template === null) return nothing({ missing: "lost", why: "its template cannot be read" });
  let parsed: Body;
  try {
    parsed = obj(JSON.parse(template));
  } catch {
    return { messages: readMessages(route, { text: template }), kept: 0 };
  }
  let kept = 0,
    left = 0;
  const wanted = messageArrays(route);
  for (const array of arraysOf(body)) {
    if (!wanted.includes(array.name)) continue;
    const elements = await reader.elements(row, array);
    if (elements === null)
      return nothing({ missing: "lost", why: "an earlier request that it builds on cannot be read" });
    left = elements.left;
    kept = elements.known;
    parsed[array.name] = elements.texts.map(parsedText);
  }
  const messages = readMessages(route, parsed);
  // A message of the template (instructions) stands before those of the array; one element may be several messages.
  const count = wanted.reduce(
    (sum, name) => sum + (Array.isArray(parsed[name]) ? (parsed[name] as unknown[]).length : 0),
    0,
  );
  const before = Math.max(0, messages.length - count);
  if (left === 0) return { messages, kept: kept > 0 ? Math.min(messages.length, kept + before) : 0 };
  const told: Message = {
    role: "earlier",
    text: `${left} earlier messages are shown at the steps that added them`,
    calls: [],
  };
  return { messages: [told, ...messages], kept: Math.min(messages.length + 1, kept - left + before + 1) };
}

function parsedText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { role: "", content: text };
  }
}

async function bodyForm(recording: LogRecording, row: Row): Promise<Json> {
  let body: unknown = row.data.body;
  const ref = reference(body);
  if (ref) {
    const data = await recording.contents.content(ref);
    if ("missing" in data) return data as unknown as Json;
    body = parsedText(new TextDecoder().decode(data));
  }
  const gone = missing(body);
  if (gone) return gone as unknown as Json;
  return isObject(body) && !("missing" in body) ? body : { missing: "lost", why: "the request has no body on record" };
}

function arraysOf(body: Json): (ArrayForm & { form: Json })[] {
  return (Array.isArray(body.arrays) ? body.arrays : []).flatMap((form: unknown) => {
    if (!isObject(form) || !isText(form.name)) return [];
    const base =
      Array.isArray(form.base) && isText(form.base[0]) && typeof form.base[1] === "number"
        ? (form.base as [string, number])
        : null;
    return [{ name: form.name, base, add: Array.isArray(form.add) ? form.add : [], form }];
  });
}

class Reader {
  private readonly rows = new Map<number, Row | null>();

  constructor(
    private readonly recording: LogRecording,
    private readonly outline: Folded,
    /** Whether its hashes are keyed: then a link is believed, not followed. */
    private readonly keyed: boolean,
  ) {}

  /** The elements of an array, the newest that are read; `left` of the oldest are not, and `known` it had before. */
  async elements(
    row: Row,
    array: ArrayForm & { form: Json },
  ): Promise<{ texts: string[]; left: number; known: number } | null> {
    const own = await this.added(row, array);
    if (own === null) return null;
    const known = array.base?.[1] ?? 0,
      parts = [own];
    let need = array.base,
      before = row,
      rows = 0;
    while (need && need[1] > 0) {
      if (rows++ >= MOST_ROWS) break;
      const link = await this.link(before, array.name, need);
      if (!link) return null;
      parts.push(link.texts);
      need = link.base;
      before = link.row;
    }
    return { texts: parts.reverse().flat(), left: need?.[1] ?? 0, known };
  }

  /** The earlier request that had the prefix `need`: what of it that request had added, and what stands before that. */
  private async link(
    before: Row,
    name: string,
    need: [string, number],
  ): Promise<{ texts: string[]; base: [string, number] | null; row: Row } | null> {
    const { requests } = this.outline;
    let tried = 0;
    for (const sameLane of [true, false]) {
      for (let at = requests.seq.length - 1; at >= 0; at--) {
        if ((requests.seq[at] as number) >= before.seq) continue;
        if (this.outline.text(requests.name[at] as number) !== name) continue;
        if ((this.outline.lanes[requests.lane[at] as number] === before.lane) !== sameLane) continue;
        const known = requests.known[at] as number,
          added = requests.added[at] as number;
        if (known >= need[1] || (added !== UNKNOWN && known + added < need[1])) continue;
        if (tried++ >= CANDIDATES) return null;
        const found = await this.tried(requests.seq[at] as number, name, need);
        if (found) return found;
      }
    }
    return null;
  }

  private async tried(
    seq: number,
    name: string,
    need: [string, number],
  ): Promise<{ texts: string[]; base: [string, number] | null; row: Row } | null> {
    const row = await this.row(seq);
    const body = row && (await bodyForm(this.recording, row));
    if (!row || !body || "missing" in body) return null;
    const array = arraysOf(body).find((array) => array.name === name);
    if (!array) return null;
    const added = await this.added(row, array);
    if (!added) return null;
    const known = array.base?.[1] ?? 0,
      texts = added.slice(0, need[1] - known);
    if (known + texts.length !== need[1]) return null;
    if (this.keyed) return { texts, base: array.base, row };
    let c = fromHex(array.base?.[0] ?? "0".repeat(64));
    const encoder = new TextEncoder();
    for (const text of texts) c = sha256(Uint8Array.of(5), c, sha256(encoder.encode(text)));
    return asHex(c) === need[0] ? { texts, base: array.base, row } : null;
  }

  private async added(row: Row, array: ArrayForm & { form: Json }): Promise<string[] | null> {
    let { add } = array;
    const ref = reference(array.form.add);
    if (ref) {
      const data = await this.recording.contents.content(ref);
      const loaded = "missing" in data ? null : parsedText(new TextDecoder().decode(data));
      if (!Array.isArray(loaded) || !loaded.every(isElement)) return null;
      add = loaded;
    }
    const texts: string[] = [];
    for (const form of add) {
      const text = await this.text(row, form);
      if (text === null) return null;
      texts.push(text);
    }
    return texts;
  }

  /** A text of a request, wherever it stands. */
  async text(row: Row, form: unknown, hops = 0): Promise<string | null> {
    if (isObject(form) && Array.isArray(form.$e)) {
      const [call, otherArray, otherIndex] = form.$e as [unknown, unknown, unknown];
      if (!isText(call) || hops > 4 || !Number.isInteger(otherArray) || !Number.isInteger(otherIndex)) return null;
      const other = call === row.call ? row : await this.rowOf(call);
      const body = other && (await bodyForm(this.recording, other));
      if (!other || !body || "missing" in body) return null;
      if (otherArray === -1) return this.text(other, body.template, hops + 1);
      const holder = arraysOf(body)[otherArray as number];
      const add = holder && reference(holder.form.add) ? await this.added(other, holder) : null;
      if (add) return add[otherIndex as number] ?? null;
      return this.text(other, holder?.add[otherIndex as number], hops + 1);
    }
    const text = await textOf(form, this.recording.contents);
    if (isText(text)) return text;
    return "missing" in text ? null : new TextDecoder().decode(text);
  }

  private async rowOf(call: string): Promise<Row | null> {
    const number = callNumber(call),
      { requests } = this.outline;
    for (let at = 0; at < requests.seq.length; at++) {
      if (requests.call[at] !== number) continue;
      const row = await this.row(requests.seq[at] as number);
      if (row?.call === call) return row;
    }
    return null;
  }

  private async row(seq: number): Promise<Row | null> {
    const known = this.rows.get(seq);
    if (known !== undefined) return known;
    const row = await this.recording.row(seq);
    this.rows.set(seq, row);
    return row;
  }
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => Number.parseInt(text.slice(i * 2, i * 2 + 2), 16));
}
