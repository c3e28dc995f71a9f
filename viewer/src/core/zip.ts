/**
 * A ZIP with ZIP64, read: its end records, its directory, its local headers; and the headers that a bundle must have.
 *
 * Nothing is extracted and no name becomes a path. Comments, encryption, several disks and data descriptors are refused.
 */
import type { Bytes } from "./types";
import { Unreadable } from "./unreadable";

export interface ZipEntry {
  name: string;
  method: number;
  size: number;
  stored: number;
  crc32: number;
  /** Where its local header begins. */
  at: number;
}

const LOCAL = 0x04034b50,
  CENTRAL = 0x02014b50,
  END = 0x06054b50,
  END64 = 0x06064b50,
  LOCATOR = 0x07064b50;
const ALL = 0xffffffff;
export const TAIL_BYTES = 98; // ZIP64 end record, its locator, end record: behind the directory of a bundle
export const MOST_ENTRIES = 100_000;
const MOST_DIRECTORY = 64 << 20;

const ascii = new TextDecoder("latin1");
const view = (data: Uint8Array): DataView => new DataView(data.buffer, data.byteOffset, data.byteLength);

/** A 64-bit number; one that no double holds cannot be a size here. */
function u64(data: DataView, at: number): number {
  return data.getUint32(at, true) + data.getUint32(at + 4, true) * 2 ** 32;
}

function broken(what: string, offset?: number): Unreadable {
  return new Unreadable("damaged", what, "", offset);
}

/** Where the directory stands, by the end records: those of ZIP64 where there are any. */
export async function findDirectory(
  bytes: Bytes,
): Promise<{ at: number; length: number; count: number; from: number }> {
  const { size } = bytes;
  if (size < 22) throw new Unreadable("truncated", `${size} bytes are no ZIP`);
  const length = Math.min(size, TAIL_BYTES);
  const tail = view(await bytes.read(size - length, length));
  const end = length - 22;
  if (tail.getUint32(end, true) !== END || tail.getUint16(end + 20, true) !== 0)
    throw new Unreadable("truncated", "no end record of a ZIP where one ends");
  const has64 = length === TAIL_BYTES && tail.getUint32(56, true) === LOCATOR && tail.getUint32(0, true) === END64;
  const found = has64
    ? { count: u64(tail, 32), length: u64(tail, 40), at: u64(tail, 48), from: size - TAIL_BYTES }
    : {
        count: tail.getUint16(end + 10, true),
        length: tail.getUint32(end + 12, true),
        at: tail.getUint32(end + 16, true),
        from: size - 22,
      };
  if (found.count > MOST_ENTRIES || found.length > MOST_DIRECTORY || found.at + found.length !== found.from)
    throw broken("the end records do not fit the file", found.from);
  return found;
}

/** The entries as the directory lists them. */
export async function readDirectory(bytes: Bytes): Promise<ZipEntry[]> {
  const { at, length, count } = await findDirectory(bytes);
  const data = await bytes.read(at, length);
  const entries: ZipEntry[] = [];
  let place = 0;
  for (let i = 0; i < count; i++) {
    const [entry, next] = centralRecord(data, place, at);
    entries.push(entry);
    place = next;
  }
  if (place !== length) throw broken("the directory is longer than its entries", at + place);
  return entries;
}

/** One record of a directory, and where the next one begins. `base` is the file's offset of `data`. */
export function centralRecord(data: Uint8Array, place: number, base: number): [ZipEntry, number] {
  const v = view(data);
  if (place + 46 > data.length || v.getUint32(place, true) !== CENTRAL)
    throw broken("no record of the directory", base + place);
  const [nameLength, extraLength, commentLength] = [28, 30, 32].map((field) => v.getUint16(place + field, true)) as [
    number,
    number,
    number,
  ];
  const extraAt = place + 46 + nameLength,
    next = extraAt + extraLength + commentLength;
  if (next > data.length) throw broken("a record of the directory is cut", base + place);
  const entry: ZipEntry = {
    name: ascii.decode(data.subarray(place + 46, extraAt)),
    method: v.getUint16(place + 10, true),
    crc32: v.getUint32(place + 16, true),
    stored: v.getUint32(place + 20, true),
    size: v.getUint32(place + 24, true),
    at: v.getUint32(place + 42, true),
  };
  zip64(v, extraAt, extraAt + extraLength, entry, ["size", "stored", "at"]);
  return [entry, next];
}

