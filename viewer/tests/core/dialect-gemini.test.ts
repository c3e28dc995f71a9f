/** Gemini's generateContent, in its three forms, and the results of a history. */
import { describe, expect, it } from "vitest";
import { readAnswer, readMessages, readResults } from "../../src/core/dialects";

const CALL = { functionCall: { name: "pay", args: { cents: 5 } } };
const said = (parts: unknown[], more: object = {}): object => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
});
const EVENTS = [
  { ...said([{ text: "hm", thought: true }]), usageMetadata: { promptTokenCount: 7 } },
  { ...said([{ text: "I p" }]), modelVersion: "gemini" },
  said([{ text: "ay ü" }, CALL]),
  { ...said([CALL], { finishReason: "STOP" }), usageMetadata: { candidatesTokenCount: 3, thoughtsTokenCount: 4 } },
];
const WHOLE = {
  ...said([{ text: "hm", thought: true }, { text: "I pay ü" }, CALL, CALL], { finishReason: "STOP" }),
  modelVersion: "gemini",
  usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3, thoughtsTokenCount: 4 },
};

describe("answers", () => {
  it.each([
    ["whole", JSON.stringify(WHOLE)],
    ["an array", JSON.stringify(EVENTS)],
    ["events", EVENTS.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join("")],
  ])("are the same as %s", (_, body) => {
    const call = { name: "pay", arguments: '{"cents":5}', runner: "client" };
    expect(readAnswer("gemini.generate", 200, "", body)).toMatchObject({
      model: "gemini",
      text: "I pay ü",
      reasoning: "hm",
      calls: [
        { id: "pay", ...call },
        { id: "pay#2", ...call },
      ],
      finish: ["STOP"],
      usage: { input: 7, output: 7 },
      complete: true,
      error: null,
    });
  });

  it("may be odd", () => {
    const read = (body: unknown, status = 200) => readAnswer("gemini.generate", status, "", JSON.stringify(body));
    expect(read({})).toMatchObject({ text: "", calls: [], complete: false, error: null });
    expect(read({ candidates: [null, 7, {}] })).toMatchObject({ text: "", calls: [], complete: false });
    expect(read({ candidates: [{ finishReason: "SAFETY" }] })).toMatchObject({ finish: ["SAFETY"], complete: true });
    expect(read({ promptFeedback: { blockReason: "SAFETY" } })?.error).toBe("the prompt was blocked: SAFETY");
    expect(read([{ error: { code: 429, message: "slow", status: "BUSY" } }], 429)?.error).toBe("BUSY: slow");
  });
});

describe("requests", () => {
  const response = (value: object, more: object = {}): object => ({
    functionResponse: { name: "pay", response: value, ...more },
  });
  const body = {
    system_instruction: { parts: [{ text: "be kind" }] },
    contents: [
      { parts: [{ text: "go" }] },
      { role: "model", parts: [{ text: "I pay" }, CALL, CALL] },
      { role: "user", parts: [response({ result: "one" }), response({ output: [2] })] },
      { role: "model", parts: [{ function_call: { name: "pay", id: "x2" } }] },
      { role: "user", parts: [response({ result: "three" })] },
    ],
  };

  it("have their results with their calls", () => {
    expect(readResults("gemini.generate", JSON.stringify(body))).toEqual([
      { id: "pay", text: "one" },
      { id: "pay#2", text: '{"output":[2]}' },
      { id: "x2", text: "three" },
    ]);
  });

  it("are messages", () => {
    const told = readMessages("gemini.generate", body).map(({ role, text, calls }) => [role, text, calls.length]);
    expect(told).toEqual([
      ["system", "be kind", 0],
      ["user", "go", 0],
      ["model", "I pay", 2],
      ["tool", "one", 0],
      ["tool", '{"output":[2]}', 0],
      ["model", "", 1],
      ["tool", "three", 0],
    ]);
  });
});
