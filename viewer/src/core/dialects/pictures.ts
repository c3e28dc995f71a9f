/**
 * Pictures in what a model is asked and what tools give back: data URLs (OpenAI), base64 sources (Anthropic), inline
 * data (Gemini) and image contents (MCP). Only what the record itself holds; an address elsewhere is no picture here.
 */
import type { Picture } from "../types";
import { type Body, obj, string } from "./reading";

const SHOWN = /^image\/(?:png|jpe?g|gif|webp|avif|bmp)$/i;
const DATA_URL = /^data:([^;,]{1,60});base64,/i;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
const DEEPEST = 8;
const MOST = 64;
const MOST_PARTS = 20_000;

/** The pictures of a content, in their order; at most 64. */
export function picturesIn(content: unknown): Picture[] {
  const looking: Looking = { found: [], left: MOST_PARTS };
  collect(content, 0, looking);
  return looking.found;
}

/** The same as a field of a message, which most have not. */
export function pictured(content: unknown): { pictures?: Picture[] } {
  const pictures = picturesIn(content);
  return pictures.length > 0 ? { pictures } : {};
}

/** A value for reading beside its pictures: where one stands in it, that says so in place of its text. */
export function besidePictures(value: unknown, pictures: Picture[]): unknown {
  if (pictures.length === 0) return value;
  const shown = new Set(pictures.map(({ base64 }) => base64));
  const read = (text: string): string =>
    shown.has(standard(text.replace(DATA_URL, "")))
      ? `[picture, ${text.length.toLocaleString("en")} characters]`
      : text;
  return JSON.parse(JSON.stringify(value, (_, each: unknown) => (typeof each === "string" ? read(each) : each)));
}

/** What is looked at: a content has some parts, and a tool's result may be anything. */
interface Looking {
  found: Picture[];
  left: number;
}

function collect(value: unknown, depth: number, looking: Looking): void {
  if (depth > DEEPEST || looking.found.length >= MOST || looking.left-- <= 0) return;
  const body = obj(value);
  const picture = typeof value === "string" ? ofUrl(value) : (ofSource(body) ?? ofData(body));
  if (picture) looking.found.push(picture);
  else for (const part of Array.isArray(value) ? value : Object.values(body)) collect(part, depth + 1, looking);
}

function ofUrl(text: string): Picture | null {
  const head = DATA_URL.exec(text);
  return head ? made(head[1] ?? "", text.slice(head[0].length)) : null;
}

/** `{media_type, data}`. */
function ofSource(body: Body): Picture | null {
  return typeof body.media_type === "string" ? made(body.media_type, body.data) : null;
}

/** `{mimeType, data}`, or in snake case. */
function ofData(body: Body): Picture | null {
  const type = string(body.mimeType) || string(body.mime_type);
  return type ? made(type, body.data) : null;
}

function made(type: string, data: unknown): Picture | null {
  if (!SHOWN.test(type) || typeof data !== "string" || !BASE64.test(data)) return null;
  return { type: type.toLowerCase(), base64: standard(data) };
}

/** Base64 that URLs may hold, as everybody reads it. */
function standard(base64: string): string {
  return base64.replaceAll("-", "+").replaceAll("_", "/");
}
