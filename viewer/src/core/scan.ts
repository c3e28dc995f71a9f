/**
 * Folding a recording into an outline without holding up the page: in a worker where there is one, in slices where not.
 */
import type { Order, Word } from "./crew";
import { Folded, type Snapshot } from "./outline";
import { order } from "./reach";
import type { LogRecording } from "./recording";
import { start } from "./start";
import type { Row } from "./types";
import { Unreadable } from "./unreadable";

export interface Scan {
  readonly outline: Folded;
  /** When the first rows are folded, or will not be soon: what there is can be drawn. */
  readonly first: Promise<void>;
  /** When all rows are folded; of a live run, those that were there at the beginning. */
  readonly done: Promise<void>;
  /** Fold all rows. Called behind the first screen: until it stands, the processors are the page's. */
  begin(): void;
  /** Rows that `Recording.follow` gave; `ended` with the last. */
  add(rows: Row[], ended?: boolean): void;
  stop(): void;
}

/** So long a first screen waits for rows. */
const FIRST_MS = 300;

/** The first rows are folded at once. `changed` is called after every snapshot that the outline took. */
export function scan(recording: LogRecording, changed: (outline: Folded) => void): Scan {
  const plan = recording.plan();
  const outline = new Folded(plan.index.rows, plan.index.span as [number, number] | []);
  const take = (s: Snapshot): void => {
    outline.take(s);
    changed(outline);
  };
  return typeof Worker === "undefined" ? here(recording, outline, take) : elsewhere(recording, outline, take);
}

/** What folds the first rows. Asked for as soon as something is opened, so that it is there when they are. */
export const prepare = (): Promise<typeof import("./first")> => import("./first");

const lines = (rows: Row[]): string => rows.map((row) => `${row.raw as string}\n`).join("");

/** Without workers (in tests, or where a browser starts none): the worker's own code, in this thread. */
function here(recording: LogRecording, outline: Folded, take: (s: Snapshot) => void): Scan {
  const plan = recording.plan();
  const folding = import("./crew").then(({ Folding, library }) => {
    const shelf = library(plan, { handle: { kind: "blob", blob: new Blob() } }, recording.source);
    return new Folding(plan, shelf, take);
  });
  const done = folding.then((fold) => fold.run());
  return {
    outline,
    first: Promise.resolve(),
    done,
    begin: () => undefined,
    add: (rows, ended = false) => void folding.then((fold) => fold.add(lines(rows), ended)),
    stop: () => void folding.then((fold) => fold.stop()),
  };
}

function elsewhere(recording: LogRecording, outline: Folded, take: (s: Snapshot) => void): Scan {
  let worker: Worker | null = null;
  let instead: Scan | null = null;
  let came = false;
  let stopped = false;
  const rows = prepare()
    .then(({ firstRows }) => firstRows(recording))
    .then(
      (first) => {
        if (first && !came && !instead) take(first);
      },
      () => undefined, // what cannot be read here the worker cannot read either, and says so
    );
  let settle: { resolve: () => void; reject: (error: Error) => void } | null = null;
  const done = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject };
  });
  const begin = (): void => {
    if (worker || stopped) return;
    worker = start();
    worker.onmessage = ({ data }: MessageEvent<Word>) => {
      if (data.is === "failed") return settle?.reject(new Unreadable("damaged", data.what));
      if (data.is !== "snapshot") return;
      came = true;
      take(data.snapshot);
      if (data.snapshot.done) settle?.resolve();
    };
    worker.onerror = (event) => {
      worker?.terminate();
      if (came) return settle?.reject(new Unreadable("damaged", `the worker stopped: ${event.message}`));
      // It did not even start (a browser's rule, or a policy): slower, and all the same.
      instead ??= here(recording, outline, take);
      instead.done.then(
        () => settle?.resolve(),
        (error: Error) => settle?.reject(error),
      );
    };
    order(worker, recording, (reach) => ({ do: "fold", plan: recording.plan(), reach }));
  };
  return {
    outline,
    first: Promise.race([rows, new Promise<void>((go) => setTimeout(go, FIRST_MS))]),
    done,
    begin,
    add: (more, ended = false) => {
      begin();
      if (instead) instead.add(more, ended);
      else worker?.postMessage({ do: "rows", text: lines(more), ended } satisfies Order);
    },
    stop: () => {
      stopped = true;
      instead?.stop();
      worker?.terminate();
    },
  };
}
