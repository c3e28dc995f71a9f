/**
 * `annotations.jsonl`: notes that people wrote to a run (`docs/format/notes.md`). They stand outside the seal, in a chain of
 * their own: behind a line that does not chain, none counts.
 *
 * A line with `removed` takes away the note of its id. All lines that count are given, in order.
 */
import { isObject, isText } from "./fields";
import { asHex, sha256 } from "./sha256";
import type { Annotation } from "./types";

const HASH = 72; // ,"h":"<64 hex>"}

export function readAnnotations(text: string): Annotation[] {
  const notes: Annotation[] = [],
    encoder = new TextEncoder();
  let head: Uint8Array = new Uint8Array(32);
  for (const line of text.split("\n")) {
    const body = encoder.encode(line.slice(0, -HASH));
    head = sha256(Uint8Array.of(2), head, sha256(Uint8Array.of(0), body));
    if (line.slice(-HASH) !== `,"h":"${asHex(head)}"}`) break;
    const note = noteOf(line);
    if (note) notes.push(note);
  }
  return notes;
}

function noteOf(line: string): Annotation | null {
  let said: unknown;
  try {
    said = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isObject(said) || !isText(said.id)) return null;
  const { id, seq, at, text: words, who, tag, removed } = said;
  if (removed === true) return { id, seq: 0, at: "", text: "", removed };
  if (!Number.isInteger(seq) || !isText(words)) return null;
  const note: Annotation = { id, seq: seq as number, at: isText(at) ? at : "", text: words };
  if (isText(who)) note.who = who;
  if (isText(tag)) note.tag = tag;
  return note;
}
