/**
 * What is left of a bundle whose tail is not what was packed: the log stands in front, and is read as far as it goes.
 */
import { BlobBytes, type Source } from "./bytes";
import type { Json } from "./fields";
import { IndexMaker } from "./index-file";
import { inflate, salvaged } from "./inflate";
import { BundleRecording, first, type Opened, readManifest } from "./recording-bundle";
import type { Bytes } from "./types";
import { Unreadable } from "./unreadable";
import { scanned } from "./zip";

const MOST_FACTS = 64 << 20;
const MOST_SALVAGED = 1 << 30;

/** Open what `why` says is no whole bundle. Rejects with `Unreadable` where not one row can be read. */
export async function salvage(source: Source, label: string, why: Unreadable): Promise<Opened> {
  const found = await scanned(source);
  const log = found[0];
  if (!log || log.entry.name !== "events.jsonl" || log.entry.at !== 0)
    throw new Unreadable(
      why.why === "damaged" ? "damaged" : "not-a-bundle",
      `${label}: ${why.what}`,
      "Is it a file that `worldline pack` made?",
      why.offset,
    );
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const end = Math.min(log.begins + log.entry.stored, source.size);
  const inside =
    log.entry.method === 8 ? salvaged(pieces(source, log.begins, end), MOST_SALVAGED) : pieces(source, log.begins, end);
  const maker = new IndexMaker();
  let rest = new Uint8Array(0);
  for await (const part of inside) {
    const all = new Uint8Array(rest.length + part.length);
    all.set(rest);
    all.set(part, rest.length);
    const whole = all.lastIndexOf(10) + 1;
    maker.text(all.subarray(0, whole));
    parts.push(all.slice(0, whole));
    rest = all.slice(whole);
  }
  const text = new BlobBytes(new Blob(parts));
  const { index } = maker;
  if (index.rows === 0)
    throw new Unreadable("damaged", `${label}: no row of its log can be read`, "Ask for the file again.", 0);
  const cut = !log.whole || why.why === "truncated";
  const manifest = await wholeManifest(source, found);
  const recording = new BundleRecording(
    label,
    text,
    index,
    { at: 0, stored: text.size, deflated: false },
    manifest,
    null,
  );
  await recording.readHeader();
  const problems = [
    {
      what: cut ? "the file is cut: its end is missing" : why.what,
      ...(why.offset === undefined ? {} : { offset: why.offset }),
    },
  ];
  return { recording, integrity: { ...first(cut ? "truncated" : "changed", problems, manifest), checked: [] } };
}

async function wholeManifest(source: Source, found: Awaited<ReturnType<typeof scanned>>): Promise<Json | null> {
  const here = found.find(({ entry, whole }) => entry.name === "manifest.json" && whole && entry.stored <= MOST_FACTS);
  if (!here) return null;
  const stored = await source.read(here.begins, here.entry.stored);
  try {
    const data = here.entry.method === 8 ? await inflate(stored, here.entry.size, "manifest.json") : stored;
    return readManifest(new TextDecoder().decode(data));
  } catch {
    return null; // the verdict says already that this bundle is not what was packed
  }
}

async function* pieces(bytes: Bytes, from: number, end: number): AsyncGenerator<Uint8Array> {
  for (let at = from; at < end; at += 1 << 20) yield bytes.read(at, Math.min(1 << 20, end - at));
}