/** The fields that were too large for 32 bits, in the order in which ZIP64 gives them. */
function zip64(v: DataView, at: number, end: number, entry: ZipEntry, fields: ("size" | "stored" | "at")[]): void {
  for (let place = at; place + 4 <= end; place += 4 + v.getUint16(place + 2, true)) {
    if (v.getUint16(place, true) !== 1) continue;
    let from = place + 4;
    const behind = Math.min(end, from + v.getUint16(place + 2, true));
    for (const field of fields) {
      if (entry[field] !== ALL || from + 8 > behind) continue;
      entry[field] = u64(v, from);
      from += 8;
    }
  }
}

/** The local header at byte `at`, and where its content begins; null where none stands there. */
export async function localHeader(bytes: Bytes, at: number): Promise<{ entry: ZipEntry; begins: number } | null> {
  if (at + 30 > bytes.size) return null;
  const fixed = view(await bytes.read(at, 30));
  if (fixed.getUint32(0, true) !== LOCAL) return null;
  const nameLength = fixed.getUint16(26, true),
    extraLength = fixed.getUint16(28, true);
  if (at + 30 + nameLength + extraLength > bytes.size) return null;
  const rest = await bytes.read(at + 30, nameLength + extraLength);
  const entry: ZipEntry = {
    name: ascii.decode(rest.subarray(0, nameLength)),
    method: fixed.getUint16(8, true),
    crc32: fixed.getUint32(14, true),
    stored: fixed.getUint32(18, true),
    size: fixed.getUint32(22, true),
    at,
  };
  zip64(view(rest), nameLength, rest.length, entry, ["size", "stored"]);
  return { entry, begins: at + 30 + nameLength + extraLength };
}

/** The entries that a file holds whole, by their local headers: what is left of one that was cut. */
export async function scanned(bytes: Bytes): Promise<{ entry: ZipEntry; begins: number; whole: boolean }[]> {
  const found = [];
  let at = 0;
  while (found.length < MOST_ENTRIES) {
    const here = await localHeader(bytes, at);
    if (!here) break;
    const end = here.begins + here.entry.stored;
    found.push({ ...here, whole: end <= bytes.size });
    if (!(end > at && end <= bytes.size)) break;
    at = end;
  }
  return found;
}

/** Little-endian bytes of a record: pairs of a width in bytes and a number. */
function packed(name: string, before: [number, number][], after: [number, number][] = []): Uint8Array {
  const width = (fields: [number, number][]): number => fields.reduce((sum, [bytes]) => sum + bytes, 0);
  const out = new Uint8Array(width(before) + name.length + width(after));
  let at = 0;
  const put = (fields: [number, number][]): void => {
    for (const [bytes, number] of fields)
      for (let i = 0, rest = number; i < bytes; i++, rest = Math.floor(rest / 256)) out[at++] = rest % 256;
  };
  put(before);
  for (let i = 0; i < name.length; i++) out[at++] = name.charCodeAt(i);
  put(after);
  return out;
}

const DATE = 0x21; // a bundle has no time of its own
const shared = (e: ZipEntry, extra: number): [number, number][] => [
  [2, 45],
  [2, 0],
  [2, e.method],
  [2, 0],
  [2, DATE],
  [4, e.crc32],
  [4, ALL],
  [4, ALL],
  [2, e.name.length],
  [2, extra],
];

/** The header that stands in front of an entry of a bundle. */
export function dueLocalHeader(e: ZipEntry): Uint8Array {
  return packed(
    e.name,
    [[4, LOCAL], ...shared(e, 20)],
    [
      [2, 1],
      [2, 16],
      [8, e.size],
      [8, e.stored],
    ],
  );
}

/** Its record in the directory. */
export function dueRecord(e: ZipEntry): Uint8Array {
  return packed(
    e.name,
    [[4, CENTRAL], [2, 0x32d], ...shared(e, 28), [2, 0], [2, 0], [2, 0], [4, 0x81800000], [4, ALL]],
    [
      [2, 1],
      [2, 24],
      [8, e.size],
      [8, e.stored],
      [8, e.at],
    ],
  );
}

/** What stands behind the directory of a bundle with `count` entries. */
export function dueEnd(count: number, at: number, length: number): Uint8Array {
  const few = Math.min(count, 0xffff);
  return packed("", [
    [4, END64],
    [8, 44],
    [2, 0x32d],
    [2, 45],
    [4, 0],
    [4, 0],
    [8, count],
    [8, count],
    [8, length],
    [8, at],
    [4, LOCATOR],
    [4, 0],
    [8, at + length],
    [4, 1],
    [4, END],
    [2, 0],
    [2, 0],
    [2, few],
    [2, few],
    [4, ALL],
    [4, ALL],
    [2, 0],
  ]);
}
