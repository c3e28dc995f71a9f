/**
 * What the fields of a row may hold, of those that readers rely on: the same rule as `model/fields.py`.
 *
 * Whoever can hash can chain anything. A row whose known fields hold something else is left out, so that no reader here
 * has to fear a number where a text belongs. Any field may stand in a content (`$blob`) instead.
 */
import type { BlobRef } from "./types";

type Holds = (value: unknown) => boolean;
export type Json = Record<string, unknown>;

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const isText = (value: unknown): value is string => typeof value === "string";
export const isSize = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;
const isHash: Holds = (value) => isText(value) && /^[0-9a-f]{64}$/.test(value);
const isTexts: Holds = (value) => Array.isArray(value) && value.every(isText);
const optional =
  (holds: Holds): Holds =>
  (value) =>
    value === null || holds(value);
const listOf =
  (holds: Holds): Holds =>
  (value) =>
    Array.isArray(value) && value.every(holds);
const isFlag: Holds = (value) => typeof value === "boolean";

/** The content that a value stands for, or null. */
export function reference(value: unknown): BlobRef | null {
  const said = isObject(value) && isObject(value.$blob) ? value.$blob : null;
  if (!said || !isHash(said.name) || !isSize(said.size) || !isText(said.type)) return null;
  const tier = said.tier ?? "ordinary";
  if (tier !== "ordinary" && tier !== "restricted") return null;
  return { name: said.name as string, size: said.size, type: said.type, tier };
}

const isPair =
  (holds: Holds): Holds =>
  (value) =>
    Array.isArray(value) && value.length === 2 && value.every(holds);
const isCarried: Holds = (value) => isText(value) || isObject(value);

function isFailure(value: unknown, depth = 0): boolean {
  if (!isObject(value) || !isText(value.type) || !isText(value.message) || depth > 100) return false;
  const { args = [], attributes = {}, group = "", exceptions = [] } = value;
  const plain = (args === null || Array.isArray(args)) && isObject(attributes) && isText(group);
  return plain && Array.isArray(exceptions) && exceptions.every((inner) => isFailure(inner, depth + 1));
}

export const isElement: Holds = (value) => {
  if (!isObject(value) || !("$e" in value)) return isCarried(value);
  const place = value.$e;
  return (
    Array.isArray(place) && place.length === 3 && isText(place[0]) && place.slice(1).every((n) => Number.isInteger(n))
  );
};

const isArrayForm: Holds = (value) => {
  if (!isObject(value) || !("base" in value) || !isText(value.name) || !isSize(value.at)) return false;
  const { base, add, between = ["", ",", ""] } = value;
  const based = base === null || (Array.isArray(base) && base.length === 2 && isHash(base[0]) && isSize(base[1]));
  return (
    based &&
    (reference(add) !== null || listOf(isElement)(add)) &&
    isTexts(between) &&
    (between as string[]).length === 3
  );
};

const isBody: Holds = (value) => {
  if (!isObject(value) || "$withheld" in value) return isObject(value);
  return (
    isHash(value.context_hash) && isSize(value.size) && isElement(value.template) && listOf(isArrayForm)(value.arrays)
  );
};

const ENDED: Record<string, Holds> = {
  status: isSize,
  headers: listOf(isPair(isText)),
  complete: isFlag,
  why: isText,
  closed_by: isText,
  body: isCarried,
  pieces: listOf(isPair(isSize)),
  elapsed_ns: isSize,
  error: (value) => isFailure(value),
  unrecordable: (value) => isObject(value) && isText(value.type) && isText(value.path),
};
const FIELDS: Record<string, Record<string, Holds>> = {
  "meta/header": {
    format: isText,
    session: optional(isText),
    run: isText,
    attempt: isText,
    nonce: isText,
    t0_wall: (value) => isText(value) && /^[0-9]{1,19}$/.test(value),
    platform: isObject,
    capture: isText,
    task: (value) => isObject(value) && "text" in value && optional(isText)(value.text),
    agent: (value) => isObject(value) && isTexts(value.command ?? []),
    parent: optional(isObject),
    secrets: (value) => isObject(value) && isTexts(value.labels ?? []) && isSize(value.shapes ?? 0),
  },
  "meta/end": { disposition: isText, reason: optional(isText) },
  "marker/step": { phase: isText },
  "decision/request": { body: isBody, results: isTexts },
  "decision/chunk": { body: isCarried, pieces: listOf(isPair(isSize)) },
  "decision/response": ENDED,
  "observation/tool_result": ENDED,
};
const REQUIRED: Record<string, string[]> = {
  "meta/header": ["run", "attempt", "session", "t0_wall", "capture", "task", "agent"],
  "meta/end": ["disposition"],
};

/** The first field of a row's data that holds what it cannot, or null. `name` is the row's: `decision/response`. */
export function unfit(name: string, data: Json): string | null {
  const known = FIELDS[name],
    required = REQUIRED[name] ?? [];
  if (!known) return null;
  for (const field in known) {
    const value = data[field];
    if (value === undefined || (value === null && !required.includes(field))) continue;
    if (!known[field]?.(value) && !reference(value)) return field;
  }
  return required.find((field) => !(field in data)) ?? null;
}
