/** Search finds what a person reads, wherever it stands in the record, and looks into nothing that is masked. */
import { describe, expect, it } from "vitest";
import { expressionOf, type Query } from "../../src/core/query";
import { type Progress, search } from "../../src/core/search";
import { opened } from "./golden";

async function found(name: string, query: Partial<Query>): Promise<Progress> {
  const { recording } = await opened(name);
  const whole: Query = { text: "", regex: false, matchCase: false, masked: false, revealed: [], ...query };
  return new Promise((resolve) => search(recording, whole, (progress) => progress.done && resolve(progress)));
}

describe("search", () => {
  it("finds what a streamed answer said, though no piece of the stream holds it", async () => {
    const { hits } = await found("v1/complete.skn", { text: "zwölf 💡, almost" });
    expect(hits.map(({ kind, where, match }) => [kind, where, match])).toContainEqual([
      "decision/response",
      "text",
      "zwölf 💡, almost",
    ]);
  });

  it("finds arguments, results and what requests added, with the row and the place", async () => {
    const { hits, rows, left } = await found("v1/complete.skn", { text: "LAMP" });
    expect(new Set(hits.map(({ kind }) => kind))).toEqual(
      new Set(["decision/request", "decision/response", "action/tool_call", "observation/tool_result"]),
    );
    expect(hits.find(({ kind }) => kind === "action/tool_call")).toMatchObject({
      seq: 11,
      where: "arguments.item",
      match: "lamp",
    });
    expect(rows).toBe(37);
    expect(left).toEqual({ masked: 0, contents: 0 });
    expect((await found("v1/complete.skn", { text: "LAMP", matchCase: true })).hits).toEqual([]);
  });

  it("takes expressions, also those that meet JSON's own escapes", async () => {
    expect(
      (await found("v1/complete.skn", { text: "how\\s+many (lamps|shades)\\?", regex: true })).hits.length,
    ).toBeGreaterThan(0);
    expect((await found("v1/complete.skn", { text: "how many (lamps" })).hits).toEqual([]);
    expect(() => expressionOf({ text: "(", regex: true, matchCase: false, masked: false, revealed: [] })).toThrow(
      SyntaxError,
    );
  });

  it("looks into contents that are texts, and counts those that are none", async () => {
    const { hits } = await found("v1/blobs.skn", { text: "00017 a line of a long report" });
    expect(hits.map(({ where }) => where)).toContain("content");
    const withheld = await found("v1/restricted.skn", { text: "no such words anywhere" });
    expect(withheld.hits).toEqual([]);
  });

  it("keeps out of what is masked, but for the rows that were revealed, and says how much that is", async () => {
    const masked = await found("v1/complete.skn", { text: "lamp", masked: true });
    expect(masked.hits.every(({ kind }) => kind === "action/tool_call" || kind === "decision/response")).toBe(true);
    expect(masked.left.masked).toBeGreaterThan(5);
    const all = await found("v1/complete.skn", { text: "lamp" });
    const result = all.hits.find(({ kind }) => kind === "observation/tool_result");
    const seq = result?.seq ?? -1;
    const revealed = await found("v1/complete.skn", { text: "lamp", masked: true, revealed: [[seq, seq]] });
    expect(revealed.hits.map((hit) => hit.seq)).toContain(seq);
    expect(revealed.left.masked).toBe(masked.left.masked - 1);
  });

  it("gives the same whether or not it may skip lines that do not match", async () => {
    for (const text of ["a", "tool", "812", "GOLDEN"]) {
      const plainly = await found("v1/complete.skn", { text }),
        asPattern = await found("v1/complete.skn", { text, regex: true });
      expect(plainly.hits).toEqual(asPattern.hits);
    }
  });
});
