/**
 * The body of an answer as people read it: the parts of its rows joined, a content encoding undone.
 */
import { isText, type Json, reference } from "./fields";
import { decoded, joined } from "./inflate";
import type { Contents } from "./recording";
import type { Missing } from "./types";
import { carried, missing, valueOf } from "./values";

export const KEPT = 8 << 20; // more of an answer nobody reads

export function headerOf(data: Json, name: string): string {
  const headers = Array.isArray(data.headers) ? (data.headers as unknown[]) : [];
  const found = headers.find((pair) => Array.isArray(pair) && isText(pair[0]) && pair[0].toLowerCase() === name) as
    [string, unknown] | undefined;
  return isText(found?.[1]) ? found[1] : "";
}

/**
 * Why an answer is not whole; null where it is. A client may hang up behind the last event, before the body's own end:
 * then the answer itself says how it ended.
 */
export function brokenOff(data: Json, finish: readonly string[] = []): string | null {
  if (data.complete !== false || finish.length > 0) return null;
  return isText(data.why) && data.why !== "" ? data.why : "the answer broke off";
}

/** The body, where it stands in the rows as plain text; null where it takes reading contents or decoding. */
export function bodyNow(forms: readonly unknown[], data: Json): string | null {
  if (!forms.every(isText)) return null;
  const encoding = headerOf(data, "content-encoding");
  if (encoding !== "" && encoding !== "identity" && data.decoded === undefined) return null;
  return forms.length === 1 ? (forms[0] as string) : forms.join("");
}

/** The body, read from wherever it stands. `data` is the finished row's. */
export async function bodyOf(
  forms: readonly unknown[],
  data: Json,
  contents: Contents,
): Promise<string | Uint8Array | Missing> {
  const now = bodyNow(forms, data);
  if (now !== null) return now;
  const parts: Uint8Array[] = [];
  let size = 0;
  for (const form of forms) {
    if (size >= KEPT) break;
    const part = await textOf(form, contents);
    if (!isText(part) && "missing" in part) return part;
    const bytes = isText(part) ? new TextEncoder().encode(part) : part;
    parts.push(bytes);
    size += bytes.length;
  }
  const body = joined(parts);
  const encoding = headerOf(data, "content-encoding");
  if (encoding === "" || data.decoded !== undefined) return body;
  return (await decoded(body, encoding, KEPT * 4)) ?? (/gzip|deflate/i.test(encoding) ? new Uint8Array(0) : body);
}

/** A text of a body: in its row, or a content that holds its bytes (or the JSON of a field that had no room). */
export async function textOf(form: unknown, contents: Contents): Promise<string | Uint8Array | Missing> {
  const here = carried(form);
  if (here !== null) return here;
  const gone = missing(form);
  if (gone) return gone;
  const ref = reference(form);
  if (!ref) return { missing: "corrupt", why: "a form that is not known here" };
  const data = await contents.content(ref);
  if ("missing" in data || ref.type !== "application/json") return data;
  const inner: unknown = valueOf(ref, new TextDecoder().decode(data));
  return isText(inner) ? inner : data;
}
