// An agent of two providers: asks one for a plan, runs its tool, reports the result, and lets the other sum up, streamed.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const openai = new OpenAI({ maxRetries: 1 });
const anthropic = new Anthropic({ maxRetries: 1 });
const tools = [{ type: "function", function: { name: "lookup", parameters: { type: "object", properties: {} } } }];
const messages = [{ role: "user", content: "refund #812 – bitte 💡" }];

async function ask() {
  const parts = [];
  const calls = [];
  const stream = await openai.chat.completions.create({ model: "m", messages, tools, stream: true });
  for await (const { choices: [{ delta }] } of stream) {
    if (delta.content) parts.push(delta.content);
    for (const call of delta.tool_calls ?? []) {
      calls[call.index] ??= { id: call.id, type: "function", function: { name: call.function.name, arguments: "" } };
      calls[call.index].function.arguments += call.function.arguments ?? "";
    }
  }
  return { parts, calls };
}

const told = [];
const plan = await ask();
told.push(plan);
messages.push({ role: "assistant", content: plan.parts.join("") || null, tool_calls: plan.calls });
for (const call of plan.calls) {
  const { order } = JSON.parse(call.function.arguments);
  messages.push({ role: "tool", tool_call_id: call.id, content: `order ${order}: lamp, 2 pieces` });
}
told.push(await ask());

const events = [];
const stream = anthropic.messages.stream({ model: "c", max_tokens: 99, messages: [{ role: "user", content: "sum up" }] });
for await (const event of stream) events.push(event);
told.push(events, (await stream.finalMessage()).content);
told.push((await openai.responses.create({ model: "m", input: "and now whole" })).output_text);
process.stdout.write(JSON.stringify(told) + "\n");
