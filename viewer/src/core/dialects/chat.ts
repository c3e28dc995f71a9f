/**
 * OpenAI Chat Completions and the many servers that speak it. A message and a delta have the same fields.
 */
import type { Message } from "../types";
import type { Assembly, ToolUse } from "./assembly";
import type { Dialect, ToolResult } from "./dialect";
import { pictured } from "./pictures";
import { array, type Body, dump, errorText, flatten, integer, name, obj, objects, string, truthy } from "./reading";

function callsOf(message: Body): [number, ToolUse][] {
  const found: [number, ToolUse][] = objects(message.tool_calls).map(([place, call]) => {
    const called = truthy(call.function) ? obj(call.function) : obj(call.custom);
    const use = {
      id: string(call.id),
      name: string(called.name),
      arguments: argumentsOf(called.arguments ?? called.input),
      runner: "client" as const,
    };
    return [integer(call.index) ?? place, use];
  });
  const legacy = obj(message.function_call);
  if (truthy(legacy)) {
    const called = string(legacy.name);
    found.push([-1, { id: called, name: called, arguments: argumentsOf(legacy.arguments), runner: "client" }]);
  }
  return found;
}

/** Some servers send the parsed object where OpenAI sends its text. */
function argumentsOf(value: unknown): string {
  return typeof value === "string" ? value : value === null || value === undefined ? "" : dump(value);
}

function messages(body: Body): Message[] {
  return array(body.messages).map((element) => {
    const message = obj(element),
      role = string(message.role),
      text = flatten(message.content);
    const calls = callsOf(message).map(([, { id, name: called, arguments: said }]) => ({
      id: id || null,
      name: called,
      arguments: said,
    }));
    const answered = role === "tool" ? string(message.tool_call_id) : role === "function" ? string(message.name) : null;
    const said = { role, text, calls, ...pictured(message.content) };
    return answered === null ? said : { ...said, result: { id: answered, text } };
  });
}

function results(body: Body): ToolResult[] {
  return messages(body).flatMap(({ result }) => (result ? [result] : []));
}

function read(assembly: Assembly, body: Body): void {
  if (truthy(body.error)) assembly.fail(errorText(body.error));
  assembly.model = name(body.model) ?? assembly.model;
  const usage = obj(body.usage);
  if (truthy(usage)) assembly.usage = { input: integer(usage.prompt_tokens), output: integer(usage.completion_tokens) };
  array(body.choices).forEach((element, place) => {
    const choice = obj(element);
    if (element === choice) readChoice(assembly, integer(choice.index) ?? place, choice);
  });
}

function readChoice(assembly: Assembly, index: number, choice: Body): void {
  const message = truthy(choice.delta) ? obj(choice.delta) : obj(choice.message);
  if (index === 0) {
    const thought = [message.reasoning_content, message.reasoning, message.thinking].find(truthy);
    if (thought !== undefined) assembly.block("reasoning", "reasoning").add(flatten(thought, ""));
    if (truthy(message.content)) assembly.block("text", "text").add(flatten(message.content, ""));
    if (truthy(message.refusal)) assembly.block("text", "text").add(string(message.refusal));
    readAlternatives(assembly, obj(choice.logprobs));
  }
  for (const [place, use] of callsOf(message))
    assembly.block(`${index}:${place}`, "tool", use.id, use.name).add(use.arguments);
  assembly.finish.set(index, name(choice.finish_reason) ?? assembly.finish.get(index) ?? "");
  // Not every compatible server sends [DONE].
  assembly.ended = [...assembly.finish.values()].every(Boolean);
}

/** Candidates of the first token that had any: what the model could have begun with. */
function readAlternatives(assembly: Assembly, probabilities: Body): void {
  if (assembly.alternatives.length > 0) return;
  for (const [, token] of objects(probabilities.content)) {
    const candidates = objects(token.top_logprobs);
    if (candidates.length < 2) continue;
    const chosen = string(token.token);
    assembly.alternatives = candidates
      .flatMap(([, { token: text, logprob }]) =>
        typeof logprob === "number"
          ? [{ text: string(text), p: Math.exp(logprob), chosen: string(text) === chosen }]
          : [],
      )
      .sort((a, b) => Number(b.chosen) - Number(a.chosen) || b.p - a.p);
    return;
  }
}

export const CHAT: Dialect = { messages, results, answer: read, event: read, end: "[DONE]", arrays: ["messages"] };
