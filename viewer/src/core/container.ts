/**
 * The container of a bundle: `container.json`, the last entry, which says everything that the ZIP's headers leave open.
 *
 * It is believed only in the one spelling that a writer gives it and with its own digest; offsets follow from it. Whether
 * headers and directory are what it says is checked when they are read (`Integrity`).
 */
import { asHex, sha256 } from "./sha256";
import type { Bytes } from "./types";
import { Unreadable } from "./unreadable";
import {
  centralRecord,
  dueEnd,
  dueLocalHeader,
  dueRecord,
  findDirectory,
  MOST_ENTRIES,
  TAIL_BYTES,
  type ZipEntry,
} from "./zip";

export const CONTAINER = "container.json";
const MOST_CONTAINER = 32 << 20;
const OWN_RECORD = 46 + CONTAINER.length + 28;
const MARK = ',"container":"';
const RESOURCE = "resources/[0-9a-f]{64}\\.(?:png|webp|jpeg|html|json|txt|bin)";
const NAMES_0 = `manifest\\.json|events\\.jsonl|index\\.json|annotations\\.jsonl|audit\\.jsonl|${RESOURCE}`;
const NAMES_1 =
  `${NAMES_0}|decisions\\.jsonl|network\\.jsonl|expiry\\.jsonl|restricted/key|thumbs/[0-9a-f]{64}\\.webp` +
  "|snapshots/[a-z0-9][a-z0-9_-]{0,63}/meta\\.json|media/[a-z0-9][a-z0-9_-]{0,63}\\.(?:mp4|webm|kf\\.json)";
const NAMES: Record<string, RegExp> = {
  "worldline-container/0": new RegExp(`^(?:${NAMES_0})$`),
  "worldline-container/1": new RegExp(`^(?:${NAMES_1})$`),
};

export interface Entry extends ZipEntry {
  /** SHA-256 of its stored bytes, in hex. */
  sha256: string;
  /** Where its stored bytes begin. */
  begins: number;
}

export interface Container {
  format: string;
  entries: Map<string, Entry>;
  seal: string;
  withheld: Set<string>;
  /** Bytes of `container.json`, where they stand, and where the directory begins. */
  own: { begins: number; data: Uint8Array; directory: number };
  /** Whether a later version wrote it: what is understood of it is used, and nothing of it is judged. */
  newer: boolean;
}

/** Read and judge the tail of a bundle. */
export async function openContainer(bytes: Bytes): Promise<Container> {
  if (bytes.size < TAIL_BYTES) throw new Unreadable("truncated", `${bytes.size} bytes are no bundle`);
  const { at, length } = await findDirectory(bytes);
  const own =
    length >= OWN_RECORD ? centralRecord(await bytes.read(at + length - OWN_RECORD, OWN_RECORD), 0, at)[0] : null;
  const begins = own ? own.at + 30 + CONTAINER.length + 20 : 0;
  if (own?.name !== CONTAINER || own.stored > MOST_CONTAINER || begins + own.stored !== at)
    throw new Unreadable("damaged", "the last entry is not container.json", "", at);
  const data = await bytes.read(begins, own.stored);
  const container = decode(data, { begins, data, directory: at });
  const last = [...container.entries.values()].at(-1);
  if ((last ? last.begins + last.stored : 0) !== own.at)
    throw new Unreadable("damaged", "container.json does not stand behind the entries that it lists", "", own.at);
  return container;
}

function decode(data: Uint8Array, own: Container["own"]): Container {
  const wrong = (what: string): Unreadable => new Unreadable("damaged", what, "", own.begins);
  const end = data.length - MARK.length - 66;
  const before = data.subarray(0, Math.max(end, 0));
  const digest = asHex(sha256(Uint8Array.of(4), before));
  const text = new TextDecoder();
  if (text.decode(data.subarray(Math.max(end, 0))) !== `${MARK}${digest}"}`)
    throw wrong("container.json is not what was packed");
  let said: { format?: unknown; entries?: unknown; seal?: unknown; withheld?: unknown };
  const spelled = text.decode(before);
  try {
    said = JSON.parse(`${spelled}}`);
  } catch {
    throw wrong("container.json cannot be read");
  }
  const { format, entries, seal, withheld = [] } = said;
  if (typeof format !== "string" || typeof seal !== "string" || !Array.isArray(entries) || !Array.isArray(withheld))
    throw wrong("container.json holds something else than a container says");
  const allowed = NAMES[format],
    newer = !allowed;
  if (newer && !/^worldline-container\/\d+$/.test(format))
    throw new Unreadable("not-a-bundle", `a container in the format ${format.slice(0, 60)}`);
  const found = new Map<string, Entry>();
  let at = 0;
  for (const entry of entries as unknown[]) {
    const listed = possible(entry);
    if (!listed) throw wrong("an entry with impossible values");
    if (found.has(listed.name) || (allowed && !allowed.test(listed.name)) || found.size >= MOST_ENTRIES)
      throw wrong(`a name twice, one that no bundle has, or too many: ${listed.name.slice(0, 80)}`);
    const begins = at + 30 + listed.name.length + 20;
    found.set(listed.name, { ...listed, at, begins });
    at = begins + listed.stored;
  }
  // In any other spelling it could hold what nobody looks for.
  if (!newer && JSON.stringify({ format, entries, seal, withheld }) !== `${spelled}}`)
    throw wrong("container.json says more than a container says, or says it in other words");
  return {
    format,
    entries: found,
    seal,
    withheld: new Set(withheld.map((left) => String((left as unknown[])[0]))),
    own,
    newer,
  };
}

function possible(entry: unknown): Omit<Entry, "at" | "begins"> | null {
  if (!Array.isArray(entry) || entry.length < 6) return null;
  const [name, method, size, stored, crc32, sha256] = entry as unknown[];
  const sizes = [size, stored, crc32].every((n) => Number.isSafeInteger(n) && (n as number) >= 0);
  if (
    typeof name !== "string" ||
    !/^[\x20-\x7e]+$/.test(name) ||
    (method !== 0 && method !== 8) ||
    !sizes ||
    typeof sha256 !== "string"
  )
    return null;
  return { name, method, size: size as number, stored: stored as number, crc32: crc32 as number, sha256 };
}

/** Whether the header in front of an entry is its own: `data` is what stands there. */
export function isHeaderOf(entry: Entry, data: Uint8Array): boolean {
  const due = dueLocalHeader(entry);
  return due.length === data.length && due.every((byte, at) => data[at] === byte);
}

/** The first byte at which directory and end records differ from what `container.json` says, or -1. */
export async function directoryDiffers(
  bytes: Bytes,
  container: Container,
  crc32: (data: Uint8Array) => number,
): Promise<number> {
  const { begins, data, directory } = container.own;
  const own: ZipEntry = {
    name: CONTAINER,
    method: 0,
    size: data.length,
    stored: data.length,
    crc32: crc32(data),
    at: begins - 50 - CONTAINER.length,
  };
  const here = await bytes.read(directory, bytes.size - directory);
  let at = 0;
  const differs = (due: Uint8Array): boolean => {
    for (const byte of due) {
      if (here[at] !== byte) return true;
      at++;
    }
    return false;
  };
  for (const entry of [...container.entries.values(), own]) if (differs(dueRecord(entry))) return directory + at;
  if (differs(dueEnd(container.entries.size + 1, directory, at)) || at !== here.length) return directory + at;
  const header = await bytes.read(own.at, begins - own.at);
  return isHeaderOf({ ...own, begins, sha256: "" }, header) ? -1 : own.at;
}
