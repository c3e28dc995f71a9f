/**
 * A run that `worldline view` serves from its directory, sealed or still growing. The log is read by ranges, new rows come
 * as server-sent events; nothing of it is kept in the page but the newest block.
 */
import { readAnnotations } from "./annotations";
import { absolute, type Handle, type Source } from "./bytes";
import { isObject, isText, type Json } from "./fields";
import { IndexMaker, readIndex } from "./index-file";
import { Log, type Shape } from "./log";
import { type Contents, LogRecording, type Media, type Plan, standIn } from "./recording";
import type { Opened } from "./recording-bundle";
import { isNewer, parseLine, upcastManifest } from "./rows";
import type { Annotation, BlobRef, Index, Integrity, Missing, Row } from "./types";
import { Unreadable } from "./unreadable";

async function get(url: string, headers: Record<string, string> = {}): Promise<Response> {
  try {
    return await fetch(url, { cache: "no-store", credentials: "same-origin", headers });
  } catch (error) {
    throw new Unreadable(
      "network",
      `the server does not answer: ${String(error)}`,
      "Is `worldline view` still running?",
    );
  }
}

/** The growing file: a range of what is there already never changes. */
class GrowingBytes implements Source {
  fetched = 0;
  size: number;

  constructor(
    private readonly url: string,
    size: number,
  ) {
    this.size = size;
  }

  get handle(): Handle {
    return { kind: "url", url: absolute(this.url), size: this.size, tag: null };
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    if (length === 0) return new Uint8Array(0);
    const answer = await get(this.url, { Range: `bytes=${offset}-${offset + length - 1}` });
    const whole = answer.status === 200;
    if (answer.status !== 206 && !whole)
      throw new Unreadable("network", `${this.url} answered ${answer.status}`, "", offset);
    const data = new Uint8Array(await answer.arrayBuffer());
    this.fetched += data.length;
    const part = whole ? data.subarray(offset, offset + length) : data;
    if (part.length !== length)
      throw new Unreadable("truncated", `${this.url} sent ${part.length} bytes of ${length}`, "", offset);
    return part;
  }
}

/** Contents that a server gives out by name; an address that answers 410 says why there is none. */
export class ServedContents implements Contents {
  constructor(private readonly base: string) {}

  async content(ref: BlobRef): Promise<Uint8Array | Missing> {
    const answer = await get(`${this.base}contents/${ref.name}`);
    if (answer.ok) return new Uint8Array(await answer.arrayBuffer());
    if (answer.status === 410 || answer.status === 404) {
      const said: unknown = await answer.json().catch(() => null);
      if (isObject(said) && isText(said.missing))
        return { missing: said.missing as Missing["missing"], why: isText(said.why) ? said.why : "" };
      return { missing: "lost", why: "the server does not have it" };
    }
    throw new Unreadable("network", `the server answered ${answer.status}`);
  }
}

/** Open `r/<id>/` of a server. What is not `sealed` has no manifest to ask for. */
export async function openServed(
  base: string,
  kind: "directory" | "live",
  label: string,
  isSealed: boolean,
): Promise<Opened> {
  const index = await get(`${base}index.json`);
  if (!index.ok)
    throw new Unreadable("network", `${label}: the server answered ${index.status}`, "Is the run still in the store?");
  const read = readIndex(await index.text(), Number.MAX_SAFE_INTEGER);
  const manifest = isSealed ? await get(`${base}manifest.json`) : null;
  const sealed: unknown = manifest?.ok ? await manifest.json().catch(() => null) : null;
  const recording = new ServedRecording(kind, label, base, read, isObject(sealed) ? upcastManifest(sealed) : null);
  const row = read.rows > 0 ? await recording.row(0) : null;
  if (row && row.kind === "meta" && row.src === "header") recording.header = row;
  const state: Integrity["verdict"] = isNewer(recording.header)
    ? "newer"
    : kind === "live"
      ? "live"
      : recording.manifest
        ? "checking"
        : "unsealed";
  const integrity: Integrity = { verdict: state, signed: false, checked: [], problems: [] };
  if (isText(recording.manifest?.seal)) integrity.seal = recording.manifest.seal;
  return { recording, integrity };
}

export class ServedRecording extends LogRecording {
  readonly contents: Contents;
  /** The newest rows as they come; only of a run that grows. */
  readonly follow?: (on: (rows: Row[], state: "live" | "stalled" | "ended") => void) => () => void;
  private readonly shape: Shape;
  private readonly maker: IndexMaker;

  constructor(
    readonly kind: "directory" | "live",
    label: string,
    private readonly base: string,
    readonly index: Index,
    readonly manifest: Json | null,
  ) {
    const source = new GrowingBytes(`${base}events.jsonl`, index.raw);
    const shape: Shape = { at: 0, stored: index.raw, deflated: false };
    super(label, source, new Log(source, index, shape), standIn(manifest));
    this.shape = shape;
    this.contents = new ServedContents(base);
    this.maker = IndexMaker.of(index);
    if (kind === "live") this.follow = (on) => this.watch(on);
  }

  plan(): Plan {
    return {
      index: this.index,
      shape: this.shape,
      container: null,
      base: absolute(this.base),
      live: this.kind === "live",
    };
  }

  /** A connection that breaks is made again, from the next row on. */
  private watch(on: (rows: Row[], state: "live" | "stalled" | "ended") => void): () => void {
    let stopped = false;
    let stream: EventSource | null = null;
    let again: ReturnType<typeof setTimeout> | undefined;
    const connect = (): void => {
      stream = new EventSource(`${this.base}live?from=${this.index.rows}`);
      stream.addEventListener("rows", (event) => on(this.append((event as MessageEvent<string>).data), "live"));
      stream.addEventListener("state", (event) => {
        const state = (event as MessageEvent<string>).data.trim();
        if (state !== "live" && state !== "stalled" && state !== "ended") return;
        if (state === "ended") stop();
        on([], state);
      });
      stream.onerror = () => {
        // Not left to the browser: it would ask for the rows that came already.
        stream?.close();
        if (stopped) return;
        on([], "stalled");
        again = setTimeout(connect, 1000);
      };
    };
    const stop = (): void => {
      stopped = true;
      clearTimeout(again);
      stream?.close();
    };
    connect();
    return stop;
  }

  /** Take lines that were written since: they stand in the file behind what the index knows. */
  private append(text: string): Row[] {
    const rows: Row[] = [];
    const encoder = new TextEncoder();
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const bytes = encoder.encode(line).length + 1,
        row = parseLine(line);
      if (row && row.seq < this.index.rows) continue; // it came twice
      const last = this.log.blocks - 1;
      if (row) this.maker.row(row, bytes);
      else this.maker.skip(bytes);
      if (row) rows.push(row);
      if (last >= 0) this.log.forget(last);
    }
    this.shape.stored = (this.source as GrowingBytes).size = this.index.raw;
    const header = rows.find((row) => row.seq === 0);
    if (header) this.header = header;
    return rows;
  }

  async thumb(): Promise<Blob | null> {
    return null; // made when a run is packed
  }

  async media(): Promise<Media> {
    return []; // tracks are attached when a run is packed
  }

  async annotations(): Promise<Annotation[]> {
    const answer = await get(`${this.base}annotations.jsonl`);
    return answer.ok ? readAnnotations(await answer.text()) : [];
  }
}
