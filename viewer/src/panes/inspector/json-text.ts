/**
 * JSON as coloured lines: what is a key, a text, a number. The text is never made into HTML.
 *
 * Pretty JSON has no token that goes over the end of a line, so a line is coloured alone, and only those in sight are.
 */

export interface Token {
  text: string;
  kind: "attr" | "string" | "number" | "literal" | "punctuation" | "";
}

/** A text (a key where a colon follows), a number, a word, a sign; anything else is left as it is. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b|([[\]{},:])/g;
/** A line longer than this is one value, and colouring it would stop the page. */
const LONGEST = 20_000;

/** The tokens of one line of pretty JSON, in order; together they are the line. */
export function tokens(line: string): Token[] {
  if (line.length > LONGEST) return [{ text: line, kind: "" }];
  const all: Token[] = [];
  let from = 0;
  for (const found of line.matchAll(TOKEN)) {
    const [whole, text, colon, number, word] = found;
    if (found.index > from) all.push({ text: line.slice(from, found.index), kind: "" });
    if (text !== undefined) {
      all.push({ text, kind: colon === undefined ? "string" : "attr" });
      if (colon !== undefined) all.push({ text: colon, kind: "punctuation" });
    } else
      all.push({ text: whole, kind: number !== undefined ? "number" : word !== undefined ? "literal" : "punctuation" });
    from = found.index + whole.length;
  }
  if (from < line.length) all.push({ text: line.slice(from), kind: "" });
  return all;
}

/** The tokens cut into lines of at most `columns` characters; a cut never parts a pair of surrogates. */
export function wrapped(line: readonly Token[], columns: number): Token[][] {
  const lines: Token[][] = [];
  let now: Token[] = [];
  let room = columns;
  for (const token of line) {
    let text = token.text;
    while (text.length > room) {
      let cut = room;
      if (/[\ud800-\udbff]/.test(text.charAt(cut - 1))) cut--;
      // A pair on an empty line of one column has to stand there: else it would never end.
      if (cut === 0 && room === columns) cut = 2;
      if (cut > 0) now.push({ text: text.slice(0, cut), kind: token.kind });
      lines.push(now);
      now = [];
      room = columns;
      text = text.slice(Math.max(cut, 0));
    }
    if (text !== "") now.push({ text, kind: token.kind });
    room -= text.length;
  }
  lines.push(now);
  return lines;
}

/** A value as lines of JSON. What JSON has no words for is written as text. */
export function pretty(value: unknown): string {
  return (
    JSON.stringify(value, (_key, inner: unknown) => (typeof inner === "bigint" ? String(inner) : inner), 2) ?? "null"
  );
}
