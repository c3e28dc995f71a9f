/**
 * Values that differ between any two runs and mean nothing by that: ids, dates, times taken.
 *
 * Pure, and used by alignment and by the pane that compares. Two values are volatile together when they are of the same such form, or stand under the same such name. They are
 * shown, but as what they are, and they make no divergence.
 */

export interface Rule {
  name: string;
  /** For the legend. */
  says: string;
  /** The form of a text. */
  form?: RegExp;
  /** The last word of the place it stands in (`request_id` of `meta.request_id`). */
  key?: RegExp;
}

export const RULES: readonly Rule[] = [
  {
    name: "UUID",
    says: "8-4-4-4-12 hex digits",
    form: /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi,
  },
  {
    name: "id",
    says: "fields named id, *_id, *Id, token, nonce, cursor, etag",
    key: /^(id|uuid|guid|nonce|etag|cursor|token|.*[_-](id|uuid|nonce|token)|.*[a-z]Id)$/,
  },
  {
    name: "id",
    says: "ULIDs, and prefix_ with 16 or more letters and digits",
    form: /\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b|\b[a-z]{2,12}[_-][0-9A-Za-z]{16,}\b/g,
  },
  { name: "digest", says: "32 or more hex digits", form: /\b[0-9a-f]{32,}\b/gi },
  {
    name: "date",
    says: "2026-11-30T07:12:04Z and its like",
    form: /\b\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?/g,
  },
  {
    name: "date",
    says: "fields named date, time, timestamp, *_at, created, updated, expires",
    key: /^(date|time|timestamp|ts|created|updated|expires|modified|.*_(at|time|date|timestamp)|.*[a-z]At)$/,
  },
  {
    name: "time",
    says: "Unix times of this century, 10, 13, 16 or 19 digits",
    form: /\b1[5-9]\d{8}(\d{3}|\d{6}|\d{9})?\b/g,
  },
  {
    name: "taken",
    says: "fields named ms, elapsed, duration, latency, *_ms, *_ns, *_seconds",
    key: /^(ms|elapsed|duration|latency|took|.*_(ms|ns|us|seconds|elapsed|duration))$/,
  },
];

/** The rule by which two different values may be taken as the same; null where they really differ. */
export function volatileBy(path: readonly (string | number)[], was: unknown, is: unknown): Rule | null {
  const key = [...path].reverse().find((part): part is string => typeof part === "string") ?? "";
  if (typeof was !== "object" && typeof is !== "object" && was !== undefined && is !== undefined) {
    const named = RULES.find((rule) => rule.key?.test(key));
    if (named) return named;
  }
  if (typeof was === "number" && typeof is === "number") return volatileBy(path, String(was), String(is));
  if (typeof was !== "string" || typeof is !== "string") return null;
  const changed: Rule[] = [];
  const [a, b] = [was, is].map((text) => settled(text, changed));
  return a === b ? (changed[0] ?? null) : null;
}

/** The text with every volatile part replaced by its rule's name. `met` collects the rules that applied. */
export function settled(text: string, met: Rule[] = []): string {
  let now = text;
  for (const rule of RULES) {
    if (!rule.form) continue;
    const next = now.replace(rule.form, `‹${rule.name}›`);
    if (next !== now) met.push(rule);
    now = next;
  }
  return now;
}
