/** The tree at an observation is the full one before it with every delta since, of its own stream and lane only. */
import { describe, expect, it } from "vitest";
import type { BlobRef, Missing, Observation } from "../../src/core/types";
import { isMissing, observationAt, readHeld } from "../../src/panes/stage/reading";
import { DELTAS, treeAt, type Seen } from "../../src/panes/stage/tree/chain";
import { walk } from "../../src/panes/stage/tree/tree";
import { observed, type Observed } from "./observed";

const full = (name: string): unknown => ({
  role: "main",
  ref: "e1",
  name,
  children: [{ role: "button", ref: "e2", name: "0" }],
});
const delta = (name: string): unknown => ({ changed: [{ ref: "e2", name }] });

async function at(run: Observed, seq: number, lane: number | null = 0): Promise<Seen> {
  const seen = await treeAt(
    run.recording,
    run.sources,
    (await observationAt(run.recording, seq, Math.floor(seq / 10))) as Observation,
    lane,
  );
  if (isMissing(seen)) throw new Error(seen.why);
  return seen;
}

const names = ({ tree }: Seen): string => [...walk(tree)].map(({ node }) => node.name).join(" ");

describe("the tree at an observation", () => {
  const run = observed([
    { seq: 5, src: "a11y_full", value: full("A") },
    { seq: 15, src: "a11y_delta", value: delta("1") },
    { seq: 25, src: "a11y_delta", value: delta("2") },
    { seq: 35, src: "a11y_full", value: full("B") },
    { seq: 45, src: "a11y_delta", value: delta("3") },
  ]);

  it("is the newest full one with its deltas, and says from where", async () => {
    expect(names(await at(run, 25))).toBe("A 2");
    expect(names(await at(run, 45))).toBe("B 3");
    expect(await at(run, 25)).toMatchObject({ deltas: 2, fullStep: 0, misfits: [], before: { seq: 15 } });
    expect(await at(run, 35)).toMatchObject({ deltas: 0, before: { seq: 25, step: 2 } });
    expect((await at(run, 5)).before).toBeNull();
  });

  it("costs its own delta only, where the one before is at hand", async () => {
    const again = observed([
      { seq: 5, src: "a11y_full", value: full("A") },
      { seq: 15, src: "a11y_delta", value: delta("1") },
      { seq: 25, src: "a11y_delta", value: delta("2") },
    ]);
    await at(again, 15);
    again.read.length = 0;
    await at(again, 25);
    expect(again.read).toEqual([25, 15]);
  });

  it("takes nothing of another stream or another lane", async () => {
    const mixed = observed(
      [
        { seq: 5, src: "a11y_full", value: full("A") },
        { seq: 8, src: "a11y_delta", value: delta("other tab"), name: "tab 2" },
        { seq: 15, src: "a11y_delta", value: delta("other lane") },
        { seq: 25, src: "a11y_delta", value: delta("own") },
      ],
      {},
      (step) => (step === 1 ? 1 : 0),
    );
    const seen = await at(mixed, 25);
    expect([names(seen), seen.deltas, seen.before?.seq]).toEqual(["A own", 1, 5]);
  });

  it("is missing with a reason, where there is no full one, too many deltas, or no tree", async () => {
    const why = async (run: Observed, seq: number): Promise<string> =>
      at(run, seq).then(
        () => "",
        (error: Error) => error.message,
      );
    expect(await why(observed([{ seq: 5, src: "a11y_delta", value: delta("1") }]), 5)).toMatch(/without a full tree/);
    expect(await why(observed([{ seq: 5, src: "a11y_full", value: 7 }]), 5)).toMatch(/no tree/);
    const many = observed([
      { seq: 1, src: "a11y_full", value: full("A") },
      ...Array.from({ length: DELTAS + 1 }, (_, i) => ({ seq: i + 2, src: "a11y_delta", value: delta(String(i)) })),
    ]);
    expect(await why(many, DELTAS + 2)).toMatch(/more than 1000 deltas/);
    expect(names(await at(many, DELTAS + 1))).toBe("A 999");
  });

  it("reads aria snapshots, and values that stand in contents", async () => {
    const ref = { $blob: { name: "a".repeat(64), size: 9, type: "text/plain", tier: "ordinary" } };
    const run = observed(
      [
        { seq: 5, src: "a11y_full", value: '- main "A":\n  - button "B" [ref=e2]' },
        { seq: 15, src: "a11y_full", value: ref },
      ],
      { ["a".repeat(64)]: new Blob(['- link "C"']) },
    );
    expect(await at(run, 5)).toMatchObject({ form: "text" });
    expect(names(await at(run, 15))).toBe("C");
  });
});

describe("what an observation holds", () => {
  const hold = async (value: unknown, contents: Parameters<typeof observed>[1] = {}): Promise<unknown> => {
    const run = observed([{ seq: 5, src: "screenshot", value }], contents);
    return readHeld(run.recording, (await observationAt(run.recording, 5, 0)) as Observation);
  };
  const blob = (type: string, size = 9): { $blob: BlobRef } => ({
    $blob: { name: "b".repeat(64), size, type, tier: "ordinary" },
  });
  const put = (content: Blob | Missing): Record<string, Blob | Missing> => ({ ["b".repeat(64)]: content });

  it("is a value, a file, or the reason why there is neither", async () => {
    expect(await hold({ a: [1] })).toEqual({ value: { a: [1] } });
    expect(await hold(blob("application/json"), put(new Blob(['{"a":1}'])))).toEqual({ value: { a: 1 } });
    expect(await hold(blob("image/png"), put(new Blob(["x"])))).toMatchObject({ type: "image/png", ref: { size: 9 } });
    expect(await hold({ $withheld: { size: 5, state: "expired" } })).toMatchObject({ missing: "expired" });
    expect(await hold({ $withheld: { size: 5, state: "withheld" } })).toMatchObject({ missing: "withheld" });
    expect(await hold({ $withheld: { size: 5, hmac: "" } })).toMatchObject({ missing: "not-captured" });
    expect(await hold(blob("application/json"), put(new Blob(['{"a":'])))).toMatchObject({ missing: "corrupt" });
    expect(await hold(blob("image/png"), put({ missing: "redacted", why: "a face" }))).toEqual({
      missing: "redacted",
      why: "a face",
    });
    expect(await hold(blob("image/png"))).toMatchObject({ missing: "lost" });
    expect(await hold(blob("application/json", 64 << 20))).toMatchObject({
      missing: "not-captured",
      why: expect.stringMatching(/67,108,864/),
    });
  });
});
