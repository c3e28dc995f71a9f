/**
 * OpenAI Responses: an answer is a list of typed items; a stream sends each in fragments and then whole, and whole wins.
 */
import type { Message } from "../types";
import type { Assembly, Kind, Runner, ToolUse } from "./assembly";
import type { Dialect, ToolResult } from "./dialect";
import { pictured } from "./pictures";
import { array, type Body, dump, errorText, flatten, integer, name, obj, objects, string, truthy } from "./reading";

/** Item type: who runs the call, and the fields that may hold its arguments. */
const CALLS: Record<string, [Runner, string[]]> = {
  function_call: ["client", ["arguments"]],
  custom_tool_call: ["client", ["input"]],
  computer_call: ["client", ["actions", "action"]],
  local_shell_call: ["client", ["action"]],
  shell_call: ["client", ["action"]],
  apply_patch_call: ["client", ["operation"]],
  mcp_call: ["provider", ["arguments"]],
  web_search_call: ["provider", ["action"]],
  file_search_call: ["provider", ["queries"]],
  code_interpreter_call: ["provider", ["code"]],
  image_generation_call: ["provider", ["revised_prompt"]],
  tool_search_call: ["provider", ["arguments"]],
  mcp_approval_request: ["approval", ["arguments"]],
};

/** Event type without `.delta` or `.done`: what grows, and the field of the `.done` event that holds all of it. */
const FRAGMENTS: Record<string, [Kind, string]> = {
  "response.output_text": ["text", "text"],
  "response.refusal": ["text", "refusal"],
  "response.reasoning_summary_text": ["reasoning", "text"],
  "response.reasoning_text": ["reasoning", "text"],
  "response.function_call_arguments": ["tool", "arguments"],
  "response.mcp_call_arguments": ["tool", "arguments"],
  "response.custom_tool_call_input": ["tool", "input"],
};

function callOf(item: Body): ToolUse | null {
  const kind = string(item.type),
    known = CALLS[kind];
  if (!known || !Object.hasOwn(CALLS, kind)) return null;
  const runner = obj(item.environment).type === "container_reference" ? "provider" : known[0];
  const said = known[1].map((field) => item[field]).find(truthy) ?? "";
  return {
    id: name(item.call_id) ?? string(item.id),
    name: name(item.name) ?? kind.replace(/_call$/, ""),
    arguments: typeof said === "string" ? said : dump(said),
    runner,
  };
}

function resultOf(item: Body): ToolResult | null {
  const kind = string(item.type);
  if (!kind.endsWith("_output") && !(kind === "mcp_call" && item.output != null)) return null;
  return { id: name(item.call_id) ?? string(item.id), text: flatten(item.output) };
}

function items(body: Body): Body[] {
  return typeof body.input === "string" ? [{ role: "user", content: body.input }] : array(body.input).map(obj);
}

function messages(body: Body): Message[] {
  const said = items(body).map((item): Message => {
    const call = callOf(item),
      result = resultOf(item);
    const calls = call ? [{ id: call.id || null, name: call.name, arguments: call.arguments }] : [];
    const text = item.type === "reasoning" ? flatten(item.summary) : result ? result.text : flatten(item.content);
    const role = name(item.role) ?? string(item.type);
    const message: Message = { role, text: call && !result ? "" : text, calls, ...pictured(item) };
    return result ? { ...message, result } : message;
  });
  const instructions = name(body.instructions);
  return instructions ? [{ role: "system", text: instructions, calls: [] }, ...said] : said;
}

function results(body: Body): ToolResult[] {
  return items(body).flatMap((item) => resultOf(item) ?? []);
}

function event(assembly: Assembly, body: Body): void {
  const kind = string(body.type),
    dot = kind.lastIndexOf(".");
  const stem = kind.slice(0, Math.max(dot, 0)),
    phase = kind.slice(dot + 1),
    output = integer(body.output_index) ?? 0;
  const fragment = Object.hasOwn(FRAGMENTS, stem) ? FRAGMENTS[stem] : undefined;
  if ("response" in body) answer(assembly, obj(body.response));
  else if (kind === "response.output_item.added" || kind === "response.output_item.done")
    readItem(assembly, output, obj(body.item));
  else if (kind === "error" || truthy(body.error)) assembly.fail(errorText(truthy(body.error) ? body.error : body));
  else if (fragment && (phase === "delta" || phase === "done")) {
    const [grows, field] = fragment,
      summary = stem.includes("summary");
    const part = integer(summary ? body.summary_index : body.content_index) ?? 0;
    const block = assembly.block(keyOf(output, grows, summary, part), grows);
    if (phase === "delta") block.add(string(body.delta));
    else block.settle(string(body[field]));
  }
}

/** Where a block lives: tool calls by their item, other parts by list (summary or content) and index within it. */
const keyOf = (output: number, grows: Kind, summary: boolean, part: number): string =>
  grows === "tool" ? `${output}` : `${output}:${summary}:${part}`;

function answer(assembly: Assembly, body: Body): void {
  assembly.model = name(body.model) ?? assembly.model;
  const usage = obj(body.usage);
  if (truthy(usage)) assembly.usage = { input: integer(usage.input_tokens), output: integer(usage.output_tokens) };
  for (const [place, item] of objects(body.output)) readItem(assembly, place, item);
  const status = string(body.status);
  if (truthy(body.error)) assembly.fail(errorText(body.error));
  else if (status === "failed" || status === "cancelled")
    assembly.fail(`the response ${status === "failed" ? "failed" : "was cancelled"}`);
  else if (status === "completed" || status === "incomplete") {
    assembly.finish.set(0, name(obj(body.incomplete_details).reason) ?? status);
    assembly.ended = true;
  }
}

function readItem(assembly: Assembly, output: number, item: Body): void {
  const use = callOf(item);
  if (use) {
    assembly.block(keyOf(output, "tool", false, 0), "tool", use.id, use.name, use.runner).settle(use.arguments);
    return;
  }
  const kind: Kind = item.type === "reasoning" ? "reasoning" : "text";
  for (const field of ["summary", "content"])
    for (const [place, part] of objects(item[field]))
      assembly
        .block(keyOf(output, kind, field === "summary", place), kind)
        .settle(string(part.text) || string(part.refusal));
}

export const RESPONSES: Dialect = { messages, results, answer, event, end: null, arrays: ["input"] };
