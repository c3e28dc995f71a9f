/** From where a recording lies to an `Open`: its reader, and the fold over its rows that goes on behind the first screen. */
import { loadStep } from "../core/bodies";
import { check, type Checking } from "../core/integrity";
import { openAddress, openFile, openPage, openRun, type Opened } from "../core/open";
import type { Folded } from "../core/outline";
import type { LogRecording } from "../core/recording";
import { prepare, scan } from "../core/scan";
import { search, type Progress, type Query } from "../core/search";
import type { Recording, StepBody } from "../core/types";
import { verdictOf } from "../core/verdict";
import { version, type Open } from "./app";
import { behindFrame } from "./frames";

/** Where a recording lies: a file of the user, an address, a run of the page's server, or the page itself. */
export type Source = { file: File } | { url: string } | { served: string; about?: unknown } | { inside: true };

/** What the page is told while a recording is folded and followed. */
export interface Watch {
  /** Something that `open` holds has changed in place. */
  changed(open: Open): void;
  /** A live run has `rows` more rows. */
  grew(open: Open, rows: number): void;
  state(open: Open, state: "live" | "stalled" | "ended"): void;
}

/** Whether the page carries a recording. */
export function carries(page: Document = document): boolean {
  return page.querySelector('meta[name="worldline-bundle"], meta[name="worldline-folder"]') !== null;
}

/** Opens it. What it gives is drawn at once; rows, verdict and integrity fill up behind. */
export async function openSource(source: Source, watch: Watch): Promise<{ open: Open; stop: () => void }> {
  void prepare();
  const { recording, integrity } = await read(source);
  const annotations = await recording.annotations();
  const scanning = scan(recording, (outline) => {
    open.verdict = verdictOf(recording, outline);
    watch.changed(open);
  });
  const open: Open = {
    recording,
    integrity,
    annotations,
    outline: scanning.outline,
    verdict: verdictOf(recording, scanning.outline),
    server: "served" in source ? baseOf(source.served) : null,
  };
  let checking: Checking | null = null;
  let stopped = false;
  let judging = recording;
  const judge = (everything = false): void => {
    checking?.stop();
    checking = check(judging, integrity, () => watch.changed(open), { everything });
  };
  inner.set(open, { recording, outline: scanning.outline, judge });
  // The rows are folded first, since they are what is looked at; then the record is judged.
  scanning.done
    .catch((reason: unknown) => {
      integrity.problems.push({
        what: `its rows could not all be read: ${reason instanceof Error ? reason.message : String(reason)}`,
      });
      watch.changed(open);
    })
    .then(() => {
      if (!stopped) judge();
    });
  const growing: Recording = recording;
  const unfollow = growing.follow?.((rows, state) => {
    scanning.add(rows, state === "ended");
    watch.grew(open, rows.length);
    watch.state(open, state);
    if (state === "ended") void judged();
  });
  /** A live run that has ended is sealed now, or never was: it is opened once more, and judged as any other. */
  const judged = async (): Promise<void> => {
    await scanning.done.catch(() => undefined); // said above already
    let again: Opened;
    try {
      // What the server said of it at first was said of a run that still grew.
      again = await read("served" in source ? { served: source.served } : source);
    } catch (reason) {
      integrity.problems.push({
        what: `it ended, and could not be opened again: ${reason instanceof Error ? reason.message : String(reason)}`,
      });
      return watch.changed(open);
    }
    if (stopped) return;
    Object.assign(integrity, again.integrity);
    watch.changed(open);
    judging = again.recording;
    judge();
  };
  // The first screen has its first rows in it: drawn without them, it would be laid out twice.
  await scanning.first;
  behindFrame(() => scanning.begin());
  return {
    open,
    stop: () => {
      stopped = true;
      unfollow?.();
      scanning.stop();
      checking?.stop();
    },
  };
}

/** The address of a run of the server. */
export function baseOf(id: string): string {
  return `r/${encodeURIComponent(id)}/`;
}

async function read(source: Source): Promise<Opened> {
  if ("file" in source) return openFile(source.file, source.file.name);
  if ("url" in source) return openAddress(source.url);
  if ("served" in source) return openRun(baseOf(source.served), source.about);
  const opened = await openPage();
  if (opened === null) throw new Error("This page carries no recording.");
  return opened;
}

/** What the core knows of an open run beside what panes may ask of it. */
const inner = new WeakMap<Open, { recording: LogRecording; outline: Folded; judge: (everything: boolean) => void }>();

/** Checks again, and fetches whatever that takes: rows and contents that were left, since they are many. */
export function checkAll(open: Open): void {
  const { integrity } = open,
    known = inner.get(open);
  if (known === undefined) return;
  if (integrity.verdict === "unread" || integrity.verdict === "sealed") integrity.verdict = "checking";
  known.judge(true);
  version.value++;
}

/** The bodies of step `i`. Rejects where they cannot be read, or once nobody waits for them any more. */
export async function loadBody(open: Open, i: number, abort: AbortSignal): Promise<StepBody> {
  const known = inner.get(open);
  if (known === undefined) throw new Error("This run was not opened from anywhere it could be read again.");
  return loadStep(known.recording, known.outline, i, abort);
}

/** Looks through all rows, and what of the contents is text. Returns how to end it; throws where the query is no expression. */
export function searchIn(open: Open, query: Query, on: (progress: Progress) => void): () => void {
  const known = inner.get(open);
  if (known === undefined) throw new Error("This run was not opened from anywhere it could be read again.");
  return search(known.recording, query, on);
}
