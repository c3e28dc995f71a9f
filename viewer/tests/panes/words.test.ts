/** The verdict in words, the banners, figures as they are read, JSON as it is coloured, state as it differs. */
import { describe, expect, it } from "vitest";
import { pretty, tokens, wrapped } from "../../src/panes/inspector/json-text";
import { gradeOf, placeOf } from "../../src/panes/inspector/network";
import { changes } from "../../src/panes/inspector/state-diff";
import { banners } from "../../src/panes/shell/banners";
import { verdictSentence, verdictWords } from "../../src/panes/verdict/words";
import type { Verdict } from "../../src/core/types";
import { bytes, clock, count, duration, money, spokenTime } from "../../src/state/words";
import { story } from "../state/memory";

const { steps } = story().outline;
const verdict = (more: Partial<Verdict>): Verdict => ({
  outcome: "unknown",
  reason: "",
  failedAt: -1,
  deniedAt: -1,
  openAt: 0,
  openBecause: "start",
  ...more,
});

describe("the verdict", () => {
  it("says how it ended, why, and what led there", () => {
    const say = (more: Partial<Verdict>): string => verdictSentence(verdict(more), steps);
    expect(
      say({
        outcome: "failed",
        reason: "TimeoutError",
        failedAt: 41,
        deniedAt: 40,
        openBecause: "denied before failure",
      }),
    ).toBe("Failed at step 41 TimeoutError, after a denied http.post at step 40");
    expect(say({ outcome: "failed", reason: "exit 1", failedAt: 3, openBecause: "first failure" })).toBe(
      "Failed at step 3 exit 1",
    );
    expect(say({ outcome: "failed", failedAt: 41, deniedAt: 2, openBecause: "first failure" })).toBe(
      "Failed at step 41; a denied browser.fill at step 2",
    );
    expect(say({ outcome: "succeeded", deniedAt: 40 })).toBe("Succeeded; a denied http.post at step 40");
    expect(say({ outcome: "succeeded", failedAt: 3 })).toBe("Succeeded step 3 failed");
    expect(say({ outcome: "running" })).toBe("Running");
    expect(say({ outcome: "interrupted" })).toContain("no end");
    expect(say({ outcome: "unknown" })).toContain("No outcome");
  });

  it("leads to the step of each part", () => {
    const parts = verdictWords(
      verdict({
        outcome: "failed",
        failedAt: 41,
        deniedAt: 40,
        reason: "TimeoutError",
        openBecause: "denied before failure",
      }),
      steps,
    );
    expect(parts.filter((part) => part.step !== undefined).map((part) => part.step)).toEqual([41, 40]);
    expect(parts.find((part) => part.tone === "denied")?.step).toBe(40);
  });
});

describe("banners", () => {
  it("come for every state in which the page must not be believed as it stands, with what to do", () => {
    const of = (more: object, live: "off" | "stalled" = "off"): string[] => {
      const open = story();
      Object.assign(open.integrity, more);
      return banners(open, live).map((banner) => banner.key);
    };
    expect(of({})).toEqual([]);
    for (const word of ["changed", "truncated", "newer", "unsealed"]) expect(of({ verdict: word })).toEqual([word]);
    expect(of({}, "stalled")).toEqual(["stalled"]);
    expect(of({ expired: 2 })).toEqual(["expired"]);
    const open = story();
    open.integrity = {
      ...open.integrity,
      verdict: "truncated",
      problems: [{ what: "ends early", seq: 12, offset: 4096 }],
    };
    expect(banners(open, "off")[0]).toMatchObject({
      command: "worldline reconcile",
      text: expect.stringMatching(/row 12, byte 4096/) as string,
    });
  });
});

