/** Answers and requests of the three dialects, whole, streamed, cut and odd. */
import { describe, expect, it } from "vitest";
import { readAnswer, readMessages, readResults } from "../../src/core/dialects";
import { picturesApart } from "../../src/core/dialects/pictures";

const sse = (...events: unknown[]): string =>
  events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("");
const delta = (fields: object, finish: string | null = null): object => ({
  id: "r",
  model: "m",
  choices: [{ index: 0, delta: fields, finish_reason: finish }],
});

const CHAT = sse(
  delta({ role: "assistant", content: "I lo" }),
  delta({ content: "ok ü" }),
  delta({ reasoning_content: "hm" }),
  delta({ tool_calls: [{ index: 0, id: "c1", function: { name: "find", arguments: '{"q":' } }] }),
  delta({ tool_calls: [{ index: 0, function: { arguments: '"x"}' } }] }),
  delta({}, "tool_calls"),
  { id: "r", choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } },
  "[DONE]",
);
const ANTHROPIC = sse(
  {
    type: "message_start",
    message: { id: "m", model: "claude", content: [], usage: { input_tokens: 5, cache_read_input_tokens: 2 } },
  },
  { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
  { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "I look" } },
  { type: "content_block_start", index: 2, content_block: { type: "tool_use", id: "t1", name: "find", input: {} } },
  { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"q":"x"}' } },
  { type: "content_block_stop", index: 2 },
  { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 9 } },
  { type: "message_stop" },
);
const RESPONSES = sse(
  { type: "response.created", response: { id: "x", model: "gpt", status: "in_progress", output: [] } },
  { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "I lo" },
  { type: "response.output_text.done", output_index: 0, content_index: 0, text: "I look" },
  {
    type: "response.output_item.added",
    output_index: 1,
    item: { type: "function_call", call_id: "f1", name: "find", arguments: "" },
  },
  { type: "response.function_call_arguments.delta", output_index: 1, delta: '{"q":"x"}' },
  {
    type: "response.completed",
    response: { id: "x", model: "gpt", status: "completed", output: [], usage: { input_tokens: 4, output_tokens: 2 } },
  },
);

describe("streamed answers", () => {
  it("are put together", () => {
    const call = { name: "find", arguments: '{"q":"x"}', runner: "client" };
    expect(readAnswer("openai.chat", 200, "text/event-stream", CHAT)).toMatchObject({
      text: "I look ü",
      reasoning: "hm",
      calls: [{ id: "c1", ...call }],
      finish: ["tool_calls"],
      usage: { input: 7, output: 3 },
      complete: true,
      error: null,
    });
    expect(readAnswer("anthropic.messages", 200, "", ANTHROPIC)).toMatchObject({
      text: "I look",
      reasoning: "hm",
      calls: [{ id: "t1", ...call }],
      finish: ["tool_use"],
      usage: { input: 7, output: 9 },
      complete: true,
    });
    expect(readAnswer("openai.responses", 200, "", RESPONSES)).toMatchObject({
      text: "I look",
      calls: [{ id: "f1", ...call }],
      finish: ["completed"],
      usage: { input: 4, output: 2 },
      complete: true,
    });
  });

  it("are a beginning of the whole answer wherever they are cut, and never complete", () => {
    for (const [route, stream] of [
      ["openai.chat", CHAT],
      ["anthropic.messages", ANTHROPIC],
      ["openai.responses", RESPONSES],
    ] as const) {
      const whole = readAnswer(route, 200, "", stream)?.text ?? "";
      for (let size = 0; size < stream.length - 60; size += 7) {
        const cut = readAnswer(route, 200, "", stream.slice(0, size));
        expect(whole.startsWith(cut?.text ?? "")).toBe(true);
        if (size < stream.length / 2) expect(cut?.complete).toBe(false);
      }
    }
  });
});

describe("odd answers", () => {
  it("give what there is of cut JSON, of an error, of a gateway's page", () => {
    const cut = '{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"The answ';
    expect(readAnswer("openai.chat", 200, "application/json", cut)).toMatchObject({
      text: "The answ",
      complete: false,
    });
    expect(
      readAnswer("openai.chat", 429, "", '{"error":{"type":"rate_limit_error","message":"slow down"}}')?.error,
    ).toBe("rate_limit_error: slow down");
    expect(readAnswer("anthropic.messages", 502, "text/html", "<html>bad gateway</html>")?.error).toContain("not JSON");
    expect(readAnswer("bedrock.converse", 200, "", "{}")).toBeNull();
  });

  it("give alternatives only where the provider gave probabilities", () => {
    const top = [
      { token: "Yes", logprob: Math.log(0.7) },
      { token: "No", logprob: Math.log(0.2) },
    ];
    const said = {
      choices: [
        {
          index: 0,
          message: { content: "No" },
          logprobs: { content: [{ token: "No", top_logprobs: top }] },
          finish_reason: "stop",
        },
      ],
    };
    const found = readAnswer("openai.chat", 200, "", JSON.stringify(said))?.alternatives ?? [];
    expect(found.map(({ text, chosen }) => [text, chosen])).toEqual([
      ["No", true],
      ["Yes", false],
    ]);
    expect(found[1]?.p).toBeCloseTo(0.7);
    expect(readAnswer("openai.chat", 200, "", CHAT)?.alternatives).toEqual([]);
  });
});

