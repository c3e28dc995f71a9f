/**
 * Searching a recording from the page: hits come as they are found, a new query ends the one before.
 *
 * A worker does it, and ends with its search if that is given up: a pattern may never come to an end. The next worker is
 * warm by then.
 */
import type { Word } from "./crew";
import { order } from "./reach";
import type { LogRecording } from "./recording";
import { expressionOf, type Found, type Hit, type Query } from "./query";
import { start } from "./start";
import { inWords } from "./unreadable";

export type { Found, Hit, Query } from "./query";

let spare: Worker | null = null;

/** Hits of all rows so far, and what was not looked into. */
export interface Progress extends Omit<Found, "hits"> {
  hits: Hit[];
  failed: string | null;
}

/** Begin a search. Returns how to end it. Throws a `SyntaxError` where the query is no expression. */
export function search(recording: LogRecording, query: Query, on: (progress: Progress) => void): () => void {
  expressionOf(query);
  const all: Hit[] = [];
  let ended = false;
  const take = ({ hits, ...found }: Found): void => {
    all.push(...hits);
    if (!ended) on({ ...found, hits: all, failed: null });
  };
  const failed = (what: string): void => {
    if (!ended) on({ hits: all, rows: 0, done: true, full: false, left: { masked: 0, contents: 0 }, failed: what });
  };
  const stop = (): void => {
    ended = true;
  };
  if (typeof Worker === "undefined") {
    void searchHere(recording, query, take, () => ended).catch((error: unknown) => failed(inWords(error)));
    return stop;
  }
  const worker = spare ?? start();
  spare = null;
  let busy = true;
  worker.onmessage = ({ data }: MessageEvent<Word>) => {
    if (data.is === "failed") failed(data.what);
    if (data.is !== "found") return;
    busy = !data.found.done;
    take(data.found);
    if (!busy && !spare) spare = worker;
    else if (!busy) worker.terminate();
  };
  worker.onerror = (event) => failed(event.message);
  order(worker, recording, (reach) => ({ do: "search", plan: recording.plan(), reach, query }));
  return () => {
    stop();
    if (!busy) return;
    worker.terminate();
    spare ??= start();
  };
}

/** Without workers (in tests): the worker's own code, which no page loads for that. */
async function searchHere(
  recording: LogRecording,
  query: Query,
  take: (found: Found) => void,
  ended: () => boolean,
): Promise<void> {
  const [{ library }, { Searching }] = await Promise.all([import("./crew"), import("./searching")]);
  const own = library(recording.plan(), { handle: { kind: "blob", blob: new Blob() } }, recording.source);
  await new Searching(query, take, ended).run(own.log, own.contents);
}
