/**
 * Whether the bytes are those that were sealed: the seal of the manifest, the chain over all rows up to it, every header
 * and the digest of every entry. What `worldline verify` says of structure and evidence, here, without a server.
 */
import { type Container, directoryDiffers, type Entry, isHeaderOf } from "./container";
import { Entries } from "./entries";
import { isText } from "./fields";
import { joined } from "./inflate";
import type { Log } from "./log";
import type { Contents } from "./recording";
import { asHex, crc32, Sha256, sha256 } from "./sha256";
import type { Bytes } from "./types";
import { inWords } from "./unreadable";

/** What was found so far: `checked` in words, and what does not hold. */
export interface Finding {
  checked: string[];
  problems: { what: string; seq?: number; offset?: number }[];
  /** The seal that holds; null where there is none that does. */
  seal: string | null;
  done: boolean;
  /** Whether the rows were looked at. */
  rows: boolean;
  /** What was not looked at, since it would have to be fetched for that. */
  left: string[];
}

const SUFFIX = 73;
const MOST_PROBLEMS = 100;
const STEP = 1 << 20;
const DIGITS = new Int8Array(128).fill(-1);
for (let i = 0; i < 16; i++) DIGITS["0123456789abcdef".charCodeAt(i)] = i;

/** The chain over the log. Behind a damaged line it goes on from the hash that the line still carries. */
export class Chain {
  head: Uint8Array = new Uint8Array(32);
  rows = 0;
  offset = 0;
  readonly problems: Finding["problems"] = [];
  private rest: Uint8Array = new Uint8Array(0);

  /** The next bytes of the log. */
  feed(data: Uint8Array): void {
    const all = this.rest.length > 0 ? joined([this.rest, data]) : data;
    let at = 0;
    for (let end = all.indexOf(10, at); end >= 0; end = all.indexOf(10, at)) {
      this.line(all.subarray(at, end + 1));
      at = end + 1;
    }
    this.rest = all.slice(at);
  }

  /** No byte comes any more. */
  end(): void {
    if (this.rest.length > 0) this.problem("the log ends inside a row");
  }

  private line(line: Uint8Array): void {
    const body = line.subarray(0, Math.max(0, line.length - SUFFIX));
    const due = sha256(LINK, this.head, sha256(LEAF, body)),
      carried = hashOf(line);
    if (!carried || carried.some((byte, i) => byte !== due[i]))
      this.problem(`row ${this.rows} was changed since it was recorded`);
    this.head = carried ?? due;
    this.rows++;
    this.offset += line.length;
  }

  private problem(what: string): void {
    if (this.problems.length < MOST_PROBLEMS) this.problems.push({ what, seq: this.rows, offset: this.offset });
  }
}

const LEAF = Uint8Array.of(0),
  LINK = Uint8Array.of(2);
const MARK = new TextEncoder().encode(',"h":"');

/** The hash that a line says it has; null where it says none. */
function hashOf(line: Uint8Array): Uint8Array | null {
  const at = line.length - SUFFIX;
  if (
    at < 0 ||
    MARK.some((byte, i) => line[at + i] !== byte) ||
    line[line.length - 3] !== 34 ||
    line[line.length - 2] !== 125
  )
    return null;
  const out = new Uint8Array(32);
  for (let i = 0; i < 32; i++) {
    const high = DIGITS[line[at + 6 + 2 * i] as number] ?? -1,
      low = DIGITS[line[at + 7 + 2 * i] as number] ?? -1;
    if (high < 0 || low < 0) return null;
    out[i] = high * 16 + low;
  }
  return out;
}

/** The seal that a manifest's line has and deserves; null where it does not. */
export function sealOf(manifest: Uint8Array): string | null {
  const end = manifest.length - ',"seal":"'.length - 67;
  if (end < 0) return null;
  const digest = asHex(sha256(Uint8Array.of(3), manifest.subarray(0, end)));
  return new TextDecoder().decode(manifest.subarray(end)) === `,"seal":"${digest}"}\n` ? digest : null;
}

export interface Evidence {
  bytes: Bytes;
  log: Log;
  contents: Contents;
  container: Container | null;
  manifest: Uint8Array | null;
  /** The text of `result.json`; null where it is not at hand. */
  result: string | null;
  /** Whether all entries may be read: those of a file that is here. */
  all: boolean;
  /** Whether the rows may be read for their chain. */
  rows: boolean;
}

/** Check everything; `say` is told on the way. Stops where `stopped` says so. */
export async function verify(
  { bytes, log, contents, container, manifest, result, all, rows }: Evidence,
  say: (finding: Finding) => void,
  stopped: () => boolean,
): Promise<void> {
  const finding: Finding = { checked: [], problems: [], seal: null, done: false, rows, left: rows ? [] : ["the rows"] };
  const told = (): void => say({ ...finding, checked: [...finding.checked], problems: [...finding.problems] });
  const attempt = async (what: string, check: () => Promise<void>): Promise<void> => {
    try {
      await check();
    } catch (error) {
      finding.problems.push({ what: `${what}: ${inWords(error)}` });
    }
  };
  finding.seal = manifest && sealOf(manifest);
  if (manifest && !finding.seal) finding.problems.push({ what: "the manifest is not what was sealed" });
  if (finding.seal) finding.checked.push("the manifest's seal");
  if (container && finding.seal !== null && container.seal !== finding.seal)
    finding.problems.push({ what: "the container names another seal" });
  told();
  if (rows) await attempt("the log", () => wholeChain(log, manifest, finding, told, stopped));
  if (result !== null && finding.seal && !isSealedResult(manifest, result))
    finding.problems.push({ what: "the result is not the one that was sealed" });
  if (container && !stopped()) {
    await attempt("the directory", async () => {
      const at = await directoryDiffers(bytes, container, crc32);
      if (at >= 0) finding.problems.push({ what: "the ZIP's directory is not what container.json says", offset: at });
      else finding.checked.push("the ZIP's directory");
    });
    await entriesOf(new Entries(bytes, container), contents, tiersOf(manifest), all, finding, stopped);
  }
  if (stopped()) return;
  finding.done = true;
  told();
}

