/**
 * Where the bytes of a recording come from: memory, a file that was dropped, or an address that serves ranges.
 *
 * `handle` is what a worker needs to read the same bytes itself; a source without one is read through messages.
 */
import type { Bytes } from "./types";
import { Unreadable } from "./unreadable";

export type Handle =
  { kind: "blob"; blob: Blob } | { kind: "url"; url: string; size: number; tag: string | null; tail?: Tail };

/** The end of a file, which was read first. */
interface Tail {
  at: number;
  data: Uint8Array;
}

export interface Source extends Bytes {
  readonly handle: Handle | null;
  /** What was read so far, in bytes: how much of the recording came over the network. */
  readonly fetched: number;
}

/** Bytes that are read first where a bundle lies at an address: its container, manifest and index stand at the end. */
const TAIL = 128 * 1024;
const WHOLE = 256 * 1024 * 1024;

function within(size: number, offset: number, length: number): void {
  if (offset < 0 || length < 0 || offset + length > size)
    throw new Unreadable(
      "truncated",
      `${length} bytes are due at byte ${offset}, and the file ends at ${size}`,
      "",
      offset,
    );
}

export class BlobBytes implements Source {
  readonly size: number;
  readonly fetched = 0;
  readonly handle: Handle;

  constructor(private readonly blob: Blob) {
    this.size = blob.size;
    this.handle = { kind: "blob", blob };
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    within(this.size, offset, length);
    try {
      return new Uint8Array(await this.blob.slice(offset, offset + length).arrayBuffer());
    } catch (error) {
      // A file that was changed or moved since it was dropped.
      throw new Unreadable("changed", `the file cannot be read any more: ${String(error)}`, "Open it again.", offset);
    }
  }
}

/** Ranges of an address. The first answer's ETag binds the later ones: a file that changes meanwhile is refused. */
export class UrlBytes implements Source {
  fetched = 0;
  private tail: Tail | null = null;

  private constructor(
    private readonly url: string,
    readonly size: number,
    private readonly tag: string | null,
  ) {}

  get handle(): Handle {
    const known: Handle = { kind: "url", url: this.url, size: this.size, tag: this.tag };
    return this.tail ? { ...known, tail: this.tail } : known;
  }

  /** Ask for the end of the file: that says its size, and is what is read first. */
  static async open(address: string): Promise<Source> {
    const url = absolute(address);
    const answer = await ask(url, { Range: `bytes=-${TAIL}` });
    if (answer.status === 200) return whole(url, answer);
    const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers.get("content-range") ?? "");
    if (answer.status !== 206 || !range) throw refused(url, answer.status);
    const data = new Uint8Array(await answer.arrayBuffer());
    const source = new UrlBytes(url, Number(range[3]), answer.headers.get("etag"));
    const at = Number(range[1]);
    if (data.length !== Number(range[2]) - at + 1)
      throw new Unreadable("network", `${url} broke off`, "Load the page again.");
    source.tail = { at, data };
    source.fetched = data.length;
    return source;
  }

  /** The same file in a worker, which knows already what it is. */
  static again(handle: Extract<Handle, { kind: "url" }>): Source {
    const source = new UrlBytes(handle.url, handle.size, handle.tag);
    source.tail = handle.tail ?? null;
    return source;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    within(this.size, offset, length);
    if (length === 0) return new Uint8Array(0);
    const { tail } = this;
    if (tail && offset >= tail.at) return tail.data.subarray(offset - tail.at, offset - tail.at + length);
    const headers: Record<string, string> = { Range: `bytes=${offset}-${offset + length - 1}` };
    // A weak tag promises too little to build a file from parts.
    if (this.tag && !this.tag.startsWith("W/")) headers["If-Range"] = this.tag;
    const answer = await ask(this.url, headers);
    if (answer.status !== 206) {
      await answer.body?.cancel();
      if (answer.status === 200)
        throw new Unreadable("changed", `${this.url} changed while it was read`, "Load the page again.", offset);
      throw refused(this.url, answer.status);
    }
    const now = answer.headers.get("etag");
    const data = new Uint8Array(await answer.arrayBuffer());
    this.fetched += data.length;
    if (this.tag && now && now !== this.tag)
      throw new Unreadable("changed", `${this.url} changed while it was read`, "Load the page again.", offset);
    const due = `bytes ${offset}-${offset + length - 1}/`;
    if (data.length !== length || !(answer.headers.get("content-range") ?? due).startsWith(due))
      throw new Unreadable("network", `${this.url} sent other bytes than it was asked for`, "", offset);
    return data;
  }
}

/** A worker that was made of a blob has no address that others could be relative to. */
export function absolute(url: string): string {
  return typeof location === "undefined" ? url : new URL(url, location.href).href;
}

async function ask(url: string, headers: Record<string, string>): Promise<Response> {
  try {
    return await fetch(url, { headers, cache: "no-store", credentials: "same-origin", referrerPolicy: "no-referrer" });
  } catch (error) {
    throw new Unreadable(
      "network",
      `${url} cannot be reached: ${String(error)}`,
      "Its server has to be there, and to allow this page to read it (CORS, with Range). Or download the file and drop it here.",
    );
  }
}

/** A server without ranges sends all of it; that is as good where it is not too much. */
async function whole(url: string, answer: Response): Promise<Source> {
  const said = Number(answer.headers.get("content-length") ?? 0);
  if (said > WHOLE) {
    await answer.body?.cancel();
    throw new Unreadable(
      "network",
      `${url} is large, and its server sends no ranges`,
      "Download the file and drop it here.",
    );
  }
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const reader = answer.body?.getReader();
  for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
    parts.push(next.value as Uint8Array<ArrayBuffer>);
    size += next.value.length;
    if (size > WHOLE) {
      await reader?.cancel();
      throw new Unreadable(
        "network",
        `${url} is large, and its server sends no ranges`,
        "Download the file and drop it here.",
      );
    }
  }
  return new BlobBytes(new Blob(parts));
}

function refused(url: string, status: number): Unreadable {
  return new Unreadable(
    "network",
    `${url} answered ${status}`,
    status === 404 || status === 403 ? "Is the address right?" : "",
  );
}

/** Bytes for whoever has only a handle. */
export function fromHandle(handle: Handle): Source {
  return handle.kind === "blob" ? new BlobBytes(handle.blob) : UrlBytes.again(handle);
}
