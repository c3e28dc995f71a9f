/**
 * The worker's side of the work over all rows: folding, hashing, searching. It runs in a worker, or right here where there
 * is none; both speak the same messages.
 */
import { type Keys, pairs } from "./alignment";
import { fromHandle, type Handle } from "./bytes";
import { Entries } from "./entries";
import { Fold } from "./fold";
import { Log } from "./log";
import { snapshot, type Snapshot } from "./outline";
import type { Contents, Plan } from "./recording";
import { ServedContents } from "./recording-served";
import { PortBytes } from "./relay";
import { parseLine, parseLines } from "./rows";
import type { Found, Query } from "./query";
import { Searching } from "./searching";
import type { Bytes } from "./types";
import { inWords } from "./unreadable";
import { type Finding, verify } from "./verifying";

/** How a worker reaches the bytes: by a handle of its own, or through a port. */
export type Reach = { handle: Handle } | { port: MessagePort; size: number };

export type Order =
  | { do: "fold"; plan: Plan; reach: Reach }
  | { do: "rows"; text: string; ended: boolean }
  | { do: "align"; left: Keys; right: Keys }
  | { do: "verify"; plan: Plan; reach: Reach; manifest: Uint8Array | null; all: boolean; rows: boolean }
  | { do: "search"; plan: Plan; reach: Reach; query: Query }
  | { do: "stop" };
export type Word =
  | { is: "snapshot"; snapshot: Snapshot }
  | { is: "aligned"; pairs: ReturnType<typeof pairs> }
  | { is: "finding"; finding: Finding }
  | { is: "found"; found: Found }
  | { is: "failed"; what: string };

export interface Library {
  bytes: Bytes;
  log: Log;
  contents: Contents;
}

/** The recording of a plan, in this thread. */
export function library(
  plan: Plan,
  reach: Reach,
  bytes: Bytes = "handle" in reach ? fromHandle(reach.handle) : new PortBytes(reach.port, reach.size),
): Library {
  const contents: Contents = plan.container
    ? new Entries(bytes, plan.container)
    : plan.base
      ? new ServedContents(plan.base)
      : { content: async () => ({ missing: "lost", why: "the file ends before it" }) };
  return { bytes, log: new Log(bytes, plan.index, plan.shape), contents };
}

const FIRST_MS = 60; // the first rows are shown as soon as they are there, then ever more at once
const LATER_MS = 250;

/** Fold a recording; `say` gets a snapshot now and then, and at the end. */
export class Folding {
  private readonly fold: Fold;
  private stopped = false;
  private readonly live: boolean;
  private ended: boolean;
  private queue: Promise<void> = Promise.resolve();

  constructor(
    private readonly plan: Plan,
    private readonly shelf: Library,
    private readonly say: (snapshot: Snapshot) => void,
  ) {
    this.fold = new Fold(shelf.contents);
    this.live = plan.live;
    this.ended = !plan.live;
  }

  /** All rows that are there. */
  run(): Promise<void> {
    this.queue = this.queue.then(() => this.scan());
    return this.queue;
  }

  /** Rows that were written since. */
  add(text: string, ended: boolean): Promise<void> {
    this.queue = this.queue.then(async () => {
      this.ended ||= ended;
      await this.take(text);
      this.show(true);
    });
    return this.queue;
  }

  stop(): void {
    this.stopped = true;
  }

  private async scan(): Promise<void> {
    let due = performance.now() + FIRST_MS;
    const decoder = new TextDecoder();
    for await (const { block, data } of this.shelf.log.scan()) {
      if (this.stopped) return;
      await this.take(decoder.decode(data));
      if (performance.now() < due && block > 0) continue;
      const began = performance.now();
      this.show(false);
      // Each snapshot copies all columns: they may take a tenth of the time.
      const now = performance.now();
      due = now + Math.max(LATER_MS, (now - began) * 10);
    }
    if (!this.stopped) this.show(true);
  }

  private async take(text: string): Promise<void> {
    for (const row of text.length < 4096 && !text.includes("\n")
      ? [parseLine(text, false)]
      : parseLines(text, false).rows) {
      if (!row || (this.live && row.seq < this.fold.rows)) continue;
      const wait = this.fold.row(row);
      if (wait) await wait;
    }
  }

  private show(last: boolean): void {
    const total = this.live ? this.fold.rows : Math.max(this.plan.index.rows, this.fold.rows);
    const over = last && this.ended;
    this.say(snapshot(this.fold, total, last, over));
  }
}

/** The result's text, of whose digest the manifest speaks; a server gives it in the index, or not at all. */
export const resultIn = (plan: Plan): string | null =>
  plan.container || plan.index.result !== "" ? plan.index.result : null;

/** Serve one side of a channel: what a worker does with its messages. Of each kind of work the newest order counts. */
export function serveOrders(
  say: (word: Word, transfer: ArrayBuffer[]) => void,
  transferable: (s: Snapshot) => ArrayBuffer[],
): (order: Order) => void {
  let folding: Folding | null = null,
    turn = 0;
  const guard = (work: Promise<void>): void => {
    work.catch((error: unknown) => say({ is: "failed", what: inWords(error) }, []));
  };
  return (order) => {
    switch (order.do) {
      case "fold":
        folding = new Folding(order.plan, library(order.plan, order.reach), (s) =>
          say({ is: "snapshot", snapshot: s }, transferable(s)),
        );
        return guard(folding.run());
      case "rows":
        return folding ? guard(folding.add(order.text, order.ended)) : undefined;
      case "align":
        return say({ is: "aligned", pairs: pairs(order.left, order.right) }, []);
      case "verify": {
        const { plan, reach, manifest, all, rows } = order,
          own = library(plan, reach);
        return guard(
          verify(
            { ...own, container: plan.container, manifest, result: resultIn(plan), all, rows },
            (finding) => say({ is: "finding", finding }, []),
            () => false,
          ),
        );
      }
      case "search": {
        const { plan, reach, query } = order,
          mine = ++turn,
          shelf = library(plan, reach);
        const searching = new Searching(
          query,
          (found) => say({ is: "found", found }, []),
          () => mine !== turn,
        );
        return guard(searching.run(shelf.log, shelf.contents));
      }
      case "stop":
        turn++;
        return folding?.stop();
    }
  };
}
