/**
 * Values as rows carry them: the forms for what JSON cannot say (`docs/format/values.md`), as people read them.
 *
 * `plain` gives JSON that a tree can show: exact integers and special floats become texts that say what they are.
 */
import { fromBase64 } from "./base64";
import { isObject, isText, type Json, reference } from "./fields";
import type { BlobRef, Missing } from "./types";

const DEEPEST = 200;

/** Why a form holds no value, or null where it holds one. */
export function missing(form: unknown): Missing | null {
  const withheld = isObject(form) && isObject(form.$withheld) && Object.keys(form).length === 1 ? form.$withheld : null;
  if (!withheld) return null;
  const size = typeof withheld.size === "number" ? `${withheld.size} bytes` : "";
  if (withheld.state === "expired")
    return { missing: "expired", why: `${size}; its retention was over in the recording that this one was made of` };
  if (withheld.state === "withheld")
    return { missing: "withheld", why: `${size}; left out of the recording that this one was made of` };
  return { missing: "not-captured", why: `${size}; the recording keeps references only` };
}

/** A recorded value as readable JSON. What stands in a content stays its reference. */
export function plain(form: unknown, depth = 0): unknown {
  if (typeof form !== "object" || form === null) return form;
  if (depth > DEEPEST) return "(nested deeper than is shown)";
  if (Array.isArray(form)) return form.map((element) => plain(element, depth + 1));
  const body = form as Json,
    keys = Object.keys(body),
    [key] = keys;
  if (keys.length === 1 && key?.startsWith("$") && !key.startsWith("$$")) return special(key, body[key], form, depth);
  const out: Json = {};
  for (const name of keys) put(out, name.startsWith("$$") ? name.slice(1) : name, plain(body[name], depth + 1));
  return out;
}

/** Names are the agent's: `__proto__` is a name as any other. */
function put(object: Json, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function special(key: string, value: unknown, form: unknown, depth: number): unknown {
  switch (key) {
    case "$int":
      return isText(value) ? exact(value) : form;
    case "$f64":
      return isText(value) ? ({ nan: "NaN", inf: "Infinity", "-inf": "-Infinity" }[value] ?? form) : form;
    case "$b64":
      return isText(value) ? asBytes(value) : form;
    case "$wtf8":
      return isText(value) ? new TextDecoder().decode(fromBase64(value)) : form;
    case "$tuple":
      return Array.isArray(value) ? value.map((element) => plain(element, depth + 1)) : form;
    case "$items": {
      if (!Array.isArray(value)) return form;
      const out: Json = {};
      for (const pair of value)
        if (Array.isArray(pair)) put(out, String(plain(pair[0], depth + 1)), plain(pair[1], depth + 1));
      return out;
    }
    default:
      return form; // a content, what was withheld, or a form of a later version: kept as it is
  }
}

function exact(digits: string): number | string {
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : digits;
}

function asBytes(text: string): string {
  const data = fromBase64(text);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    const words = decoder.decode(data);
    return /[\0-\x08\x0e-\x1f]/.test(words) ? `(${data.length} bytes) ${text}` : words;
  } catch {
    return `(${data.length} bytes) ${text}`;
  }
}

/** A value of the deep form (`application/x-worldline-deep+json`): nodes, children before their parents. */
export function deep(nodes: unknown): unknown {
  const built: unknown[] = [];
  for (const node of Array.isArray(nodes) ? nodes : []) {
    const [kind, body] = Array.isArray(node) ? (node as [unknown, unknown]) : [null, null];
    const child = (at: unknown): unknown =>
      Number.isInteger(at) && (at as number) < built.length ? built[at as number] : null;
    if (kind === "v") built.push(plain(body));
    else if ((kind === "a" || kind === "t") && Array.isArray(body)) built.push(body.map(child));
    else if (kind === "o" && Array.isArray(body)) {
      const out: Json = {};
      for (const pair of body) if (Array.isArray(pair)) put(out, String(plain(pair[0])), child(pair[1]));
      built.push(out);
    } else built.push(null);
  }
  return built.at(-1) ?? null;
}

/** The value in a content of JSON, of the plain or the deep form. Throws where it is no JSON. */
export function valueOf(ref: BlobRef, text: string): unknown {
  const parsed: unknown = JSON.parse(text);
  return ref.type === "application/x-worldline-deep+json" ? deep(parsed) : plain(parsed);
}

export const isJsonContent = (ref: BlobRef): boolean => /^application\/(x-worldline-deep\+)?json$/.test(ref.type);

/** A text as bodies carry it: a string, or bytes in base64; null for what stands elsewhere. */
export function carried(form: unknown): string | Uint8Array | null {
  if (isText(form)) return form;
  if (isObject(form) && isText(form.$b64)) return fromBase64(form.$b64);
  return null;
}

export { reference };
