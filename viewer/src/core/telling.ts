/**
 * One line about something large: the arguments that tell one call from another, the first line of a text, a value.
 */
import { isObject, isText } from "./fields";
import { plain } from "./values";

/** Arguments that say what a call is about, the most telling first. */
const FIRST = [
  "name",
  "text",
  "url",
  "path",
  "file",
  "file_path",
  "filename",
  "command",
  "cmd",
  "query",
  "q",
  "pattern",
  "selector",
  "ref",
  "id",
  "title",
  "key",
  "value",
  "city",
  "item",
  "sku",
];
const MOST = 120;

export function firstLine(text: string): string {
  const trimmed = text.slice(0, 4000).trimStart(),
    end = trimmed.search(/[\r\n]/);
  return end < 0 ? trimmed.trimEnd() : trimmed.slice(0, end).trimEnd();
}

/** A value in one line. */
export function inLine(value: unknown): string {
  if (isText(value)) return firstLine(value);
  if (isObject(value) && isObject(value.$blob)) return `${String(value.$blob.size)} bytes`;
  if (isObject(value) && isObject(value.$withheld)) return "";
  return value === undefined ? "" : (JSON.stringify(plain(short(value, 0))) ?? "");
}

/** The same value with the far parts cut off: nobody makes a text of megabytes for one line. */
function short(value: unknown, depth: number): unknown {
  if (isText(value)) return value.length > 300 ? value.slice(0, 300) : value;
  if (depth > 6) return null;
  if (Array.isArray(value)) return value.slice(0, 12).map((element) => short(element, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, 16)
      .map(([key, inner]) => [key, short(inner, depth + 1)]),
  );
}

/** The arguments of a call that tell it from its neighbours: `"Orders"`, `17 lamp`. */
export function telling(form: unknown): string {
  const value = plain(form);
  if (!isObject(value)) return value === null || value === undefined ? "" : inLine(value).slice(0, MOST);
  const rank = (key: string): number => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
  const chosen = Object.keys(value).sort((a, b) => rank(a) - rank(b));
  let line = "";
  for (const key of chosen) {
    const inner = value[key];
    if (inner === null || inner === undefined || inner === "") continue;
    const said = isText(inner) ? (rank(key) < 2 ? `"${firstLine(inner)}"` : firstLine(inner)) : inLine(inner);
    if (line && line.length + said.length > MOST) break;
    line += `${line ? " " : ""}${said}`;
    if (line.length > 60) break;
  }
  return line.slice(0, MOST);
}
