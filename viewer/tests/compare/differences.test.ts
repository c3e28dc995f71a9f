/** What differs between two values and two texts, and what only looks so. */
import { describe, expect, it } from "vitest";
import { settled, volatileBy } from "../../src/core/volatile";
import { agree, shortened, textParts, valueChanges } from "../../src/panes/compare/differences";

describe("values", () => {
  it("are compared by their places; what counts comes first", () => {
    const left = { order: "10-4471", cents: 6400, request_id: "a1", items: [{ sku: "lamp" }] };
    const right = { order: "10-4471", cents: 3200, request_id: "b2", items: [{ sku: "lamp" }, { sku: "shade" }] };
    expect(valueChanges(left, right).map(({ path, kind, rule }) => [path, kind, rule?.name ?? null])).toEqual([
      ["cents", "changed", null],
      ["items[1]", "added", null],
      ["request_id", "changed", "id"],
    ]);
  });

  it("agree where only ids, dates, digests and times taken differ", () => {
    expect(agree({ at: 1, created_at: "2026-11-30T07:00:00Z" }, { at: 1, created_at: "2026-12-01T07:00:00Z" })).toBe(
      true,
    );
    expect(agree({ run: "run_01m8nr682w8w4273vd41q35dj0" }, { run: "run_01m8nr999w8w4273vd41q35dj1" })).toBe(true);
    expect(agree({ ms: 12 }, { ms: 400 })).toBe(true);
    expect(agree('{"order":"10-4471","id":"x1"}', '{"id":"x2","order":"10-4471"}')).toBe(true);
    expect(agree({ order: "10-4471" }, { order: "10-4472" })).toBe(false);
    expect(agree({ id: "a" }, {})).toBe(false);
    expect(agree("refund 64.00", "refund 32.00")).toBe(false);
  });

  it("of another kind are different, and nothing is everything's equal", () => {
    expect(agree([1], { 0: 1 })).toBe(false);
    expect(agree(null, undefined)).toBe(false);
    expect(agree(null, null)).toBe(true);
    expect(valueChanges(undefined, { a: 1 })).toMatchObject([{ kind: "added", path: "" }]);
  });
});

describe("volatile parts", () => {
  it("are found inside of texts, and the rest of the text still counts", () => {
    expect(
      volatileBy(
        [],
        "seen 2026-11-30T07:12:04Z by 550e8400-e29b-41d4-a716-446655440000",
        "seen 2026-12-01T00:00:00Z by 7d44b8f1-0c6f-4f5e-9a80-1f8f0f0a1b2c",
      ),
    ).not.toBeNull();
    expect(volatileBy([], "seen 2026-11-30 by Ann", "seen 2026-12-01 by Ben")).toBeNull();
    expect(settled("order 10-4471 of customer 88")).toBe("order 10-4471 of customer 88");
  });
});

describe("texts", () => {
  it("are cut into what both have and what one has; together the parts are the texts", () => {
    const left = "refund the whole order",
      right = "refund the lamp only";
    const parts = textParts(left, right) ?? [];
    expect(
      parts
        .filter((part) => part.side !== "right")
        .map((part) => part.text)
        .join(""),
    ).toBe(left);
    expect(
      parts
        .filter((part) => part.side !== "left")
        .map((part) => part.text)
        .join(""),
    ).toBe(right);
    expect(parts[0]).toEqual({ text: "refund the ", side: "both" });
    expect(textParts("", "")).toEqual([]);
  });

  it("that are far too different are not said in parts, in little time", () => {
    const long = (seed: number): string =>
      Array.from({ length: 30_000 }, (_, i) => `line ${(i * seed) % 9973}`).join("\n");
    expect(textParts(long(7), long(11))).toBeNull();
  });

  it("have long same stretches shortened, and their length said", () => {
    const same = "x".repeat(5000);
    const parts = shortened([
      { text: "a", side: "left" },
      { text: same, side: "both" },
      { text: "b", side: "right" },
    ]);
    expect(parts.map((part) => part.text.length + (part.left ?? 0)).reduce((a, b) => a + b)).toBe(5002);
    expect(parts.some((part) => part.left === 4760)).toBe(true);
  });
});
