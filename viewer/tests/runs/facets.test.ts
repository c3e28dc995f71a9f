/** The runs page finds runs: facets with true counts, words, an order. */
import { describe, expect, it } from "vitest";
import { errorClass, readRuns, shortName, type RunEntry } from "../../src/panes/runs/entries";
import { FACETS, inOrder, select, valuesOf, type Chosen } from "../../src/panes/runs/facets";
import { chance } from "../timeline/made-outline";

function entries(count: number, seed = 3): RunEntry[] {
  const next = chance(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
  return readRuns({
    total: count,
    runs: Array.from({ length: count }, (_, i) => ({
      run: `run_${String(i).padStart(26, "0")}`,
      task: pick(["refund", "triage", "search orders"]),
      model: pick(["gpt-5", "gpt-5-mini", null]),
      outcome: pick(["succeeded", "failed", "unknown"]),
      disposition: "complete",
      steps: Math.floor(next() * 50),
      started: 1.7e9 + i,
      seconds: next() * 4000,
      tokens: 1000,
      cost: next() < 0.2 ? null : next() * 2,
      tools: [pick(["click", "read"]), pick(["fill", "read"])],
      permissions: next() < 0.3 ? { denied: 1, requested: 2 } : {},
      error: next() < 0.3 ? "TimeoutError: too late" : null,
      trouble_step: 3,
      parent: null,
    })),
  }).runs;
}

const set = (...values: string[]): ReadonlySet<string> => new Set(values);

describe("facets", () => {
  const runs = entries(500);

  it("narrow from facet to facet and widen within one", () => {
    const chosen: Chosen = { outcome: set("failed"), model: set("gpt-5", "gpt-5-mini") };
    const { found } = select(runs, chosen, "");
    expect(found.length).toBeGreaterThan(0);
    expect(found).toEqual(runs.filter((run) => run.outcome === "failed" && run.model !== ""));
  });

  it("count what one more click would give: choosing a value lists exactly as many as it said", () => {
    const chosen: Chosen = { outcome: set("failed") };
    const { counts, found } = select(runs, chosen, "");
    for (const facet of FACETS) {
      for (const { value, count } of counts[facet]) {
        const more: Chosen = { ...chosen, [facet]: set(value) };
        expect([facet, value, select(runs, more, "").found.length]).toEqual([facet, value, count]);
      }
    }
    // What was not chosen stays in the facet it was not chosen in, so that the choice can be widened.
    expect(counts.outcome.map(({ value }) => value).sort()).toEqual(["failed", "succeeded", "unknown"]);
    // Each run has a value of each facet, so the facet that is not chosen counts all that are found, tools more than once.
    expect(counts.task.reduce((sum, { count }) => sum + count, 0)).toBe(found.length);
  });

  it("keep a chosen value that nothing has any more, with 0", () => {
    const { counts, found } = select(runs, { task: set("no such task") }, "");
    expect(found).toEqual([]);
    expect(counts.task).toContainEqual({ value: "no such task", count: 0 });
  });

  it("find all words, in any field of the entry and any case", () => {
    const found = select(runs, {}, "  GPT-5-mini timeouterror ").found;
    expect(found.length).toBeGreaterThan(0);
    expect(found.every((run) => run.model === "gpt-5-mini" && run.error !== "")).toBe(true);
    expect(select(runs, {}, "zebra").found).toEqual([]);
  });

  it("put durations and costs into ranges, in order, and say what is unknown", () => {
    const { counts } = select(runs, {}, "");
    const order = ["under 10 s", "10 s to 1 min", "1 to 10 min", "10 min to 1 h", "over 1 h", "unknown"];
    const values = counts.duration.map(({ value }) => value);
    expect(values).toEqual(order.filter((value) => values.includes(value)));
    expect(counts.cost.at(-1)?.value).toBe("unknown");
    expect(counts.cost.reduce((sum, { count }) => sum + count, 0)).toBe(runs.length);
  });
});

describe("the order", () => {
  it("goes both ways, with what is unknown at the end", () => {
    const runs = entries(60, 8);
    for (const down of [true, false]) {
      const costs = inOrder(runs, "cost", down).map((run) => run.cost);
      const known = costs.filter((cost): cost is number => cost !== null);
      expect(costs.slice(known.length).every((cost) => cost === null)).toBe(true);
      expect(known).toEqual([...known].sort((a, b) => (down ? b - a : a - b)));
    }
    expect(inOrder(runs, "started", true)[0]?.started).toBe(1.7e9 + 59);
  });
});

describe("an answer of the server", () => {
  it("is read as far as it is one", () => {
    expect(readRuns(null)).toEqual({ total: 0, pending: 0, runs: [] });
    const [run] = readRuns({
      runs: [
        {
          run: "run_x",
          steps: "many",
          tools: [1, "read"],
          permissions: { denied: 2, odd: "x" },
          task: { id: "t", text: "words" },
        },
        { run: 7 },
        "no",
      ],
    }).runs;
    expect(run).toMatchObject({
      run: "run_x",
      steps: null,
      tools: ["read"],
      permissions: { denied: 2 },
      task: "words",
      outcome: "",
      error: "",
    });
    expect(valuesOf(run as RunEntry, "outcome")).toEqual(["unknown"]);
  });

  it("names errors by their class, and bundles by their file", () => {
    expect(
      ["TimeoutError: late", "playwright.Error: x", "exit 1", "", "ValueError", "it broke off"].map(errorClass),
    ).toEqual(["TimeoutError", "playwright.Error", "exit 1", "", "ValueError", "other"]);
    expect([shortName("run_01m8nr682w8w4273vd41q35dj0"), shortName("refund.skn")]).toEqual(["5dj0", "refund"]);
  });
});
