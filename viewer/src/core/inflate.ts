/**
 * Inflating what a stranger packed: never more than was announced, and broken off there.
 */
import { Unreadable } from "./unreadable";

/** An empty last block of deflate: it ends a stream that was cut behind a full flush. */
const END = Uint8Array.of(3, 0);

type Format = "deflate-raw" | "deflate" | "gzip";

/** The content of `stored`, exactly `size` bytes. With `ends` false the stream goes on behind `stored` (a full flush). */
export async function inflate(stored: Uint8Array, size: number, what: string, ends = true): Promise<Uint8Array> {
  const parts = inflating([stored, ...(ends ? [] : [END])], "deflate-raw");
  const out = new Uint8Array(size);
  let at = 0;
  try {
    for await (const part of parts) {
      if (at + part.length > size) throw new Unreadable("damaged", `${what}: larger than it says`);
      out.set(part, at);
      at += part.length;
    }
  } catch (error) {
    throw error instanceof Unreadable ? error : new Unreadable("damaged", `${what}: not what was deflated`);
  }
  if (at !== size) throw new Unreadable("damaged", `${what}: shorter than it says`);
  return out;
}

/** As much as `stored` gives, up to `most` bytes; where the stream is cut or broken, what came before. */
export async function* salvaged(stored: AsyncIterable<Uint8Array>, most: number): AsyncGenerator<Uint8Array> {
  let left = most;
  try {
    for await (const part of inflating(stored, "deflate-raw")) {
      yield part.length > left ? part.subarray(0, left) : part;
      left -= part.length;
      if (left <= 0) return;
    }
  } catch {
    // The stream ends here; what it gave until then is what there is.
  }
}

/** A body whose sender compressed it, or null where it is no such thing or over `most` bytes. */
export async function decoded(body: Uint8Array, encoding: string, most: number): Promise<Uint8Array | null> {
  const format: Format | undefined = ({ gzip: "gzip", "x-gzip": "gzip", deflate: "deflate" } as const)[
    encoding.trim().toLowerCase()
  ];
  if (!format) return null;
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const part of inflating([body], format)) {
      parts.push(part);
      size += part.length;
      if (size > most) return null;
    }
  } catch {
    return null;
  }
  return joined(parts, size);
}

export function joined(parts: Uint8Array[], size = parts.reduce((sum, part) => sum + part.length, 0)): Uint8Array {
  if (parts.length === 1) return parts[0] as Uint8Array;
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

async function* inflating(
  stored: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  format: Format,
): AsyncGenerator<Uint8Array> {
  const stream = new DecompressionStream(format);
  const writer = stream.writable.getWriter();
  const reader = stream.readable.getReader();
  // Written beside the reading: a stream takes only so much before somebody reads. Its failures show at the reader.
  const written = (async () => {
    for await (const part of stored) {
      await writer.ready;
      await writer.write(part as Uint8Array<ArrayBuffer>);
    }
    await writer.close();
  })().catch((error: unknown) => writer.abort(error).catch(() => undefined));
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
    await written;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
