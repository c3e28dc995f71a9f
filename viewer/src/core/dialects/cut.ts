/**
 * A JSON text that was cut off, closed again at the last place where it can be. The rule of `model/dialects/cut.py`:
 * nothing is guessed, and only prose (an answer's text, a call's arguments) keeps the part that came.
 */
const TOKEN = /"[^"\\]*(?:\\[\s\S][^"\\]*)*("?)|[{}[\],:]|[^"{}[\],:\s]+/g;
const PROSE = new Set(["content", "text", "refusal", "reasoning", "reasoning_content", "thinking", "arguments"]);
const CLOSER: Record<string, string> = { "{": "}", "[": "]" };

export function closed(text: string): string {
  const closers: string[] = [];
  const end = (): string => closers.toReversed().join("");
  let safe = 0,
    key = "",
    word = "",
    valued = false;
  for (const token of text.matchAll(TOKEN)) {
    const [mark] = token,
      behind = token.index + mark.length;
    if (mark === "{" || mark === "[") {
      closers.push(CLOSER[mark] as string);
      safe = behind;
      valued = false;
    } else if (mark === "}" || mark === "]") {
      if (closers.pop() !== mark) break;
      safe = behind;
      valued = false;
      if (closers.length === 0) break;
    } else if (mark === ",") {
      // Only now is a number or literal before the comma known to be all there.
      safe = token.index;
      valued = false;
    } else if (mark === ":") {
      key = word;
      valued = true;
    } else if (!mark.startsWith('"')) {
      continue;
    } else if (!token[1]) {
      if (valued && PROSE.has(key)) return `${text.slice(0, token.index)}${withoutCutEscape(mark)}"${end()}`;
      break;
    } else if (valued || closers.at(-1) === "]") {
      safe = behind;
    } else {
      word = mark.slice(1, -1);
    }
  }
  return text.slice(0, safe) + end();
}

function withoutCutEscape(opened: string): string {
  const cut = /(?<!\\)(?:\\\\)*(\\u[0-9a-fA-F]{0,3})$/.exec(opened);
  return cut ? opened.slice(0, opened.length - (cut[1] as string).length) : opened;
}
