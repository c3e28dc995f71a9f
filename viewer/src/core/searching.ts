/**
 * Search over all rows, block by block: every text of a row, answers put together from their pieces, requests by what they
 * add, and at last the contents that are texts. What is masked is not looked into; what was not, is counted.
 */
import { bodyNow, headerOf } from "./answers";
import { type Answer, readAnswer } from "./dialects";
import { isObject, isText, type Json, reference } from "./fields";
import type { Log } from "./log";
import type { Contents } from "./recording";
import { expressionOf, type Found, type Query, sensitive } from "./query";
import { parseLine } from "./rows";
import type { BlobRef, Row } from "./types";

const MOST_HITS = 1000;
const AROUND = 60;
const MOST_CONTENT = 4 << 20;
const MOST_CONTENTS = 64 << 20;
const DEEPEST = 60;

export class Searching {
  private readonly found: Found = { hits: [], rows: 0, done: false, full: false, left: { masked: 0, contents: 0 } };
  private readonly expression: RegExp;
  /** Where the query's text stands in a row, it stands so in its line: other lines need not be parsed. */
  private readonly asWritten: boolean;
  private readonly answers = new Map<string, { row: Row; route: string; forms: unknown[]; size: number }>();
  private readonly contents = new Map<string, { ref: BlobRef; row: Row }>();
  private hits = 0;

