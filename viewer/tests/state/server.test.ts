/** What the server refuses is said in its own words, with what to do; whatever else it answers is not lost. */
import { describe, expect, it } from "vitest";
import { ServerError, wordsOf } from "../../src/state/server";

describe("a refusal", () => {
  it("is the server's words and what to do, in that order", () => {
    expect(wordsOf('{"error":"JoinError","what":"nobody records it.","todo":"Start it again."}')).toBe(
      "nobody records it. Start it again.",
    );
    expect(wordsOf('{"missing":"expired","why":"its retention is over"}')).toBe("its retention is over");
  });

  it("that is no object of ours is given as it came, and never without end", () => {
    expect(wordsOf("<h1>502</h1>")).toBe("<h1>502</h1>");
    for (const odd of ["null", "7", '"x"', "[]", "{}", '{"what":7,"why":{}}']) expect(wordsOf(odd)).toBe(odd);
    expect(wordsOf(JSON.stringify({ what: "w".repeat(9000) })).length).toBe(600);
    expect(wordsOf("z".repeat(9000)).length).toBe(200);
  });

  it("names what was asked; where nothing answered it says so", () => {
    expect(new ServerError("POST r/a/fork", 403, "read-only").message).toBe(
      "POST r/a/fork: the server answered 403, read-only.",
    );
    expect(new ServerError("GET api/runs", 0, "").message).toContain("Is `worldline view` still running?");
  });
});
