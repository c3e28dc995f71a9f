/**
 * Gemini's generateContent: contents are lists of parts, and an answer streams as whole small answers, as events or as
 * one JSON array. A call without an id is named by its tool, the second of the same answer `NAME#2`. The rules of
 * `model/dialects/gemini.py`.
 */
import type { Message } from "../types";
import type { Assembly, ToolUse } from "./assembly";
import type { Dialect, ToolResult } from "./dialect";
import { pictured } from "./pictures";
import { array, type Body, dump, flatten, integer, name, obj, objects, string, truthy } from "./reading";

/** A field by its name in camel case, or where that is missing in snake case. */
function field(body: Body, camel: string): unknown {
  return camel in body ? body[camel] : body[camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)];
}

const isObject = (value: unknown): boolean => obj(value) === value;
const parts = (content: Body): Body[] => array(content.parts).map(obj);

function words(part: Body): string[] {
  if (truthy(field(part, "functionCall")) || truthy(field(part, "functionResponse"))) return [];
  if (typeof part.text === "string") return [part.text];
  return truthy(field(part, "inlineData")) || truthy(field(part, "fileData")) ? ["[media]"] : [];
}

type Counts = Map<string, number>;

const made = (tool: string, counts: Counts): string => {
  const count = (counts.get(tool) ?? 0) + 1;
  counts.set(tool, count);
  return count === 1 ? tool : `${tool}#${count}`;
};

/** The call in a part. `counts` holds the calls without ids of one turn, by name. */
function callOf(part: Body, counts: Counts): ToolUse | null {
  const asked = field(part, "functionCall"),
    code = field(part, "executableCode"),
    given = isObject(asked) ? asked : isObject(code) ? code : field(part, "toolCall");
  if (!isObject(given)) return null;
  const call = obj(given),
    client = given === asked;
  const other = client ? "" : given === code ? "code_execution" : "provider_tool";
  const tool = name(call.name) ?? name(field(call, "toolType")) ?? other;
  if (!tool) return null;
  const said = client || "args" in call ? call.args : call;
  return {
    id: name(call.id) ?? made(tool, counts),
    name: tool,
    arguments: typeof said === "string" ? said : dump(truthy(said) ? said : {}),
    runner: client ? "client" : "provider",
  };
}

/** A result as text: the SDKs wrap what a function returned in an object of one field. */
function textOf(response: unknown): string {
  const values = Object.values(obj(response));
  if (values.length === 1 && typeof values[0] === "string") return values[0];
  return typeof response === "string" ? response : response == null ? "" : dump(response);
}

/** The messages of a history. What waits for its result is of the latest turn of the model. */
function messages(body: Body): Message[] {
  let waiting: ToolUse[] = [],
    called: Counts = new Map(),
    answered: Counts = new Map();
  const said = array(body.contents).flatMap((element): Message[] => {
    const content = obj(element),
      calls: ToolUse[] = [],
      back: Message[] = [],
      texts: string[] = [];
    for (const part of parts(content)) {
      if (answered.size > 0 && callOf(part, new Map())) {
        waiting = [];
        called = new Map();
        answered = new Map();
      }
      const use = callOf(part, called),
        response = obj(field(part, "functionResponse"));
      if (use) {
        calls.push(use);
        waiting.push(use);
      } else if (truthy(response)) {
        const tool = string(response.name),
          given = name(response.id),
          order = made(tool, answered);
        const at = waiting.findIndex((each) => (given ? each.id === given : each.name === tool));
        const [found] = at < 0 ? [] : waiting.splice(at, 1);
        const text = textOf(response.response);
        back.push({
          role: "tool",
          text,
          calls: [],
          result: { id: found?.id ?? given ?? order, text },
          ...pictured(response),
        });
      } else texts.push(...words(part));
    }
    const text = texts.join("\n");
    const own = parts(content).filter((part) => !truthy(field(part, "functionResponse")));
    const shown = calls.map((use) => ({ id: use.id, name: use.name, arguments: use.arguments }));
    if (!text && calls.length === 0 && back.length > 0) return back;
    return [...back, { role: string(content.role) || "user", text, calls: shown, ...pictured(own) }];
  });
  const system = obj(field(body, "systemInstruction"));
  const instruction = parts(system).flatMap(words).join("\n");
  return instruction ? [{ role: "system", text: instruction, calls: [] }, ...said] : said;
}

function results(body: Body): ToolResult[] {
  return messages(body).flatMap(({ result }) => (result ? [result] : []));
}

/** A whole answer, or one event of a stream: they have the same fields. */
function read(assembly: Assembly, body: Body): void {
  if (truthy(body.error)) assembly.fail(errorOf(body.error));
  assembly.model = name(field(body, "modelVersion")) ?? assembly.model;
  count(assembly, obj(field(body, "usageMetadata")));
  for (const [place, candidate] of objects(body.candidates))
    readCandidate(assembly, integer(candidate.index) ?? place, candidate);
  const blocked = name(field(obj(field(body, "promptFeedback")), "blockReason"));
  if (blocked) assembly.fail(`the prompt was blocked: ${blocked}`);
}

function readCandidate(assembly: Assembly, index: number, candidate: Body): void {
  for (const part of parts(obj(candidate.content))) {
    const use = callOf(part, assembly.called);
    if (use) assembly.block(`call ${assembly.calls++}`, "tool", use.id, use.name, use.runner).add(use.arguments);
    else if (index === 0) {
      const kind = truthy(part.thought) ? "reasoning" : "text";
      assembly.block(kind, kind).add(string(part.text));
    }
  }
  assembly.finish.set(index, name(field(candidate, "finishReason")) ?? assembly.finish.get(index) ?? "");
  assembly.ended = [...assembly.finish.values()].every(Boolean);
}

/** The status of an error is a word, its code only the number of HTTP's. */
function errorOf(error: unknown): string {
  const body = obj(error),
    message = name(body.message),
    status = name(body.status);
  if (message === null) return flatten(error);
  return status ? `${status}: ${message}` : message;
}

/** Counts are running totals: a later one replaces an earlier one, and a missing one changes nothing. */
function count(assembly: Assembly, usage: Body): void {
  const { counts } = assembly;
  const sum = (...fields: string[]): number | null => {
    const found = fields.flatMap((each) => integer(counts[each]) ?? []);
    return found.length > 0 ? found.reduce((a, b) => a + b) : null;
  };
  for (const each of ["promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"]) {
    const given = integer(field(usage, each));
    if (given !== null) counts[each] = given;
  }
  if (truthy(counts))
    assembly.usage = {
      input: sum("promptTokenCount", "toolUsePromptTokenCount"),
      output: sum("candidatesTokenCount", "thoughtsTokenCount"),
    };
}

export const GEMINI: Dialect = {
  messages,
  results,
  answer: read,
  event: read,
  end: null,
  arrays: ["contents"],
  listed: true,
};
