/**
 * Pictures in what a model is asked and what tools give back: data URLs (OpenAI), base64 sources (Anthropic), inline
 * data (Gemini) and image contents (MCP). Only what the record itself holds; an address elsewhere is no picture here.
 */
import type { Message, Picture } from "../types";
import { type Body, obj, string } from "./reading";

const SHOWN = /^image\/(?:png|jpe?g|gif|webp|avif|bmp)$/i;
const DATA_URL = /^data:([^;,]{1,60});base64,/i;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
/** How the bytes of each begin, in base64: what only calls itself a picture is left as the text that it is. */
const BEGINS = /^(?:iVBORw0KGgo|[/_]9j[/_]|R0lGOD|UklGR|Qk|AAAA[A-Za-z0-9+/_-]{3}ZnR5c)/;
const DEEPEST = 8;
const MOST = 64;
const MOST_PARTS = 20_000;

/** The pictures of a content, in their order (at most 64), and the content with a word in the place of each. */
export interface Apart {
  pictures: Picture[];
  rest: unknown;
}

export function picturesApart(content: unknown): Apart {
  const looking: Looking = { found: [], left: MOST_PARTS };
  const rest = apart(content, 0, looking);
  return { pictures: looking.found, rest };
}

/** The pictures as a field of a message, which most have not. */
export function pictured(content: unknown): { pictures?: Picture[] } {
  const { pictures } = picturesApart(content);
  return pictures.length > 0 ? { pictures } : {};
}

/** A message whose text does not spell out the pictures that it has: they are masked, and so must their bytes be. */
export function unspelled(message: Message): Message {
  const { pictures, result } = message;
  if (!pictures) return message;
  const text = withoutBytes(message.text, pictures);
  return result
    ? { ...message, text, result: { ...result, text: withoutBytes(result.text, pictures) } }
    : { ...message, text };
}

function withoutBytes(text: string, pictures: Picture[]): string {
  for (const { base64 } of pictures)
    for (const spelled of [base64, base64.replaceAll("+", "-").replaceAll("/", "_")])
      text = text.replaceAll(spelled, "[picture]");
  return text;
}

/** What is looked at: a content has some parts, and a tool's result may be anything. */
interface Looking {
  found: Picture[];
  left: number;
}

function apart(value: unknown, depth: number, looking: Looking): unknown {
  if (depth > DEEPEST || looking.found.length >= MOST || looking.left-- <= 0) return value;
  if (typeof value === "string") {
    const head = DATA_URL.exec(value);
    const picture = head && made(head[1] ?? "", value.slice(head[0].length));
    return picture ? noted(picture, value, looking) : value;
  }
  if (Array.isArray(value)) return value.map((part) => apart(part, depth + 1, looking));
  const body = obj(value);
  if (body !== value) return value;
  const picture = ofData(body);
  return Object.fromEntries(
    Object.entries(body).map(([name, part]) => [
      name,
      picture && name === "data" ? noted(picture, part as string, looking) : apart(part, depth + 1, looking),
    ]),
  );
}

function noted(picture: Picture, spelled: string, looking: Looking): string {
  looking.found.push(picture);
  return `[picture, ${spelled.length.toLocaleString("en")} characters]`;
}

/** `{media_type, data}`, `{mimeType, data}`, or in snake case. */
function ofData(body: Body): Picture | null {
  const type = string(body.media_type) || string(body.mimeType) || string(body.mime_type);
  return type ? made(type, body.data) : null;
}

function made(type: string, data: unknown): Picture | null {
  if (!SHOWN.test(type) || typeof data !== "string" || !BEGINS.test(data) || !BASE64.test(data)) return null;
  return { type: type.toLowerCase(), base64: data.replaceAll("-", "+").replaceAll("_", "/") };
}