describe("figures", () => {
  it("are read at a glance", () => {
    expect([0, 4e5, 4e6, 4e8, 3.1e9, 3e10, 125e9, 47_040e9, 3 * 86_400e9].map(duration)).toEqual([
      "0 s",
      "< 1 ms",
      "4 ms",
      "0.4 s",
      "3.1 s",
      "30 s",
      "2 m 05 s",
      "13 h 04 m",
      "3 d 00 h",
    ]);
    expect([clock(8_047_331e6), clock(8_047_331e6, 0), spokenTime(8_047_331e6)]).toEqual([
      "02:14:07.331",
      "02:14:07",
      "2 hours 14 minutes 7 seconds",
    ]);
    expect([count(9_999), count(12_400), count(3.1e6), bytes(88), bytes(5_120), money(0.41), money(0.001)]).toEqual([
      "9,999",
      "12.4k",
      "3.1M",
      "88 B",
      "5.1 kB",
      "$0.41",
      "< $0.01",
    ]);
  });

  it("never take a minute for sixty seconds", () => {
    for (let ms = 1; ms < 4_000_000; ms += 997) expect(duration(ms * 1e6)).not.toMatch(/\b60 [sm]\b/);
  });
});

describe("JSON", () => {
  it("keeps every character, whatever it holds and however it is wrapped", () => {
    const values: unknown[] = [
      {},
      [],
      null,
      true,
      -1.5e-7,
      'a"b\\c\n',
      { "a:b": "c", '"': "{}", n: [1, null, { "😀😀😀😀": "😀" }] },
      "x".repeat(500),
    ];
    for (const value of values) {
      for (const line of pretty(value).split("\n")) {
        expect(
          tokens(line)
            .map((token) => token.text)
            .join(""),
        ).toBe(line);
        for (const columns of [1, 2, 7, 40]) {
          const cut = wrapped(tokens(line), columns);
          expect(
            cut
              .flat()
              .map((token) => token.text)
              .join(""),
          ).toBe(line);
          for (const part of cut)
            expect(part.map((token) => token.text).join("").length).toBeLessThanOrEqual(Math.max(2, columns));
        }
      }
    }
  });

  it("tells keys from texts, numbers and words", () => {
    expect(
      tokens('  "a": ["b", -1.5, true],')
        .filter((token) => token.kind !== "")
        .map((token) => token.kind),
    ).toEqual([
      "attr",
      "punctuation",
      "punctuation",
      "string",
      "punctuation",
      "number",
      "punctuation",
      "literal",
      "punctuation",
      "punctuation",
    ]);
  });
});

describe("state", () => {
  it("differs where it differs, and says where", () => {
    const found = changes(
      { budget: 312.4, plan: ["a", { status: "open" }], "odd key": 1 },
      { budget: 312.39, plan: ["a", { status: "blocked" }], more: [] },
    );
    expect(found.map(({ kind, path, was, is }) => [kind, path, was, is])).toEqual([
      ["CHANGE", "budget", 312.4, 312.39],
      ["CHANGE", "plan[1].status", "open", "blocked"],
      ["REMOVE", '["odd key"]', 1, undefined],
      ["CREATE", "more", undefined, []],
    ]);
    expect(changes({ a: 1 }, { a: 1 })).toEqual([]);
    expect(changes(null, { a: 1 })).toMatchObject([{ kind: "CREATE", path: "" }]);
    expect(changes("one", "two")).toMatchObject([{ kind: "CHANGE", was: "one", is: "two" }]);
  });
});

describe("an exchange", () => {
  it("has a shape for how it went, and shows no path while it is masked", () => {
    expect([200, 204, 301, 404, 500, 0].map((status) => gradeOf({ status, error: null }))).toEqual([
      "plain",
      "plain",
      "moved",
      "refused",
      "failed",
      "failed",
    ]);
    expect(gradeOf({ status: 200, error: "reset" })).toBe("failed");
    const url = "https://desk.example/orders?customer=88";
    expect([placeOf(url, false), placeOf(url, true), placeOf("not an address", true)]).toEqual([
      "desk.example/orders?customer=88",
      "desk.example/…",
      "[masked]",
    ]);
  });
});