describe("requests", () => {
  it("are read as messages, with their calls and results", () => {
    const body = {
      system: "be kind",
      messages: [
        { role: "user", content: "go" },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I look" },
            { type: "tool_use", id: "t1", name: "find", input: { q: 1 } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "found" }, { type: "image" }] },
            { type: "text", text: "and?" },
          ],
        },
      ],
    };
    expect(
      readMessages("anthropic.messages", body).map(({ role, text, calls, result }) => [
        role,
        text,
        calls.length,
        result?.id ?? null,
      ]),
    ).toEqual([
      ["system", "be kind", 0, null],
      ["user", "go", 0, null],
      ["assistant", "I look", 1, null],
      ["tool", "found\n[image]", 0, "t1"],
      ["user", "and?", 0, null],
    ]);
    expect(readResults("anthropic.messages", JSON.stringify(body))).toEqual([{ id: "t1", text: "found\n[image]" }]);
    expect(readMessages("somebody.else", { messages: [{ role: "user", content: "hi" }] })).toEqual([
      { role: "user", text: "hi", calls: [] },
    ]);
  });
});

const PNG = "iVBORw0KGgo=";
const SHOWN = [{ type: "image/png", base64: PNG }];

describe("pictures of messages", () => {
  const url = `data:image/png;base64,${PNG}`;
  it.each([
    [
      "openai.chat",
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "look" },
              { type: "image_url", image_url: { url } },
            ],
          },
        ],
      },
    ],
    ["openai.responses", { input: [{ role: "user", content: [{ type: "input_image", image_url: url }] }] }],
    [
      "openai.responses",
      {
        input: [
          { type: "computer_call_output", call_id: "c", output: { type: "computer_screenshot", image_url: url } },
        ],
      },
    ],
    [
      "anthropic.messages",
      {
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: PNG } }],
          },
        ],
      },
    ],
    [
      "anthropic.messages",
      {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "t",
                content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: PNG } }],
              },
            ],
          },
        ],
      },
    ],
    [
      "gemini.generate",
      { contents: [{ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: PNG } }] }] },
    ],
    [
      "gemini.generate",
      { contents: [{ role: "user", parts: [{ inline_data: { mime_type: "image/png", data: PNG } }] }] },
    ],
  ])("of %s are those that it carries", (route, body) => {
    expect(readMessages(route, body).map((message) => message.pictures)).toEqual([SHOWN]);
  });

  it("are none where it has an address elsewhere, no picture, or no base64", () => {
    for (const image_url of [
      "https://pictures.example/a.png",
      "data:image/svg+xml;base64,PHN2Zz4=",
      "data:image/png;base64,<b>no</b>",
      "data:image/png;base64,",
      7,
    ]) {
      const [message] = readMessages("openai.chat", { messages: [{ role: "user", content: [{ image_url }] }] });
      expect(message).toEqual({ role: "user", text: expect.any(String), calls: [] });
    }
  });

  it.each([
    ["openai.chat", { messages: [{ role: "user", content: `${url}` }] }],
    ["openai.chat", { messages: [{ role: "user", content: [{ type: "text", text: url }] }] }],
    ["openai.chat", { messages: [{ role: "tool", tool_call_id: "c", content: url }] }],
    ["unknown.route", { contents: [{ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: PNG } }] }] }],
    [
      "anthropic.messages",
      { messages: [{ role: "user", content: [{ source: { media_type: "image/png", data: PNG } }] }] },
    ],
  ])("of %s are spelled out by no text beside them", (route, body) => {
    const [message] = readMessages(route, body);
    expect(message?.pictures).toEqual(SHOWN);
    expect(JSON.stringify({ ...message, pictures: [] })).not.toContain(PNG);
  });

  it("are not what only calls itself one", () => {
    const value = { pic: { mimeType: "image/png", data: "approved" }, decision: "approved" };
    expect(picturesApart(value)).toEqual({ pictures: [], rest: value });
  });

  it("stand in a value for reading as what they are", () => {
    const value = { said: "a", shown: [{ image_url: { url } }], other: "data:text/plain;base64,AAAA" };
    expect(picturesApart(value).rest).toEqual({
      ...value,
      shown: [{ image_url: { url: `[picture, ${url.length} characters]` } }],
    });
  });

  it("are read to a depth and a number that nobody needs", () => {
    let nested: unknown = { image_url: url };
    for (let n = 0; n < 5_000; n++) nested = { content: [nested] };
    expect(picturesApart(nested).pictures).toEqual([]);
    expect(picturesApart(Array.from({ length: 500 }, () => ({ image_url: url }))).pictures).toHaveLength(64);
  });
});
