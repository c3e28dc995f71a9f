/**
 * `index.json` of a bundle: columns that find a block by row, time or byte. A hint, so it is looked at before it is used.
 *
 * Old ones are raised to the newest form, and of a log that has none (cut, changed, still written) one is made by reading.
 */
import { isObject, isSize, isText, type Json } from "./fields";
import { parseLines } from "./rows";
import type { Index, Row } from "./types";
import { Unreadable } from "./unreadable";

const MOST_BLOCK = 32 << 20; // bytes of raw rows between two listed borders
const BLOCK_BYTES = 256 * 1024;
const MOST_MARKS = 2048;
const MARKED = new Set(["decision/request", "decision/response", "action/tool_call", "observation/tool_result"]);

/** The index in a file's text. Throws where it is none that can be used. */
export function readIndex(text: string, stored: number): Index {
  const wrong = (what: string): Unreadable => new Unreadable("damaged", `index.json: ${what}`);
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    throw wrong("no JSON");
  }
  if (!isObject(said) || !isText(said.format) || !/^worldline-index\/\d+$/.test(said.format)) throw wrong("no index");
  const index = (said.format === "worldline-index/0" ? upcast(said) : said) as unknown as Index;
  const { blocks, marks, kinds, lanes } = index;
  if (!isSize(index.rows) || !isSize(index.raw) || !Array.isArray(index.span) || !isText(index.result))
    throw wrong("no index");
  for (const table of [blocks, marks, kinds, lanes]) if (!isObject(table)) throw wrong("a table is missing");
  if (![marks.seq, marks.t, marks.kind, kinds.name, lanes.name].every(Array.isArray))
    throw wrong("a column is missing");
  for (const column of [blocks.seq, blocks.raw, blocks.stored, blocks.t])
    if (!Array.isArray(column) || !column.every((n, at) => isSize(n) && (at === 0 || n >= (column[at - 1] as number))))
      throw wrong("a column of blocks does not rise");
  const { length } = blocks.seq;
  if (blocks.raw.length !== length || blocks.stored.length !== length || (index.rows > 0 && length === 0))
    throw wrong("columns of different lengths");
  if (blocks.raw[0] || blocks.stored[0] || blocks.seq[0] || (blocks.stored.at(-1) ?? 0) > stored)
    throw wrong("blocks outside the log");
  for (let i = 0; i < length; i++)
    if (
      (blocks.raw[i + 1] ?? index.raw) - (blocks.raw[i] as number) > MOST_BLOCK ||
      (blocks.raw[i] as number) > index.raw
    )
      throw wrong("a block of impossible size");
  return index;
}

function upcast(old: Json): Json {
  const counts = (rows: unknown): Json => {
    const all = Object.entries(isObject(rows) ? rows : {}),
      first = all.slice(0, 256);
    return {
      name: first.map(([name]) => name),
      rows: first.map(([, n]) => n),
      others: all.slice(256).reduce((sum, [, n]) => sum + Number(n), 0),
    };
  };
  const marks = isObject(old.marks) ? old.marks : {},
    trouble = old.first_trouble;
  const first = (column: unknown): unknown => (Array.isArray(column) ? column.slice(0, MOST_MARKS) : column);
  return {
    ...old,
    span: [],
    blocks: { ...(isObject(old.blocks) ? old.blocks : {}), t: [] },
    marks: {
      total: Array.isArray(marks.seq) ? marks.seq.length : 0,
      seq: first(marks.seq),
      t: first(marks.t),
      kind: first(marks.kind),
      call: first(marks.call),
    },
    kinds: counts(old.kinds),
    lanes: counts(old.lanes),
    trouble: isSize(trouble) ? { seq: trouble, t: null, kind: null } : null,
  };
}

/** Makes an index of raw rows as they come: of what was cut, or is still written. Blocks are stored as they are. */
export class IndexMaker {
  constructor(
    readonly index: Index = {
      format: "worldline-index/1",
      rows: 0,
      raw: 0,
      span: [0, 0],
      blocks: { seq: [], t: [], raw: [], stored: [] },
      marks: { total: 0, seq: [], t: [], kind: [], call: [] },
      kinds: { name: [], rows: [], others: 0 },
      lanes: { name: [], rows: [], others: 0 },
      trouble: null,
      result: "",
    },
  ) {}
  private kinds = new Map<string, number>();
  private lanes = new Map<string, number>();

  /** One that goes on with `index`, which grows. */
  static of(index: Index): IndexMaker {
    const maker = new IndexMaker(index);
    index.kinds.name.forEach((name, at) => maker.kinds.set(name, at));
    index.lanes.name.forEach((name, at) => maker.lanes.set(name, at));
    return maker;
  }

  /** The next row, of `bytes` bytes with its LF. */
  row(row: Row, bytes: number): void {
    const { index } = this,
      { blocks, marks } = index,
      name = `${row.kind}/${row.src}`;
    if (index.rows === 0 || index.raw - (blocks.raw.at(-1) as number) >= BLOCK_BYTES) {
      blocks.seq.push(row.seq);
      blocks.t.push(row.t);
      blocks.raw.push(index.raw);
      blocks.stored.push(index.raw);
    }
    if (MARKED.has(name) || row.kind === "permission" || row.kind === "marker") {
      marks.total++;
      if (marks.seq.length < MOST_MARKS)
        (marks.seq.push(row.seq), marks.t.push(row.t), marks.kind.push(name), marks.call.push(row.call ?? null));
    }
    count(this.kinds, index.kinds, name);
    count(this.lanes, index.lanes, row.lane);
    index.span = [index.rows === 0 ? row.t : index.span[0], row.t];
    index.rows++;
    index.raw += bytes;
  }

  /** Bytes that are no row, which stand in the log all the same. */
  skip(bytes: number): void {
    this.index.raw += bytes;
  }

  /** Whole lines of raw text. */
  text(data: Uint8Array): void {
    const decoder = new TextDecoder();
    for (let at = 0; at < data.length;) {
      const found = data.indexOf(10, at),
        end = found < 0 ? data.length : found + 1;
      const [row] = parseLines(decoder.decode(data.subarray(at, end))).rows;
      if (row) this.row(row, end - at);
      else this.skip(end - at);
      at = end;
    }
  }
}

function count(found: Map<string, number>, counts: Index["kinds"], name: string): void {
  let at = found.get(name);
  if (at === undefined && counts.name.length < 256) {
    found.set(name, (at = counts.name.length));
    counts.name.push(name);
    counts.rows.push(0);
  }
  if (at === undefined) counts.others++;
  else counts.rows[at] = (counts.rows[at] as number) + 1;
}
