/**
 * Bytes that the page itself carries: base64 in script elements behind the app, or script files in a folder beside it.
 *
 * One page: `<meta name="worldline-bundle" content="<size>,<label>">`, then `<script type="text/plain"
 * data-skn="<offset>,<length>">` elements, those of the file's end first. A read waits until its bytes came in, so the
 * first screen is there while the document still loads. Folder: `<meta name="worldline-folder"
 * content="<size>,<label>,<chunk bytes>">`; chunk n is `chunks/NNNNNN.js`, which calls `__skn(offset, base64)`.
 */
import { fromBase64 } from "./base64";
import type { Source } from "./bytes";
import { inWords, Unreadable } from "./unreadable";

interface Chunk {
  offset: number;
  length: number;
  /** Text while nobody asked; bytes outside of the script heap afterwards. */
  data: Element | Blob;
}

export function pageBytes(page: Document): { bytes: Source; label: string } | null {
  const meta = (name: string): string | null =>
    page.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? null;
  const bundle = meta("worldline-bundle"),
    folder = meta("worldline-folder");
  const found = /^(\d+),(.*)$/s.exec(bundle ?? "");
  if (found) return { bytes: new PageBytes(page, Number(found[1])), label: found[2] as string };
  const split = /^(\d+),(.*),(\d+)$/s.exec(folder ?? "");
  if (split) return { bytes: new FolderBytes(page, Number(split[1]), Number(split[3])), label: split[2] as string };
  return null;
}

class PageBytes implements Source {
  readonly handle = null;
  fetched = 0;
  private readonly chunks: Chunk[] = [];
  private readonly seen = new WeakSet<Element>();
  private waiting: (() => void)[] = [];
  private done = false;

  constructor(
    private readonly page: Document,
    readonly size: number,
  ) {
    const look = (): void => {
      this.done = page.readyState !== "loading";
      this.look();
      if (this.done) watch.disconnect();
    };
    const watch = new MutationObserver(look);
    watch.observe(page.documentElement, { childList: true, subtree: true });
    page.addEventListener("DOMContentLoaded", look, { once: true });
    look();
  }

  /** Take the elements that are all there: something follows them, or the document is at its end. */
  private look(): void {
    for (const element of this.page.querySelectorAll("script[data-skn]")) {
      if (this.seen.has(element) || !(this.done || element.nextElementSibling)) continue;
      const [offset, length] = (element.getAttribute("data-skn") ?? "").split(",").map(Number);
      this.seen.add(element);
      if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length)) continue;
      this.chunks.push({ offset: offset as number, length: length as number, data: element });
      this.fetched += length as number;
    }
    this.chunks.sort((a, b) => a.offset - b.offset);
    const waiting = this.waiting;
    this.waiting = [];
    for (const go of waiting) go();
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    if (offset < 0 || offset + length > this.size)
      throw new Unreadable("truncated", "bytes behind the end of the bundle", "", offset);
    const out = new Uint8Array(length);
    for (let at = offset; at < offset + length;) {
      const chunk = this.chunkAt(at);
      if (chunk) {
        const end = Math.min(offset + length, chunk.offset + chunk.length);
        out.set(await part(chunk, at - chunk.offset, end - chunk.offset), at - offset);
        at = end;
      } else if (this.done) {
        throw new Unreadable(
          "truncated",
          "this page ends before the bytes that are due",
          "It was cut when it was saved or sent: get it again.",
          at,
        );
      } else {
        await new Promise<void>((go) => this.waiting.push(go));
      }
    }
    return out;
  }

  private chunkAt(at: number): Chunk | undefined {
    let low = 0,
      high = this.chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.chunks[middle] as Chunk).offset <= at) low = middle + 1;
      else high = middle;
    }
    const chunk = this.chunks[low - 1];
    return chunk && at < chunk.offset + chunk.length ? chunk : undefined;
  }
}

/** A part of a chunk. Its text becomes bytes at the first use, and leaves the document. */
async function part(chunk: Chunk, from: number, to: number): Promise<Uint8Array> {
  if (chunk.data instanceof Blob) return new Uint8Array(await chunk.data.slice(from, to).arrayBuffer());
  const data = fromBase64((chunk.data.textContent ?? "").trim());
  if (data.length !== chunk.length)
    throw new Unreadable("truncated", "a part of this page is cut", "Get the page again.", chunk.offset);
  chunk.data.remove();
  chunk.data = new Blob([data as Uint8Array<ArrayBuffer>]);
  return data.subarray(from, to);
}

const KEPT_CHUNKS = 64;

class FolderBytes implements Source {
  readonly handle = null;
  fetched = 0;
  private readonly loaded = new Map<number, Promise<Blob>>();

  constructor(
    private readonly page: Document,
    readonly size: number,
    private readonly chunk: number,
  ) {
    const take = (offset: number, text: string): void => {
      this.arrived.get(offset)?.(text);
      this.arrived.delete(offset);
    };
    (globalThis as { __skn?: typeof take }).__skn = take;
  }

  private readonly arrived = new Map<number, (text: string) => void>();

  async read(offset: number, length: number): Promise<Uint8Array> {
    if (offset < 0 || offset + length > this.size)
      throw new Unreadable("truncated", "bytes behind the end of the bundle", "", offset);
    const out = new Uint8Array(length);
    for (let at = offset; at < offset + length;) {
      const number = Math.floor(at / this.chunk),
        begins = number * this.chunk;
      const end = Math.min(offset + length, begins + this.chunk);
      const blob = await this.load(number);
      out.set(new Uint8Array(await blob.slice(at - begins, end - begins).arrayBuffer()), at - offset);
      at = end;
    }
    return out;
  }

  private load(number: number): Promise<Blob> {
    const known = this.loaded.get(number);
    if (known) return known;
    const begins = number * this.chunk,
      due = Math.min(this.chunk, this.size - begins);
    const name = `chunks/${String(number).padStart(6, "0")}.js`;
    const loading = new Promise<Blob>((resolve, reject) => {
      const fail = (what: string): void => {
        this.loaded.delete(number);
        reject(
          new Unreadable(
            "absent",
            `${name}: ${what}`,
            "The folder has to stay together: index.html and chunks/.",
            begins,
          ),
        );
      };
      this.arrived.set(begins, (text) => {
        let data: Uint8Array;
        try {
          data = fromBase64(text);
        } catch (error) {
          return fail(inWords(error));
        }
        this.fetched += data.length;
        if (data.length !== due) fail(`${data.length} bytes of ${due}`);
        else resolve(new Blob([data as Uint8Array<ArrayBuffer>]));
      });
      const script = this.page.createElement("script");
      script.src = name;
      script.onload = () => {
        script.remove();
        if (this.arrived.delete(begins)) fail("it holds something else");
      };
      script.onerror = () => fail("it cannot be loaded");
      this.page.head.append(script);
    });
    this.loaded.set(number, loading);
    for (const oldest of this.loaded.keys()) if (this.loaded.size > KEPT_CHUNKS) this.loaded.delete(oldest);
    return loading;
  }
}
