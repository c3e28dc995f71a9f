/**
 * What crossed a model's wire, for people: an answer from its bytes (JSON or server-sent events, whole or cut), and a
 * request's messages. The wire's own bytes are in the record; whatever is misread here changes nothing there.
 */
import type { Message } from "../types";
import { ANTHROPIC } from "./anthropic";
import { type Answer, Assembly } from "./assembly";
import { CHAT } from "./chat";
import { closed } from "./cut";
import type { Dialect, ToolResult } from "./dialect";
import { GEMINI } from "./gemini";
import { pictured, unspelled } from "./pictures";
import { type Body, errorText, flatten, obj, objects, string } from "./reading";
import { RESPONSES } from "./responses";
import { events } from "./sse";

export type { Answer, ToolUse } from "./assembly";
export type { ToolResult } from "./dialect";
export { type Body, obj } from "./reading";

const DIALECTS = new Map<string, Dialect>([
  ["openai.chat", CHAT],
  ["openai.responses", RESPONSES],
  ["openai.responses.retrieve", RESPONSES],
  ["anthropic.messages", ANTHROPIC],
  ["gemini.generate", GEMINI],
]);

/** The arrays of a request's body that hold its messages; of a route that is not known, any of the usual names. */
export function messageArrays(route: string): string[] {
  return DIALECTS.get(route)?.arrays ?? ["messages", "input", "contents"];
}

/** What a request's body says. Of a route that nobody knows: every object with a role, or the whole as text. */
export function readMessages(route: string, parsed: Body): Message[] {
  const dialect = DIALECTS.get(route);
  if (dialect) return dialect.messages(parsed).map(unspelled);
  for (const field of ["messages", "input", "contents"])
    if (Array.isArray(parsed[field]))
      return parsed[field].map((element) => {
        const said = obj(element);
        const text = typeof element === "string" ? element : flatten(said.content ?? said.parts ?? element);
        return unspelled({ role: string(said.role) || "user", text, calls: [], ...pictured(element) });
      });
  return [{ role: "request", text: JSON.stringify(parsed, null, 2), calls: [] }];
}

export function readResults(route: string, body: string): ToolResult[] {
  const parsed = parsedObject(body);
  return (parsed && DIALECTS.get(route)?.results(parsed)) ?? [];
}

/** The answer in a response's body; null where the route is no known dialect. */
export function readAnswer(
  route: string,
  status: number,
  contentType: string,
  body: Uint8Array | string,
): Answer | null {
  const dialect = DIALECTS.get(route);
  if (!dialect) return null;
  const text = (typeof body === "string" ? body : new TextDecoder().decode(body)).replace(/^\ufeff/, "");
  const assembly = new Assembly();
  if (isStream(contentType, text)) readStream(dialect, assembly, text);
  else readJson(dialect, assembly, text);
  if (status >= 400) assembly.fail(`HTTP ${status}`);
  return assembly.answer();
}

/** Gateways mislabel both kinds, so the first bytes decide before the header does. */
function isStream(contentType: string, text: string): boolean {
  const start = text.slice(0, 64).trimStart();
  if (start.startsWith("{") || start.startsWith("[")) return false;
  return /^(data:|event:|id:|retry:|:)/.test(start) || contentType.trim().toLowerCase().startsWith("text/event-stream");
}

function readStream(dialect: Dialect, assembly: Assembly, text: string): void {
  let number = 0;
  for (const said of events(text)) {
    const data = said.trim(),
      at = number++;
    if (data === dialect.end) assembly.ended = true;
    else if (data !== "") {
      let parsed: unknown;
      try {
        parsed = JSON.parse(data);
      } catch (fault) {
        assembly.fail(`event ${at} is not JSON: ${(fault as Error).message}`);
        continue;
      }
      if (parsed === obj(parsed)) dialect.event(assembly, parsed as Body);
    }
  }
}

function readJson(dialect: Dialect, assembly: Assembly, text: string): void {
  if (text.trim() === "") return;
  let parsed: unknown,
    whole = true;
  try {
    parsed = JSON.parse(text);
  } catch (fault) {
    whole = false;
    try {
      parsed = JSON.parse(closed(text));
    } catch {
      assembly.fail(`the answer is not JSON: ${(fault as Error).message}`);
      return;
    }
  }
  if (parsed === obj(parsed)) dialect.answer(assembly, parsed as Body);
  else if (dialect.listed && Array.isArray(parsed))
    for (const [, event] of objects(parsed)) dialect.event(assembly, event);
  else if (whole) assembly.fail(`the answer is not an object: ${errorText(parsed).slice(0, 200)}`);
  // A part cannot be an ended answer, whatever its fields say.
  if (!whole) assembly.ended = false;
}

function parsedObject(text: string): Body | null {
  try {
    const parsed: unknown = JSON.parse(text.replace(/^\ufeff/, ""));
    return parsed === obj(parsed) ? (parsed as Body) : null;
  } catch {
    return null;
  }
}