  constructor(
    private readonly query: Query,
    private readonly say: (found: Found) => void,
    private readonly stopped: () => boolean,
  ) {
    this.expression = expressionOf(query);
    this.asWritten = !query.regex && !/["\\\p{Cc}]/u.test(query.text);
  }

  async run(log: Log, contents: Contents): Promise<void> {
    const decoder = new TextDecoder();
    let said = performance.now();
    for await (const { data } of log.scan()) {
      const text = decoder.decode(data);
      for (let at = 0; at < text.length;) {
        const found = text.indexOf("\n", at),
          end = found < 0 ? text.length : found;
        this.line(text.slice(at, end));
        at = end + 1;
      }
      if (this.stopped()) return;
      if (this.found.full) break;
      if (this.found.hits.length > 0 || performance.now() - said > 150) {
        this.tell();
        said = performance.now();
        // A pause in which an order to stop can come in.
        await new Promise((go) => setTimeout(go));
      }
    }
    for (const { row, route, forms } of this.answers.values())
      this.answer(row, readAnswer(route, 0, "", forms.filter(isText).join("")));
    await this.inContents(contents);
    this.found.done = true;
    if (!this.stopped()) this.tell();
  }

  private tell(): void {
    this.say({ ...this.found, left: { ...this.found.left } });
    this.found.hits = [];
  }

  private line(line: string): void {
    if (line === "" || this.found.full) return;
    this.found.rows++;
    const plainly = this.asWritten && !line.includes('"kind":"decision"') && !line.includes('"$blob"');
    // What is masked counts as left out, whether or not something in it would match: that alone would tell.
    if (plainly && !this.query.masked && !this.matches(line)) return;
    const row = parseLine(line, false);
    if (!row) return;
    if (this.isMasked(row)) {
      this.found.left.masked++;
      if (row.kind === "decision") this.began(row);
      return;
    }
    if (row.kind === "decision") return this.decision(row);
    this.walk(row, row.data, "", 0);
  }

  private matches(text: string): boolean {
    this.expression.lastIndex = 0;
    return this.expression.test(text);
  }

  private isMasked(row: Row): boolean {
    if (!this.query.masked || !sensitive(row)) return false;
    return !this.query.revealed.some(([first, last]) => row.seq >= first && row.seq <= last);
  }

  private began(row: Row): void {
    if (row.src === "request" && row.call)
      this.answers.set(row.call, { row, route: isText(row.data.name) ? row.data.name : "", forms: [], size: 0 });
  }

  private decision(row: Row): void {
    const open = row.call === undefined ? undefined : this.answers.get(row.call);
    if (row.src === "request") {
      this.began(row);
      return this.request(row);
    }
    if (row.src === "chunk") {
      if (open && open.size < 8 << 20)
        (open.forms.push(row.data.body), (open.size += isText(row.data.body) ? row.data.body.length : 1));
      return;
    }
    if (row.call !== undefined) this.answers.delete(row.call);
    const { body, pieces: _, headers: __, ...facts } = row.data;
    const forms = open ? [...open.forms, ...(body === undefined ? [] : [body])] : [body];
    const now = bodyNow(forms, row.data);
    if (now === null) this.remember(row, forms);
    else {
      const answer = readAnswer(
        open?.route ?? "",
        typeof row.data.status === "number" ? row.data.status : 0,
        headerOf(row.data, "content-type"),
        now,
      );
      if (answer) this.answer(row, answer);
      else this.look(row, now, "body");
    }
    this.walk(row, facts, "", 0);
  }

  private answer(row: Row, answer: Answer | null): void {
    if (!answer) return;
    this.look(row, answer.text, "text");
    this.look(row, answer.reasoning, "reasoning");
    for (const call of answer.calls) this.look(row, `${call.name} ${call.arguments}`, "calls");
  }

  /** A request's texts are JSON of their own: looked into as what they hold. */
  private request(row: Row): void {
    const { body, ...facts } = row.data;
    this.walk(row, facts, "", 0);
    if (!isObject(body)) return;
    const texts: [string, unknown][] = [["template", body.template]];
    for (const array of Array.isArray(body.arrays) ? body.arrays : [])
      if (isObject(array) && Array.isArray(array.add))
        array.add.forEach((form: unknown, at) => texts.push([`${String(array.name)}[+${at}]`, form]));
    for (const [where, form] of texts) {
      if (!isText(form)) {
        this.remember(row, [form]);
        continue;
      }
      if (this.asWritten && !this.matches(form)) continue;
      try {
        this.walk(row, JSON.parse(form), where, 0);
      } catch {
        this.look(row, form, where);
      }
    }
  }

  private walk(row: Row, value: unknown, where: string, depth: number): void {
    if (isText(value)) return this.look(row, value, where);
    if (typeof value === "number") return this.look(row, String(value), where);
    if (typeof value !== "object" || value === null || depth > DEEPEST) return;
    const ref = reference(value);
    if (ref) return this.remember(row, [value]);
    if (Array.isArray(value)) value.forEach((inner, at) => this.walk(row, inner, `${where}[${at}]`, depth + 1));
    else
      for (const [key, inner] of Object.entries(value as Json))
        this.walk(row, inner, where ? `${where}.${key}` : key, depth + 1);
  }

  private look(row: Row, text: string, where: string): void {
    this.expression.lastIndex = 0;
    for (let match = this.expression.exec(text); match && !this.found.full; match = this.expression.exec(text)) {
      if (match[0] === "") {
        this.expression.lastIndex++;
        continue;
      }
      const end = match.index + match[0].length;
      this.found.hits.push({
        seq: row.seq,
        t: row.t,
        lane: row.lane,
        kind: `${row.kind}/${row.src}`,
        where,
        before: text.slice(Math.max(0, match.index - AROUND), match.index),
        match: match[0].slice(0, 400),
        after: text.slice(end, end + AROUND),
      });
      if (++this.hits >= MOST_HITS) this.found.full = true;
    }
  }

  private remember(row: Row, forms: unknown[]): void {
    for (const form of forms) {
      const ref = reference(form);
      if (ref && !this.contents.has(ref.name)) this.contents.set(ref.name, { ref, row });
    }
  }

  private async inContents(contents: Contents): Promise<void> {
    let left = MOST_CONTENTS;
    for (const { ref, row } of this.contents.values()) {
      if (this.stopped()) return;
      const isWords =
        /^(text\/|application\/(x-worldline-deep\+)?json|application\/octet-stream|application\/x-asciicast)/.test(
          ref.type,
        );
      if (!isWords || ref.size > MOST_CONTENT || ref.size > left || this.found.full) {
        this.found.left.contents++;
        continue;
      }
      left -= ref.size;
      const data = await contents.content(ref);
      if ("missing" in data) {
        this.found.left.contents++;
        continue;
      }
      const text = new TextDecoder().decode(data);
      if (/json$/.test(ref.type) && !text.startsWith("[")) {
        try {
          this.walk(row, JSON.parse(text), "content", 0);
          continue;
        } catch {
          // no JSON after all: looked through as text
        }
      }
      this.look(row, text, "content");
      if (this.found.hits.length > 0) this.tell();
    }
  }
}
