/** What differs between two values or two texts, as plain lists: the counterpart of what `pair.tsx` draws. */
import { diffLines, diffWordsWithSpace } from "diff";
import microdiff, { type Difference } from "microdiff";
import { type Rule, volatileBy } from "../../core/volatile";
import { isBox, pathOf } from "../../state/paths";

export interface ValueChange {
  path: string;
  was: unknown;
  is: unknown;
  kind: "added" | "removed" | "changed";
  /** Why it does not count, where it does not. */
  rule: Rule | null;
}

/** The changes from `left` to `right`, those that count first. Texts that hold JSON are compared as what they hold. */
export function valueChanges(left: unknown, right: unknown): ValueChange[] {
  const a = unpacked(left),
    b = unpacked(right);
  const found: ValueChange[] =
    isBox(a) && isBox(b) && Array.isArray(a) === Array.isArray(b)
      ? microdiff(a, b).map((one: Difference) => {
          const was = "oldValue" in one ? one.oldValue : undefined,
            is = "value" in one ? one.value : undefined;
          return {
            path: pathOf(one.path),
            was,
            is,
            kind: one.type === "CREATE" ? "added" : one.type === "REMOVE" ? "removed" : "changed",
            rule: one.type === "CHANGE" ? volatileBy(one.path, was, is) : null,
          };
        })
      : same(a, b)
        ? []
        : [
            {
              path: "",
              was: left,
              is: right,
              kind: a === undefined ? "added" : b === undefined ? "removed" : "changed",
              rule: volatileBy([], a, b),
            },
          ];
  return [...found.filter((one) => one.rule === null), ...found.filter((one) => one.rule !== null)];
}

/** Whether two values say the same, ids and dates aside. */
export function agree(left: unknown, right: unknown): boolean {
  return valueChanges(left, right).every((one) => one.rule !== null);
}

export interface TextPart {
  text: string;
  side: "both" | "left" | "right";
}

/** Longer texts are compared by lines only, and a comparison never holds the page for long. */
const BY_WORDS = 20_000;
const TIMEOUT_MS = 250;

/** The parts of two texts in order; null where they are too different to say it in parts. */
export function textParts(left: string, right: string): TextPart[] | null {
  if (left === right) return left === "" ? [] : [{ text: left, side: "both" }];
  const byWords = left.length + right.length <= BY_WORDS;
  const parts = byWords
    ? diffWordsWithSpace(left, right, { timeout: TIMEOUT_MS })
    : diffLines(left, right, { timeout: TIMEOUT_MS });
  return (
    parts?.map((part) => ({ text: part.value, side: part.added ? "right" : part.removed ? "left" : "both" })) ?? null
  );
}

/** Long stretches that are the same, shortened to their ends. */
export function shortened(parts: readonly TextPart[], keep = 120): (TextPart & { left?: number })[] {
  return parts.flatMap((part, i): (TextPart & { left?: number })[] => {
    if (part.side !== "both" || part.text.length <= keep * 3) return [part];
    const head = i === 0 ? "" : part.text.slice(0, keep),
      tail = i === parts.length - 1 ? "" : part.text.slice(-keep);
    return [
      { text: head, side: "both" },
      { text: "", side: "both", left: part.text.length - head.length - tail.length },
      { text: tail, side: "both" },
    ];
  });
}

function unpacked(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value) || value.length > 2_000_000) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

function same(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === typeof b && JSON.stringify(a) === JSON.stringify(b));
}
