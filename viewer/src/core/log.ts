/**
 * The log in blocks: each is read and inflated alone, and parsed rows are kept by bytes, the oldest let go first.
 */
import { inflate } from "./inflate";
import { parseLines } from "./rows";
import type { Bytes, Index, Row } from "./types";

/** Where the log stands in its bytes. Raw logs (directories, live) are stored as they are. */
export interface Shape {
  at: number;
  stored: number;
  deflated: boolean;
}

export type Blocks = Pick<Index, "blocks" | "raw">;

const KEPT_BYTES = 4 << 20; // of raw rows that stay parsed
const AHEAD = 1 << 20; // stored bytes that a scan reads at once

/** The last entry of an ascending column that is not above `value`; 0 where all are. */
export function lastAtOrBelow(column: ArrayLike<number>, value: number): number {
  let low = 0,
    high = column.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((column[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

export class Log {
  /** Lines that are no rows, of the blocks that were read. */
  readonly left = new Map<number, number>();
  private readonly kept = new Map<number, { rows: Promise<Row[]>; bytes: number }>();
  private keptBytes = 0;

  constructor(
    readonly bytes: Bytes,
    readonly index: Blocks,
    readonly shape: Shape,
  ) {}

  get blocks(): number {
    return this.index.blocks.seq.length;
  }

  /** The block that holds row `seq`, or would. */
  blockOf(seq: number): number {
    return lastAtOrBelow(this.index.blocks.seq, seq);
  }

  rows(block: number): Promise<Row[]> {
    const kept = this.kept.get(block);
    if (kept) {
      this.kept.delete(block);
      this.kept.set(block, kept);
      return kept.rows;
    }
    const bytes = this.rawSize(block);
    const rows = this.raw(block).then((data) => {
      const parsed = parseLines(new TextDecoder().decode(data));
      this.left.set(block, parsed.left);
      return parsed.rows;
    });
    this.kept.set(block, { rows, bytes });
    this.keptBytes += bytes;
    rows.catch(() => this.forget(block));
    for (const oldest of this.kept.keys()) {
      if (this.keptBytes <= KEPT_BYTES || oldest === block) break;
      this.forget(oldest);
    }
    return rows;
  }

  /** A block that grew, or could not be read, is read anew. */
  forget(block: number): void {
    const kept = this.kept.get(block);
    if (!kept) return;
    this.kept.delete(block);
    this.keptBytes -= kept.bytes;
  }

  async row(seq: number): Promise<Row | null> {
    const rows = await this.rows(this.blockOf(seq));
    return rows.find((row) => row.seq === seq) ?? null;
  }

  /** The rows of a block as bytes. */
  async raw(block: number): Promise<Uint8Array> {
    const [from, to] = this.storedSpan(block);
    return this.inflated(block, await this.bytes.read(this.shape.at + from, to - from));
  }

  /** All blocks from `first` on, many read at once; the first alone, so that something can be shown soon. */
  async *scan(first = 0): AsyncGenerator<{ block: number; data: Uint8Array }> {
    let ahead = 1;
    for (let block = first; block < this.blocks;) {
      const [from] = this.storedSpan(block);
      let last = block;
      while (last + 1 < this.blocks && this.storedSpan(last + 1)[1] - from <= ahead) last++;
      const all = await this.bytes.read(this.shape.at + from, this.storedSpan(last)[1] - from);
      for (; block <= last; block++) {
        const [begins, ends] = this.storedSpan(block);
        yield { block, data: await this.inflated(block, all.subarray(begins - from, ends - from)) };
      }
      ahead = AHEAD;
    }
  }

  private rawSize(block: number): number {
    const { raw } = this.index.blocks;
    return (raw[block + 1] ?? this.index.raw) - (raw[block] as number);
  }

  private storedSpan(block: number): [number, number] {
    const { stored } = this.index.blocks;
    return [stored[block] as number, stored[block + 1] ?? this.shape.stored];
  }

  private async inflated(block: number, stored: Uint8Array): Promise<Uint8Array> {
    if (!this.shape.deflated) return stored;
    return inflate(stored, this.rawSize(block), `block ${block} of the log`, block === this.blocks - 1);
  }
}
