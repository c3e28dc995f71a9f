/**
 * Columns of numbers that grow, and a table of texts: what an outline is made of. Copies of them travel between threads.
 */
type Numbers = Float64Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;
type Kind = "f64" | "i32" | "u32" | "u16" | "u8";

function made(kind: Kind, size: number): Numbers {
  switch (kind) {
    case "f64":
      return new Float64Array(size);
    case "i32":
      return new Int32Array(size);
    case "u32":
      return new Uint32Array(size);
    case "u16":
      return new Uint16Array(size);
    case "u8":
      return new Uint8Array(size);
  }
}

export const TRACKS = ["decision", "tool", "network"] as const;

export const STEP_COLUMNS = {
  seq: "u32",
  end: "u32",
  t0: "f64",
  t1: "f64",
  lane: "u16",
  status: "u8",
  failed: "u8",
  name: "u32",
  detail: "u32",
  thought: "u32",
  observed: "u32",
  model: "u32",
  tokensIn: "f64",
  tokensOut: "f64",
  think: "f64",
  tool: "f64",
  environment: "f64",
  denied: "u16",
  requested: "u16",
  consoleLines: "u32",
  requests: "u32",
  retries: "u16",
  screenshot: "i32",
  hasTokens: "u8",
} as const satisfies Record<string, Kind>;
export const SPAN_COLUMNS = {
  t0: "f64",
  t1: "f64",
  seq: "u32",
  step: "i32",
  track: "u8",
  status: "u8",
  name: "u32",
  code: "u16",
} as const satisfies Record<string, Kind>;
export const MARK_COLUMNS = {
  t: "f64",
  seq: "u32",
  step: "i32",
  mark: "u8",
  sub: "u8",
  name: "u32",
} as const satisfies Record<string, Kind>;

export const REQUEST_COLUMNS = {
  seq: "u32",
  call: "u32",
  lane: "u16",
  name: "u32",
  known: "u32",
  added: "u32",
} as const satisfies Record<string, Kind>;
export const MOVED_COLUMNS = { seq: "u32", step: "u32", place: "u16", outside: "u8" } as const satisfies Record<
  string,
  Kind
>;
/** Of a column of numbers without sign: nobody knows. */
export const UNKNOWN = 0xffffffff;

export type Table<S extends Record<string, Kind>> = { [C in keyof S]: Numbers };

/** Rows of numbers, one column each. */
export class Columns<S extends Record<string, Kind>> {
  length = 0;
  at: Table<S>;
  private room = 64;

  constructor(private readonly kinds: S) {
    this.at = this.copied(this.room, null);
  }

  /** Begin a row of zeros; returns its number. */
  push(): number {
    if (this.length === this.room) {
      this.room *= 2;
      this.at = this.copied(this.room, null);
    }
    return this.length++;
  }

  get(column: keyof S, row: number): number {
    return this.at[column][row] as number;
  }

  set(column: keyof S, row: number, value: number): void {
    this.at[column][row] = value;
  }

  add(column: keyof S, row: number, value: number): void {
    const numbers = this.at[column];
    const most = numbers instanceof Uint16Array ? 0xffff : Infinity;
    numbers[row] = Math.min(most, (numbers[row] as number) + value);
  }

  /** The rows so far, on their own, in `order` where one is given. */
  copy(order: ArrayLike<number> | null = null): Table<S> {
    return this.copied(this.length, order);
  }

  private copied(size: number, order: ArrayLike<number> | null): Table<S> {
    const copy = {} as Table<S>;
    for (const column in this.kinds) {
      const from = this.at?.[column],
        to = made(this.kinds[column] as Kind, size);
      if (from && order) gather(to as Float64Array, from as Float64Array, order);
      else if (from) to.set(from.subarray(0, Math.min(size, this.length)));
      copy[column] = to;
    }
    return copy;
  }
}

