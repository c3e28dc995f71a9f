/** Masked by default; revealed by field, step or session, with a reason, for five minutes; search and copy obey. */
// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Row } from "../../src/core/types";
import { maskOn, run } from "../../src/state/app";
import {
  auditTrail,
  maskAgain,
  masked,
  MASKED,
  reveal,
  REVEAL_MS,
  revealed,
  seen,
  sensitive,
  shown,
} from "../../src/state/mask";
import { story } from "./memory";

const row = (kind: string, src: string, seq: number, data: Record<string, unknown>): Row => ({
  seq,
  t: 0,
  kind,
  src,
  lane: "main",
  data,
});

beforeEach(() => {
  vi.useFakeTimers();
  run.value = story();
  maskOn.value = true;
  auditTrail.value = [];
  maskAgain();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("the mask", () => {
  it("hides everything until something is revealed", () => {
    for (const scope of ["field", "step", "session"] as const) expect(masked(scope, 412)).toBe(true);
    expect(seen("secret", "field", 412)).toBe(MASKED);
  });

  it("opens a row, a step or everything, and nothing beside it", async () => {
    await reveal("field", 412, "look at the button");
    expect(masked("field", 412)).toBe(false);
    expect([masked("field", 413), masked("step", 412), masked("session", 412)]).toEqual([true, true, true]);
    maskAgain();
    await reveal("step", 412, "look at the step");
    expect([masked("field", 413), masked("step", 415)]).toEqual([false, false]);
    expect([masked("field", 402), masked("session", 412)]).toEqual([true, true]);
    expect(masked("field", 399, 41)).toBe(false);
    maskAgain();
    await reveal("session", 0, "look at all");
    for (const scope of ["field", "step", "session"] as const) expect(masked(scope, 7)).toBe(false);
  });

  it("comes back after five minutes by itself", async () => {
    await reveal("session", 0, "a look");
    vi.advanceTimersByTime(REVEAL_MS - 1000);
    expect(masked("field", 1)).toBe(false);
    vi.advanceTimersByTime(1001);
    expect(masked("field", 1)).toBe(true);
    expect(revealed()).toEqual([]);
  });

  it("asks for a reason", async () => {
    await expect(reveal("field", 1, "  ")).rejects.toThrow(/why/i);
    expect(masked("field", 1)).toBe(true);
    expect(auditTrail.value).toEqual([]);
  });

  it("keeps in the page who looked at what, where no server does", async () => {
    await reveal("step", 402, "which rule was it");
    expect(auditTrail.value).toMatchObject([{ scope: "step", seq: 402, step: 40, reason: "which rule was it" }]);
  });
});

describe("with a server", () => {
  it("nothing is shown before the server has written it down", async () => {
    const asked: { url: string; body: unknown; header: string | null }[] = [];
    let answer!: (value: Response) => void;
    vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
      asked.push({ url, body: JSON.parse(String(init.body)), header: new Headers(init.headers).get("X-Worldline") });
      return new Promise<Response>((resolve) => (answer = resolve));
    });
    run.value = { ...story(), server: "r/run_1/" };
    const waiting = reveal("field", 412, "see the text");
    expect(masked("field", 412)).toBe(true);
    answer(new Response("null"));
    await waiting;
    expect(masked("field", 412)).toBe(false);
    expect(asked).toEqual([
      { url: "r/run_1/audit", header: "1", body: { what: "reveal", scope: "field", seq: 412, reason: "see the text" } },
    ]);
  });

  it("nothing is shown where it cannot be written down", async () => {
    vi.stubGlobal("fetch", async () => new Response("disk full", { status: 500 }));
    run.value = { ...story(), server: "r/run_1/" };
    await expect(reveal("session", 0, "see it")).rejects.toThrow(/500.*disk full/);
    expect(masked("session", 0)).toBe(true);
  });
});

describe("a row", () => {
  it("is shown and copied without its contents while it is masked", async () => {
    const result = row("observation", "tool_result", 415, {
      name: "read",
      result: "the customer's name",
      elapsed_ns: 5,
    });
    expect(JSON.stringify(shown(result))).not.toContain("customer");
    expect(shown(result).data).toMatchObject({ name: "read", elapsed_ns: 5, result: MASKED });
    await reveal("field", 415, "read it");
    expect(shown(result)).toEqual(result);
  });

  it("is sensitive where it holds what came back from the world, or carries it on", () => {
    for (const [kind, src, is] of [
      ["observation", "terminal", true],
      ["observation", "console", true],
      ["observation", "network", true],
      ["observation", "tool_result", true],
      ["decision", "request", true],
      ["observation", "sample", false],
      ["decision", "response", false],
      ["permission", "denied", false],
      ["action", "tool_call", false],
    ] as const)
      expect([kind, src, sensitive(row(kind, src, 1, {}))]).toEqual([kind, src, is]);
  });
});