async function wholeChain(
  log: Log,
  manifest: Uint8Array | null,
  finding: Finding,
  told: () => void,
  stopped: () => boolean,
): Promise<void> {
  const chain = new Chain();
  let blocks = 0,
    known = 0;
  for await (const { data } of log.scan()) {
    if (stopped()) return;
    chain.feed(data);
    for (; known < chain.problems.length; known++)
      finding.problems.push(chain.problems[known] as Finding["problems"][number]);
    if (++blocks % 32 !== 1) continue;
    finding.checked = [...finding.checked.filter((word) => !word.startsWith("rows ")), `rows 0 to ${chain.rows - 1}`];
    told();
  }
  chain.end();
  finding.problems.push(...chain.problems.slice(known));
  finding.checked = finding.checked.filter((word) => !word.startsWith("rows "));
  const sealed =
    manifest && finding.seal
      ? (JSON.parse(new TextDecoder().decode(manifest)) as { head?: unknown; rows?: unknown })
      : null;
  if (!sealed) {
    finding.checked.push(`the chain over ${chain.rows} rows`);
    return;
  }
  if (sealed.head !== asHex(chain.head) || sealed.rows !== chain.rows)
    finding.problems.push({
      what: `the log is not the one that was sealed: ${chain.rows} rows of ${isText(sealed.rows) ? "?" : String(sealed.rows)}`,
    });
  else finding.checked.push(`the chain over ${chain.rows} rows, up to the seal`);
}

function isSealedResult(manifest: Uint8Array | null, text: string): boolean {
  const { result } = JSON.parse(new TextDecoder().decode(manifest ?? new Uint8Array(0))) as {
    result?: { size?: unknown; sha256?: unknown };
  };
  const data = new TextEncoder().encode(text);
  return data.length === result?.size && asHex(sha256(data)) === result.sha256;
}

/** The tier of each content, by the manifest: the name of an ordinary one is its digest. */
function tiersOf(manifest: Uint8Array | null): Map<string, string> {
  try {
    const { blobs } = JSON.parse(new TextDecoder().decode(manifest ?? new Uint8Array(0))) as {
      blobs: [string, number, string, string][];
    };
    return new Map(blobs.map(([name, , , tier]) => [name, tier]));
  } catch {
    return new Map(); // that the manifest is none has been said
  }
}

/** Header and digest of an entry that is not held whole. */
async function isAsStored({ bytes }: Entries, entry: Entry, stopped: () => boolean): Promise<boolean> {
  if (!isHeaderOf(entry, await bytes.read(entry.at, entry.begins - entry.at))) return false;
  const hash = new Sha256();
  for (let at = 0; at < entry.stored && !stopped(); at += STEP)
    hash.update(await bytes.read(entry.begins + at, Math.min(STEP, entry.stored - at)));
  return asHex(hash.digest()) === entry.sha256;
}

async function entriesOf(
  entries: Entries,
  contents: Contents,
  tiers: Map<string, string>,
  all: boolean,
  finding: Finding,
  stopped: () => boolean,
): Promise<void> {
  let looked = 0,
    left = 0;
  for (const entry of entries.container.entries.values()) {
    if (stopped()) return;
    if (entry.name === "events.jsonl" && all) {
      if (await isAsStored(entries, entry, stopped)) looked++;
      else finding.problems.push({ what: "events.jsonl: not the bytes that were packed", offset: entry.begins });
      continue;
    }
    if (!all && entry.name !== "index.json" && entry.name !== "manifest.json") {
      if (entry.name !== "events.jsonl") left++; // the rows' chain speaks for it, or is left, too
      continue;
    }
    const name = entry.name.startsWith("resources/") ? entry.name.slice(10, 74) : null;
    try {
      const found =
        name === null
          ? await entries.read(entry)
          : await contents.content({
              name,
              size: entry.size,
              type: "",
              tier: tiers.get(name) === "ordinary" ? "ordinary" : "restricted",
            });
      if (name !== null && !tiers.has(name))
        finding.problems.push({ what: `${entry.name}: a content that was not sealed`, offset: entry.at });
      if ("missing" in found) finding.problems.push({ what: `${entry.name}: ${found.why}`, offset: entry.at });
      else looked++;
    } catch (error) {
      finding.problems.push({ what: inWords(error), offset: entry.at });
    }
  }
  finding.checked.push(`${looked} ${looked === 1 ? "entry" : "entries"} of the bundle`);
  if (left > 0) finding.left = [...finding.left, `${left} ${left === 1 ? "entry" : "entries"} of the bundle`];
}