/** `to` becomes `from` in `order`. Long stretches of it are copied as they are: few rows stand elsewhere. */
function gather(to: Float64Array, from: Float64Array, order: ArrayLike<number>): void {
  for (let i = 0; i < to.length;) {
    const begins = order[i] as number;
    let length = 1;
    while (i + length < to.length && order[i + length] === begins + length) length++;
    if (length > 8) to.set(from.subarray(begins, begins + length), i);
    else for (let k = 0; k < length; k++) to[i + k] = from[begins + k] as number;
    i += length;
  }
}

export const buffersOf = (table: Record<string, Numbers>): ArrayBuffer[] =>
  Object.values(table).map((column) => column.buffer as ArrayBuffer);

/** Texts that were added since the last copy: their bytes, and where each ends. */
export interface TextChunk {
  first: number;
  ends: Uint32Array;
  bytes: Uint8Array;
}

const LONGEST = 240;
const REMEMBERED = 4096;

/** Writes texts once each, as far as they are short and frequent. Number 0 is "". */
export class TextWriter {
  count = 1;
  private known = new Map<string, number>([["", 0]]);
  private bytes = new Uint8Array(4096);
  private ends: number[] = [];
  private used = 0;
  private first = 1;
  private readonly encoder = new TextEncoder();

  /** The number of a text, cut to a line's length. */
  add(text: string): number {
    if (text === "") return 0;
    const line = text.length > LONGEST ? `${text.slice(0, LONGEST - 1).replace(/[\ud800-\udbff]$/, "")}…` : text;
    // Long texts are seldom the same twice: looking for one costs more than keeping it again.
    const known = line.length <= 64 ? this.known.get(line) : undefined;
    if (known !== undefined) return known;
    const room = line.length * 3;
    if (this.used + room > this.bytes.length) {
      const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.used + room));
      larger.set(this.bytes.subarray(0, this.used));
      this.bytes = larger;
    }
    this.used += this.encoder.encodeInto(line, this.bytes.subarray(this.used)).written;
    this.ends.push(this.used);
    if (this.known.size < REMEMBERED && line.length <= 64) this.known.set(line, this.count);
    return this.count++;
  }

  /** What came since it was asked last; it is let go of here. */
  taken(): TextChunk {
    const chunk = { first: this.first, ends: Uint32Array.from(this.ends), bytes: this.bytes.slice(0, this.used) };
    this.first = this.count;
    this.ends = [];
    this.used = 0;
    return chunk;
  }
}

/** The other side: chunks of texts, decoded when one is asked for. */
export class TextTable {
  private readonly chunks: TextChunk[] = [];
  private readonly decoder = new TextDecoder();
  private readonly recent = new Map<number, string>();

  append(chunk: TextChunk): void {
    if (chunk.ends.length > 0) this.chunks.push(chunk);
  }

  text(n: number): string {
    const known = this.recent.get(n);
    if (known !== undefined) return known;
    let low = 0,
      high = this.chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.chunks[middle] as TextChunk).first <= n) low = middle + 1;
      else high = middle;
    }
    const chunk = this.chunks[low - 1],
      at = n - (chunk?.first ?? 0);
    if (!chunk || at >= chunk.ends.length) return "";
    const text = this.decoder.decode(chunk.bytes.subarray(at > 0 ? chunk.ends[at - 1] : 0, chunk.ends[at]));
    if (this.recent.size > 2000) this.recent.clear();
    this.recent.set(n, text);
    return text;
  }
}

/** Calls are numbered by the recorder; one of another name is found by looking. */
export function callNumber(call: string): number {
  const found = /^c(\d{1,9})$/.exec(call);
  return found ? Number(found[1]) : UNKNOWN;
}

/** How the run ended, where a row says it. */
export interface Ending {
  outcome: string | null;
  disposition: string | null;
  error: string | null;
  exit: number | null;
  signal: string | null;
  reason: string | null;
  /** What the agent said that the run cost, in dollars. */
  cost: number | null;
}
