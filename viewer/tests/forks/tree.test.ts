/** The tree of runs: laid out without crossings, read from the server's answer, forked by a command that can be typed. */
import { describe, expect, it } from "vitest";
import { layTree, lineage, type TreeRun } from "../../src/core/dag";
import { agentWords, forkCommand, quoted } from "../../src/panes/forks/command";
import { lookOf } from "../../src/panes/forks/outcome";
import { readTree } from "../../src/panes/forks/tree";
import { chance } from "../timeline/made-outline";

function one(run: string, parent: string | null, at: number | null = null): TreeRun {
  return { run, parent, at, change: "", outcome: "failed", steps: 10, started: run, live: false };
}

function anyTree(seed: number): TreeRun[] {
  const next = chance(seed);
  const count = 1 + Math.floor(next() * 40);
  const runs = Array.from({ length: count }, (_, i) =>
    one(`r${i}`, i === 0 || next() < 0.05 ? null : `r${Math.floor(next() * i)}`, Math.floor(next() * 10)),
  );
  return runs.sort(() => next() - 0.5);
}

describe("the layout", () => {
  it("gives each run a row of its own, below its parent, with all that left it right behind it", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const runs = anyTree(seed);
      const { rows } = layTree(runs);
      expect(rows.map((row) => row.run.run).sort()).toEqual(runs.map((run) => run.run).sort());
      rows.forEach((row, i) => {
        expect(row.row).toBe(i);
        if (row.parentRow >= 0) expect(row.parentRow).toBeLessThan(row.row);
        const inside = rows.slice(i + 1, i + 1 + row.below);
        expect(inside.every((below) => lineage({ rows, columns: 0 }, below.run.run).includes(row))).toBe(true);
      });
    }
  });

  it("lets no line run through the sign of another run", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const { rows } = layTree(anyTree(seed));
      for (const row of rows) {
        if (row.parentRow < 0) continue;
        // A line goes down in its parent's column to the fork's row.
        const hit = rows.filter(
          (other) => other.row > row.parentRow && other.row < row.row && other.column === row.parentColumn,
        );
        expect(hit).toEqual([]);
      }
    }
  });

  it("keeps a chain of forks straight", () => {
    const chain = Array.from({ length: 30 }, (_, i) => one(`r${i}`, i === 0 ? null : `r${i - 1}`));
    expect(layTree(chain).columns).toBe(1);
    expect(lineage(layTree(chain), "r29")).toHaveLength(30);
  });

  it("takes a run without its parent, one named twice and a ring as they are", () => {
    const rows = layTree([one("a", "gone"), one("b", "c"), one("c", "b"), one("d", "d"), one("a", null)]).rows;
    expect(rows.map((row) => row.run.run).sort()).toEqual(["a", "b", "c", "d"]);
    expect(layTree([]).rows).toEqual([]);
  });
});

describe("the server's answer", () => {
  it("is read as far as it is one", () => {
    const nodes = [
      { run: "a", parent: null, at: null, change: "", outcome: "failed", steps: 4, started: "", live: false },
      { run: "b", parent: "a", at: 3, change: "model", live: true },
      { parent: "a" },
      7,
    ];
    expect(readTree({ nodes, more: 0 })).toMatchObject([
      { run: "a", parent: null },
      { run: "b", parent: "a", at: 3, change: "model", outcome: "", steps: null, live: true },
    ]);
    expect(readTree("no")).toEqual([]);
  });

  it("gives each outcome a sign of its own", () => {
    const signs = ["succeeded", "failed", "denied", "partial", "interrupted", "unknown", "complete"].map(
      (word) => lookOf(word, false).icon,
    );
    expect(new Set(signs).size).toBe(7);
    expect(lookOf("gave up", false).word).toBe("gave up");
    expect(lookOf("failed", true).word).toBe("running");
  });
});

describe("the command", () => {
  it("is what one would type, with words quoted where a shell needs it", () => {
    expect(forkCommand("run_7f3a", 9, { model: "other", prompt: "it's $5" }, ["python", "my agent.py"])).toBe(
      "worldline fork run_7f3a --at step:9 --set model=other --set 'prompt=it'\\''s $5' -- python 'my agent.py'",
    );
    expect(quoted("")).toBe("''");
    expect(agentWords({ agent: { command: ["python", "agent.py", 3] } })).toEqual(["python", "agent.py"]);
    expect(agentWords({})).toEqual([]);
  });
});
