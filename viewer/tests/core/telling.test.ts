/** The words of the step list: what of a call's arguments stands in its one line, and how much of it. */
import { describe, expect, it } from "vitest";
import { firstLine, inLine, telling } from "../../src/core/telling";

describe("the line of a call", () => {
  it("says first what tells it from its neighbours, names and texts in quotes", () => {
    expect(telling({ cents: 6400, order: "10-4471", name: "Orders" })).toBe('"Orders" 6400 10-4471');
    expect(telling({ ref: "e21", text: "82.50" })).toBe('"82.50" e21');
    expect(telling({ url: "/orders?customer=88", method: "GET" })).toBe("/orders?customer=88 GET");
    expect(telling({ constructor: "x", command: "git push" })).toBe("git push x");
  });

  it("leaves out what is empty, and says a value that is no object as it is", () => {
    expect(telling({ text: "", url: null, id: 0 })).toBe("0");
    expect([telling({}), telling(null), telling(undefined)]).toEqual(["", "", ""]);
    expect(telling("one\ntwo")).toBe("one");
    expect(telling([1, { a: 2 }])).toBe('[1,{"a":2}]');
  });

  it("keeps within its line, however large the arguments are", () => {
    const large = { text: "x".repeat(1 << 20), rows: Array.from({ length: 100_000 }, (_, i) => ({ i })) };
    expect(telling(large).length).toBeLessThanOrEqual(120);
    let deep: unknown = "end";
    for (let i = 0; i < 5000; i++) deep = { deep };
    expect(telling({ deep }).length).toBeLessThanOrEqual(120);
    expect(firstLine("\n\n  a line  \nmore")).toBe("a line");
    expect(inLine("y".repeat(1 << 20)).length).toBeLessThanOrEqual(4000);
  });

  it("says of a content how large it is, and of what is withheld nothing", () => {
    expect(inLine({ $blob: { name: "a".repeat(64), size: 1204, type: "image/png", tier: "ordinary" } })).toBe(
      "1204 bytes",
    );
    expect(inLine({ $withheld: { why: "restricted" } })).toBe("");
  });
});
