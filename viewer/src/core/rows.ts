/**
 * Lines of the log as rows: parsed, looked into, and raised to the newest format. What is no row is left out.
 */
import { isObject, isSize, isText, type Json, unfit } from "./fields";
import type { Row } from "./types";

export const FORMATS = ["worldline/0", "worldline/1"];
const HASH_BYTES = 72; // ,"h":"<64 hex>"} without LF
/** Fields whose null says something: a value, and those of the header and the end that are always there. */
const KEPT = new Set(["value", "result", "session", "parent", "continues", "origin", "reason", "arguments", "name"]);
const TEXTS = ["call", "key", "mode", "effect", "parent_id", "action_id", "idempotency_key"];

/** A block's text as rows. `left` counts the lines that are none. Each row keeps its line as `raw`, where `keep` says so. */
export function parseLines(text: string, keep = true): { rows: Row[]; left: number } {
  const rows: Row[] = [];
  let left = 0;
  for (let at = 0; at < text.length;) {
    const found = text.indexOf("\n", at),
      end = found < 0 ? text.length : found;
    const row = parseLine(text.slice(at, end), keep);
    if (row) rows.push(row);
    else if (end > at) left++;
    at = end + 1;
  }
  return { rows, left };
}

/** One line without its LF, or null where it is no row that can be read. */
export function parseLine(line: string, keep = true): Row | null {
  if (line.length <= HASH_BYTES || !line.endsWith('"}') || !line.startsWith(',"h":"', line.length - HASH_BYTES))
    return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isObject(parsed)) return null;
  const { seq, t, kind, src, lane, data } = parsed;
  if (!isSize(seq) || !isSize(t) || !isText(kind) || !isText(src) || !isText(lane) || !isObject(data)) return null;
  for (const name of TEXTS) if (parsed[name] !== undefined && !isText(parsed[name])) return null;
  const row = parsed as Row;
  if (unfit(`${kind}/${src}`, data) !== null && !isNewer(row)) return null;
  // Null stands for what is not there, so that nobody has to ask twice.
  if (line.includes(":null"))
    for (const field in data) if (data[field] === null && !KEPT.has(field)) delete data[field];
  // Not enumerable: who lists the fields of a row, or writes it as JSON, does not mean its line.
  if (keep) Object.defineProperty(row, "raw", { value: line });
  return kind === "meta" && src === "header" ? upcast(row) : row;
}

/** Whether a header names a format that is not read here yet. */
export function isNewer(row: Row): boolean {
  const format = row.kind === "meta" && row.src === "header" ? row.data.format : undefined;
  return isText(format) && !FORMATS.includes(format) && /^worldline\/\d+$/.test(format);
}

/** A header of an old format as the newest has it: what that one did not know is filled in. */
function upcast(row: Row): Row {
  if (row.data.format !== "worldline/0") return row;
  const secrets = { policy: "redact", shapes: 0, ...(isObject(row.data.secrets) ? row.data.secrets : {}) };
  row.data = { continues: null, origin: null, ...row.data, secrets };
  return row;
}

/** A manifest of an old format as the newest has it. */
export function upcastManifest(manifest: Json): Json {
  if (manifest.format !== "worldline/0") return manifest;
  const lost =
    isObject(manifest.coverage) && Array.isArray(manifest.coverage.losses) && manifest.coverage.losses.length > 0;
  return {
    checkpoint_dag: [],
    codecs: [],
    retention: null,
    recording: null,
    derived_from: null,
    ...manifest,
    genesis: manifest.genesis ?? manifest.header,
    secrets: { shapes: {}, ...(isObject(manifest.secrets) ? manifest.secrets : {}) },
    capabilities: manifest.capture === "full" && !lost ? ["L0", "L1"] : [],
  };
}
