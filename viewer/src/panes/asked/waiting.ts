/** Which requests for permission wait for an answer now: folded from the rows of a run that still goes on. */
import { effect, signal } from "@preact/signals";
import { Mark, type Outline, PERMISSIONS, type Recording, type Row } from "../../core/types";
import { liveState, outline, run, version } from "../../state/app";

/** A request of `wl.ask`: the agent stands still until it is answered. */
export interface Waiting {
  seq: number;
  t: number;
  capability: string;
  facts: Record<string, unknown>;
  /** What is decided when nobody answers, and after how many seconds. */
  fallback: string;
  timeout: number | null;
  /** Somebody passed it on. */
  escalated: boolean;
}

export const waiting = signal<readonly Waiting[]>([]);
/** A run is joined late: older requests than these many permission rows are over. */
const LOOK_BACK = 400;

/** Follows the run that is open. Returns the end of it. */
export function watchWaiting(): () => void {
  let of: Outline | null = null;
  let fold = new Requests();
  let queue: Promise<void> = Promise.resolve();
  const stop = effect(() => {
    const now = outline.value,
      open = run.value;
    void version.value;
    const state = liveState.value;
    if (now === null || open === null || state === "off" || state === "ended") {
      waiting.value = [];
      of = null;
      return;
    }
    if (of !== now) {
      of = now;
      fold = new Requests();
    }
    const mine = fold;
    const fresh = mine.fresh(now);
    if (fresh.length === 0) return;
    queue = queue.then(async () => {
      for (const seq of fresh) mine.take(await rowOf(open.recording, seq));
      if (fold === mine && run.peek() === open) waiting.value = mine.open();
    });
  });
  return stop;
}

/** A row that cannot be read now says nothing; the answer of the server will. */
async function rowOf(recording: Recording, seq: number): Promise<Row | null> {
  try {
    return await recording.row(seq);
  } catch {
    return null;
  }
}

/** Requests and their answers, row by row. */
export class Requests {
  private readonly waits = new Map<number, Waiting>();
  private last = -1;

  /** Rows of permissions that came since it was asked last, in order. */
  fresh({ marks }: Outline): number[] {
    const found: number[] = [];
    for (let i = marks.length - 1; i >= 0 && found.length < LOOK_BACK && marks.seq(i) > this.last; i--) {
      if (marks.mark(i) === Mark.permission) found.unshift(marks.seq(i));
    }
    this.last = Math.max(this.last, found[found.length - 1] ?? -1);
    return found;
  }

  take(row: Row | null): void {
    if (row === null || row.kind !== "permission" || !(PERMISSIONS as readonly string[]).includes(row.src)) return;
    const facts =
      typeof row.data["facts"] === "object" && row.data["facts"] !== null
        ? (row.data["facts"] as Record<string, unknown>)
        : {};
    if (row.src === "requested") {
      // Without a default nobody waits: the agent only says that it asked elsewhere.
      if (typeof facts["default"] !== "string") return;
      const { id: _id, timeout, default: fallback, ...said } = facts;
      this.waits.set(row.seq, {
        seq: row.seq,
        t: row.t,
        capability: String(row.data["capability"] ?? ""),
        facts: said,
        fallback: String(fallback),
        timeout: typeof timeout === "number" ? timeout : null,
        escalated: false,
      });
      return;
    }
    const asked = facts["asked"];
    const found = typeof asked === "number" ? this.waits.get(asked) : undefined;
    if (found === undefined) return;
    if (row.src === "escalated") this.waits.set(found.seq, { ...found, escalated: true });
    else this.waits.delete(found.seq);
  }

  open(): Waiting[] {
    return [...this.waits.values()];
  }
}
