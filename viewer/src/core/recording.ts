/**
 * What all recordings have in common: rows by block and by number from a log, whatever holds the contents.
 *
 * `plan` says to a worker how to read the same log and contents for itself.
 */
import type { Source } from "./bytes";
import type { Container } from "./container";
import type { Json } from "./fields";
import type { Log, Shape } from "./log";
import type { Annotation, BlobRef, Index, Missing, Recording, Row } from "./types";

/** What a worker is told. `container` finds contents in the same bytes; `base` is the address of a server's directory. */
export interface Plan {
  index: Index;
  shape: Shape;
  container: Container | null;
  base: string | null;
  live: boolean;
}

/** The contents of a recording as bytes, however they are kept. */
export interface Contents {
  content(ref: BlobRef): Promise<Uint8Array | Missing>;
}

export type Media = Awaited<ReturnType<Recording["media"]>>;

export abstract class LogRecording implements Recording {
  abstract readonly kind: Recording["kind"];
  abstract readonly index: Index;
  abstract readonly manifest: Json | null;
  abstract readonly contents: Contents;

  constructor(
    readonly label: string,
    readonly source: Source,
    readonly log: Log,
    public header: Row,
  ) {}

  abstract plan(): Plan;
  abstract thumb(name: string): Promise<Blob | null>;
  abstract media(): Promise<Media>;
  abstract annotations(): Promise<Annotation[]>;

  rows(block: number): Promise<Row[]> {
    return this.log.rows(block);
  }

  row(seq: number): Promise<Row | null> {
    return this.log.row(seq);
  }

  async content(ref: BlobRef): Promise<Blob | Missing> {
    const found = await this.contents.content(ref);
    return "missing" in found ? found : new Blob([found as Uint8Array<ArrayBuffer>], { type: safeType(ref.type) });
  }
}

/** A media type as a Blob may have it: one that a page would run in our name is none that we give. */
function safeType(type: string): string {
  return /^[\w.+-]+\/[\w.+-]+(;\s*charset=[\w-]+)?$/.test(type) ? type : "application/octet-stream";
}

/** A first row for a log that lost its own, so that everything else can be shown. */
export function standIn(manifest: Json | null): Row {
  const said = manifest ?? {};
  const data = {
    format: said.format ?? "worldline/1",
    run: said.run ?? "",
    attempt: said.attempt ?? "",
    session: said.session ?? null,
    capture: said.capture ?? "full",
    task: { text: null },
    agent: {},
    t0_wall: "0",
    lost: true,
  };
  return { seq: 0, t: 0, kind: "meta", src: "header", lane: "main", data };
}
