/**
 * Reading JSON that strangers wrote: ask for a value by its type or get nothing. The rules of `model/dialects/foreign.py`.
 */
export type Body = Record<string, unknown>;

export const obj = (value: unknown): Body =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : {};
export const array = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
export const string = (value: unknown): string => (typeof value === "string" ? value : "");
export const name = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
export const integer = (value: unknown): number | null => (Number.isSafeInteger(value) ? (value as number) : null);
export const number = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/** The objects of an array, with their places in it. */
export function objects(value: unknown): [number, Body][] {
  const found: [number, Body][] = [];
  array(value).forEach((element, place) => {
    if (typeof element === "object" && element !== null && !Array.isArray(element))
      found.push([place, element as Body]);
  });
  return found;
}

/** Whether something is there, as Python sees it: not null, not empty, not zero. */
export function truthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}

export function dump(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return '"nested too deeply"';
  }
}

const MEDIA = ["image", "audio", "video", "screenshot", "file", "document"];

/** Content as text: a string as it is, parts joined, media as `[image]`, anything else as JSON. */
export function flatten(content: unknown, between = "\n"): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(part).join(between);
  return content === null || content === undefined ? "" : part(content);
}

function part(value: unknown): string {
  if (typeof value === "string") return value;
  const body = obj(value);
  for (const key of ["text", "refusal"]) if (typeof body[key] === "string") return body[key];
  const kind = string(body.type);
  const medium = MEDIA.find((word) => kind.includes(word));
  return medium ? `[${medium}]` : dump(value);
}

/** A provider's error object as one line: `rate_limit_error: slow down`. */
export function errorText(error: unknown): string {
  if (typeof error !== "object" || error === null || Array.isArray(error)) return flatten(error);
  const body = error as Body;
  const kind = [name(body.type), name(body.code)].find((word) => word !== null && word !== "error") ?? null;
  const message = name(body.message);
  if (message === null) return dump(error);
  return kind ? `${kind}: ${message}` : message;
}
