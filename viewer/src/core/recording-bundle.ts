/**
 * A bundle as a recording: sealed and whole, or what can still be read of one that was cut or changed.
 */
import { readAnnotations } from "./annotations";
import type { Source } from "./bytes";
import { type Container, openContainer } from "./container";
import { Entries } from "./entries";
import { isObject, isSize, isText, type Json } from "./fields";
import { readIndex } from "./index-file";
import { Log, type Shape } from "./log";
import { type Contents, LogRecording, type Media, type Plan, standIn } from "./recording";
import { isNewer, upcastManifest } from "./rows";
import type { Annotation, Index, Integrity, Missing } from "./types";
import { inWords, Unreadable } from "./unreadable";

const MOST_FACTS = 64 << 20; // manifest, index

/** A recording, and what was found out about it while it was opened. */
export interface Opened {
  recording: LogRecording;
  integrity: Integrity;
}

/** Open a bundle; of one that is cut or changed, what can be read. Rejects with `Unreadable` where that is nothing. */
export async function openBundle(source: Source, label: string): Promise<Opened> {
  let container: Container;
  try {
    container = await openContainer(source);
  } catch (error) {
    if (error instanceof Unreadable && ["damaged", "truncated", "not-a-bundle"].includes(error.why))
      return salvaged(source, label, error);
    throw error;
  }
  const entries = new Entries(source, container);
  const problems: Integrity["problems"] = [];
  const facts = async <T>(name: string, read: (text: string) => T): Promise<T | null> => {
    try {
      const text = await entries.text(name, MOST_FACTS);
      if (text === null) throw new Unreadable("damaged", `${name} is missing`);
      return read(text);
    } catch (error) {
      if (error instanceof Unreadable && (error.why === "network" || error.why === "changed")) throw error;
      problems.push({ what: inWords(error) });
      return null;
    }
  };
  const manifest = await facts("manifest.json", readManifest);
  const log = entries.get("events.jsonl");
  if (!log) throw new Unreadable("damaged", `${label} holds no log`);
  const stored = log.stored;
  const index = await facts("index.json", (text) => readIndex(text, stored));
  if (!index) return salvaged(source, label, new Unreadable("damaged", problems.at(-1)?.what ?? ""));
  const recording = new BundleRecording(
    label,
    source,
    index,
    { at: log.begins, stored: log.stored, deflated: log.method === 8 },
    manifest,
    entries,
  );
  try {
    await recording.readHeader();
  } catch (error) {
    if (error instanceof Unreadable && error.why === "damaged") return salvaged(source, label, error);
    throw error;
  }
  const newer =
    container.newer ||
    isNewer(recording.header) ||
    (isText(manifest?.format) && !/^worldline\/[01]$/.test(manifest.format));
  if (manifest && manifest.seal !== container.seal)
    problems.push({ what: "the container names another seal than its manifest has" });
  const integrity = first(newer ? "newer" : problems.length > 0 ? "changed" : "checking", problems, manifest);
  if (entries.get("expiry.jsonl")) integrity.expired = await entries.expired();
  return { recording, integrity };
}

/** What is left of one that is cut or changed: the code for that is a part of its own. */
async function salvaged(source: Source, label: string, why: Unreadable): Promise<Opened> {
  return (await import("./salvage")).salvage(source, label, why);
}

export function first(
  verdict: Integrity["verdict"],
  problems: Integrity["problems"],
  manifest: Json | null,
): Integrity {
  const integrity: Integrity = { verdict, signed: false, checked: ["container"], problems };
  if (isText(manifest?.seal)) integrity.seal = manifest.seal;
  return integrity;
}

export function readManifest(text: string): Json {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    said = null;
  }
  if (!isObject(said)) throw new Unreadable("damaged", "manifest.json cannot be read");
  return upcastManifest(said);
}

export class BundleRecording extends LogRecording {
  readonly kind = "bundle";
  readonly contents: Contents;

  constructor(
    label: string,
    source: Source,
    readonly index: Index,
    private readonly shape: Shape,
    readonly manifest: Json | null,
    readonly entries: Entries | null,
    log = new Log(source, index, shape),
  ) {
    super(label, source, log, standIn(manifest));
    this.contents = entries ?? {
      content: async (): Promise<Missing> => ({ missing: "lost", why: "the file ends before it" }),
    };
  }

  async readHeader(): Promise<void> {
    const row = this.index.rows > 0 ? await this.log.row(0) : null;
    if (row && row.kind === "meta" && row.src === "header") this.header = row;
  }

  plan(): Plan {
    return {
      index: this.index,
      shape: this.shape,
      container: this.entries?.container ?? null,
      base: null,
      live: false,
    };
  }

  async thumb(name: string): Promise<Blob | null> {
    const entry = this.entries?.get(`thumbs/${name}.webp`);
    return entry && this.entries
      ? new Blob([(await this.entries.read(entry)) as Uint8Array<ArrayBuffer>], { type: "image/webp" })
      : null;
  }

  /** Tracks stand in `media/`: each with its key frames in `<track>.kf.json`. */
  async media(): Promise<Media> {
    const { entries } = this;
    const found: Media = [];
    for (const entry of entries?.container.entries.values() ?? []) {
      const named = /^media\/([a-z0-9][a-z0-9_-]*)\.(webm|mp4)$/.exec(entry.name);
      if (!named || !entries) continue;
      const type = `video/${named[2]}`;
      found.push({
        track: named[1] as string,
        blob: async () => new Blob([(await entries.read(entry)) as Uint8Array<ArrayBuffer>], { type }),
        frames: keyFrames(await entries.text(`media/${named[1]}.kf.json`, MOST_FACTS)),
      });
    }
    return found;
  }

  async annotations(): Promise<Annotation[]> {
    return readAnnotations((await this.entries?.text("annotations.jsonl", MOST_FACTS)) ?? "");
  }
}

function keyFrames(text: string | null): { t: number; seq: number; ms: number }[] {
  let said: unknown;
  try {
    said = JSON.parse(text ?? "[]");
  } catch {
    said = [];
  }
  return (Array.isArray(said) ? said : []).flatMap((frame: unknown) =>
    isObject(frame) && isSize(frame.t) && isSize(frame.seq) && typeof frame.ms === "number"
      ? [{ t: frame.t, seq: frame.seq, ms: frame.ms }]
      : [],
  );
}
