/**
 * Anthropic Messages: content is a list of typed blocks, and results travel back inside user messages.
 */
import type { Message } from "../types";
import type { Assembly, Kind, ToolUse } from "./assembly";
import type { Dialect, ToolResult } from "./dialect";
import { pictured } from "./pictures";
import { array, type Body, dump, errorText, flatten, integer, name, obj, objects, string, truthy } from "./reading";

/** Delta type: what grows, and the field of its fragment. */
const DELTAS: Record<string, [Kind, string]> = {
  text_delta: ["text", "text"],
  thinking_delta: ["reasoning", "thinking"],
  input_json_delta: ["tool", "partial_json"],
};

const isResult = (block: Body): boolean => string(block.type).endsWith("tool_result");

function callOf(block: Body): ToolUse | null {
  const kind = string(block.type);
  if (!kind.endsWith("tool_use")) return null;
  const input = truthy(block.input) ? dump(block.input) : "{}";
  return {
    id: string(block.id),
    name: string(block.name),
    arguments: input,
    runner: kind === "tool_use" ? "client" : "provider",
  };
}

function results(body: Body): ToolResult[] {
  return array(body.messages).flatMap((message) =>
    objects(obj(message).content).flatMap(([, block]) =>
      isResult(block) ? [{ id: string(block.tool_use_id), text: flatten(block.content) }] : [],
    ),
  );
}

function messages(body: Body): Message[] {
  const said = array(body.messages).flatMap((element): Message[] => {
    const message = obj(element),
      role = string(message.role);
    if (!Array.isArray(message.content)) return [{ role, text: flatten(message.content), calls: [] }];
    const blocks = message.content.map(obj),
      plain = blocks.filter((block) => !isResult(block) && !callOf(block));
    const calls = blocks
      .flatMap((block) => callOf(block) ?? [])
      .map((use) => ({ id: use.id || null, name: use.name, arguments: use.arguments }));
    const back = blocks.filter(isResult).map((block): Message => {
      const text = flatten(block.content);
      return { role: "tool", text, calls: [], result: { id: string(block.tool_use_id), text }, ...pictured(block) };
    });
    const text = flatten(plain.map((block) => (typeof block.thinking === "string" ? block.thinking : block)));
    return text || calls.length > 0 || back.length === 0 ? [...back, { role, text, calls, ...pictured(plain) }] : back;
  });
  return truthy(body.system) ? [{ role: "system", text: flatten(body.system), calls: [] }, ...said] : said;
}

function answer(assembly: Assembly, body: Body): void {
  if (truthy(body.error)) assembly.fail(errorText(body.error));
  assembly.model = name(body.model);
  count(assembly, body.usage);
  for (const [index, block] of objects(body.content)) {
    begin(assembly, index, block);
    endBlock(assembly, index);
  }
  stop(assembly, body);
  assembly.ended = assembly.finish.size > 0;
}

function event(assembly: Assembly, body: Body): void {
  const index = integer(body.index) ?? -1;
  switch (body.type) {
    case "message_start":
      assembly.restart();
      answer(assembly, obj(body.message));
      assembly.ended = false;
      break;
    case "content_block_start":
      begin(assembly, index, obj(body.content_block));
      break;
    case "content_block_delta": {
      const delta = obj(body.delta),
        kind = string(delta.type);
      const grows = Object.hasOwn(DELTAS, kind) ? DELTAS[kind] : undefined;
      if (grows) assembly.block(index, grows[0]).add(string(delta[grows[1]]));
      break;
    }
    case "content_block_stop":
      endBlock(assembly, index);
      break;
    case "message_delta":
      stop(assembly, obj(body.delta));
      count(assembly, body.usage);
      break;
    case "message_stop":
      assembly.ended = true;
      break;
    case "error":
      assembly.fail(errorText(body.error));
  }
}

function begin(assembly: Assembly, index: number, block: Body): void {
  const use = callOf(block);
  if (use) assembly.block(index, "tool", use.id, use.name, use.runner).fallback = use.arguments;
  else if (block.type === "thinking") assembly.block(index, "reasoning").add(string(block.thinking));
  else if (block.type === "text") assembly.block(index, "text").add(string(block.text));
}

function endBlock(assembly: Assembly, index: number): void {
  const block = assembly.known(index);
  // No fragment came, so the arguments are those of the block's start.
  if (block && block.pieces.length === 0) block.add(block.fallback);
}

function stop(assembly: Assembly, holder: Body): void {
  const reason = name(holder.stop_reason);
  if (reason) assembly.finish.set(0, reason);
}

/** Counts are running totals: a later one replaces an earlier one, and a missing one changes nothing. */
function count(assembly: Assembly, usage: unknown): void {
  for (const [field, value] of Object.entries(obj(usage))) if (value !== null) assembly.counts[field] = value;
  const { counts } = assembly;
  if (!truthy(counts)) return;
  const uncached = integer(counts.input_tokens);
  const cached = (integer(counts.cache_read_input_tokens) ?? 0) + (integer(counts.cache_creation_input_tokens) ?? 0);
  assembly.usage = { input: uncached === null ? null : uncached + cached, output: integer(counts.output_tokens) };
}

export const ANTHROPIC: Dialect = { messages, results, answer, event, end: null, arrays: ["messages"] };
