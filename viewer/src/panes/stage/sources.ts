/**
 * Where each kind of observation lies in a run: lists of rows by source, folded from the outline's marks alone.
 *
 * The stage asks it what layers a run has, and walks from an observation to the ones before it (deltas, windows,
 * casts) without reading rows that are none. It reads each mark once, however often it is asked.
 */
import { Mark, type Outline, type Recording } from "../../core/types";

export interface Place {
  seq: number;
  t: number;
  step: number;
  /** The lane of its step; -1 before the first step. */
  lane: number;
}

const NONE: readonly Place[] = [];
const known = new WeakMap<Recording, Sources>();

/** The observations of `recording` as far as `outline` has been scanned. */
export function sourcesOf(recording: Recording, outline: Outline): Sources {
  let sources = known.get(recording);
  if (sources === undefined) {
    sources = new Sources();
    known.set(recording, sources);
  }
  sources.update(outline);
  return sources;
}

export class Sources {
  private readonly lists = new Map<string, Place[]>();
  private read = 0;
  private lastSeq = -1;

  update(outline: Outline): void {
    const { marks } = outline;
    // Marks are sorted: one that came in between moves the others, and then all are read again.
    if (this.read > marks.length || (this.read > 0 && marks.seq(this.read - 1) !== this.lastSeq)) {
      this.lists.clear();
      this.read = 0;
    }
    for (; this.read < marks.length; this.read += 1) {
      const i = this.read;
      const mark = marks.mark(i);
      const src = mark === Mark.screenshot ? "screenshot" : mark === Mark.observation ? marks.name(i) : null;
      this.lastSeq = marks.seq(i);
      if (src === null) continue;
      let list = this.lists.get(src);
      if (list === undefined) this.lists.set(src, (list = []));
      const step = marks.step(i);
      list.push({ seq: marks.seq(i), t: marks.t(i), step, lane: step < 0 ? -1 : outline.steps.lane(step) });
    }
  }

  has(...sources: string[]): boolean {
    return sources.some((src) => (this.lists.get(src)?.length ?? 0) > 0);
  }

  of(src: string): readonly Place[] {
    return this.lists.get(src) ?? NONE;
  }

  /** The observations of these sources up to row `seq` in `lane` (null for any), the newest first. */
  *back(seq: number, lane: number | null, ...sources: string[]): Generator<Place & { src: string }> {
    const heads = sources.map((src) => ({ src, list: this.of(src), at: upTo(this.of(src), seq) - 1 }));
    for (;;) {
      let best: (typeof heads)[number] | null = null;
      for (const head of heads) {
        if (head.at >= 0 && (best === null || head.list[head.at]!.seq > best.list[best.at]!.seq)) best = head;
      }
      if (best === null) return;
      const place = best.list[best.at]!;
      if (lane === null || place.lane < 0 || place.lane === lane) yield { ...place, src: best.src };
      best.at -= 1;
    }
  }

  /** The first observations of `src` behind row `seq`. */
  after(seq: number, src: string, most: number): readonly Place[] {
    const list = this.of(src);
    const from = upTo(list, seq);
    return list.slice(from, from + most);
  }
}

/** How many of `list` lie at or before row `seq`. */
function upTo(list: readonly Place[], seq: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle]!.seq <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}
