/**
 * The outline as the timeline draws it: typed arrays per lane, made once for a version of the outline.
 *
 * Each track answers three questions about a stretch of time without looking at every entry: which entries begin in it
 * (they are sorted), how far those before reach (a running maximum), and how many of them went wrong (running counts).
 * So a picture costs pixels times a logarithm, however many entries there are.
 */
import { Mark, type Outline, PERMISSIONS, Status } from "../../core/types";

/** How an entry is drawn; of many in one column the worst is shown. */
export const Tone = { plain: 0, running: 1, unknown: 2, note: 3, refused: 4, denied: 5, failed: 6 } as const;
export type ToneCode = (typeof Tone)[keyof typeof Tone];
const TONES = 7;

/** What lasts. */
export interface SpanTrack {
  length: number;
  t0: Float64Array;
  t1: Float64Array;
  /** The latest end of the entries up to this one, and of blocks of `BLOCK` entries. */
  reach: Float64Array;
  blocks: Float64Array;
  tone: Uint8Array;
  /** Entries before this one with each tone: `counts[tone * (length + 1) + i]`. Tones that nobody has are left out. */
  counts: (Uint32Array | null)[];
  /** Number of the entry in the outline (of its steps, or of its spans). */
  id: Uint32Array;
}

/** What is an instant: marks of one sort. */
export interface PointTrack {
  length: number;
  t: Float64Array;
  id: Uint32Array;
}

export const BLOCK = 256;
/** Rows for sub-agents; a run with hundreds must not push the other lanes out of sight. */
const MOST_PARTS = 16;
/** And so many rows for the steps of one lane at the same time. */
const MOST_ABREAST = 4;

/** Marks of the secondary row, in the order in which one hides another. */
export const SIGNS = ["checkpoint", "screenshot", "retry", "loop", "loss", "error", "outcome"] as const;
export type Sign = (typeof SIGNS)[number];

export interface Tracks {
  version: number;
  span: readonly [number, number];
  /** One a lane of the run that has steps; the last may hold several. */
  steps: { lane: string; track: SpanTrack }[];
  tools: SpanTrack;
  decisions: SpanTrack;
  network: SpanTrack;
  /** By the number of the word in `PERMISSIONS`. */
  permissions: PointTrack[];
  /** Log, warning, error. */
  console: PointTrack[];
  signs: Record<Sign, PointTrack>;
  /** Everything that happened, for the minimap: ascending times. */
  pulse: Float64Array;
}

export function makeTracks(outline: Outline): Tracks {
  const { steps, spans, marks } = outline;
  const ofLane = new Map<number, number[]>();
  for (let i = 0; i < steps.length; i++) push(ofLane, steps.lane(i), i);
  const tools: number[] = [],
    decisions: number[] = [],
    network: number[] = [];
  for (let i = 0; i < spans.length; i++) {
    const track = spans.track(i);
    (track === "tool" ? tools : track === "decision" ? decisions : network).push(i);
  }
  const words: number[][] = PERMISSIONS.map(() => []);
  const levels: number[][] = [[], [], []];
  const signs: Record<Sign, number[]> = {
    checkpoint: [],
    screenshot: [],
    retry: [],
    loop: [],
    loss: [],
    error: [],
    outcome: [],
  };
  for (let i = 0; i < marks.length; i++) {
    const mark = marks.mark(i);
    if (mark === Mark.permission) (words[marks.sub(i)] ?? words[0])?.push(i);
    else if (mark === Mark.console) levels[Math.min(marks.sub(i), 2)]?.push(i);
    else if (mark === Mark.checkpoint) signs.checkpoint.push(i);
    else if (mark === Mark.retry) signs.retry.push(i);
    else if (mark === Mark.loss) signs.loss.push(i);
    else if (mark === Mark.error) signs.error.push(i);
    else if (mark === Mark.outcome) signs.outcome.push(i);
  }
  const at = (i: number): number => marks.t(i);
  const points = (ids: number[]): PointTrack => pointTrack(ids, at);
  const stepTone = (i: number): ToneCode => toneOf(steps.status(i));
  const spanTrack = (ids: number[], tone: (i: number) => ToneCode): SpanTrack =>
    makeSpanTrack(
      ids,
      (i) => spans.t0(i),
      (i) => spans.t1(i),
      tone,
    );
  return {
    version: outline.version,
    span: outline.span,
    steps: parts(outline, ofLane).map(({ lane, ids }) => ({
      lane,
      track: makeSpanTrack(
        ids,
        (i) => steps.t0(i),
        (i) => steps.t1(i),
        stepTone,
      ),
    })),
    tools: spanTrack(tools, (i) => toneOf(spans.status(i))),
    decisions: spanTrack(decisions, (i) => toneOf(spans.status(i))),
    network: spanTrack(network, (i) => networkTone(spans.code(i), spans.status(i) === Status.failed)),
    permissions: words.map(points),
    console: levels.map(points),
    signs: {
      checkpoint: points(signs.checkpoint),
      screenshot: points(signs.screenshot),
      retry: points(signs.retry),
      loop: pointTrack(loops(outline), (i) => steps.t0(i)),
      loss: points(signs.loss),
      error: points(signs.error),
      outcome: points(signs.outcome),
    },
    pulse: pulse(outline),
  };
}

/** The lanes that get a row of their own; all further ones share the last. Numbers of steps are in order of time. */
function parts(outline: Outline, ofLane: Map<number, number[]>): { lane: string; ids: ArrayLike<number> }[] {
  const all = [...ofLane].sort(([a], [b]) => a - b);
  const own = all.slice(0, all.length > MOST_PARTS ? MOST_PARTS - 1 : MOST_PARTS);
  const found: { lane: string; ids: ArrayLike<number> }[] = own.flatMap(([lane, ids]) =>
    abreast(outline, ids).map((row, i) => ({ lane: i === 0 ? (outline.lanes[lane] ?? "") : "", ids: row })),
  );
  const rest = all.slice(own.length);
  if (rest.length > 0)
    found.push({ lane: `${rest.length} more`, ids: Uint32Array.from(rest.flatMap(([, ids]) => ids)).sort() });
  return found;
}

/** Steps of one lane that last at the same time, as they do when an agent asks several at once, on rows beside each other. */
function abreast({ steps }: Outline, ids: readonly number[]): number[][] {
  const rows: { ids: number[]; until: number }[] = [];
  for (const i of ids) {
    const t0 = steps.t0(i);
    let row = rows.find(({ until }) => until <= t0) ?? (rows.length < MOST_ABREAST ? undefined : rows[rows.length - 1]);
    if (row === undefined) rows.push((row = { ids: [], until: 0 }));
    row.ids.push(i);
    row.until = Math.max(row.until, steps.t1(i));
  }
  return rows.map((row) => row.ids);
}

/** 2xx and 3xx are plain, 4xx refused, 5xx and no answer failed. */
export function networkTone(code: number, failed: boolean): ToneCode {
  if (code >= 500 || (code === 0 && failed)) return Tone.failed;
  return code >= 400 ? Tone.refused : code === 0 ? Tone.running : Tone.plain;
}

export function toneOf(status: number): ToneCode {
  switch (status) {
    case Status.failed:
      return Tone.failed;
    case Status.denied:
      return Tone.denied;
    case Status.running:
      return Tone.running;
    case Status.unknown:
      return Tone.unknown;
    case Status.note:
      return Tone.note;
    default:
      return Tone.plain;
  }
}

export function makeSpanTrack(
  ids: ArrayLike<number>,
  from: (i: number) => number,
  to: (i: number) => number,
  tone: (i: number) => ToneCode,
): SpanTrack {
  const length = ids.length;
  const t0 = new Float64Array(length),
    t1 = new Float64Array(length),
    reach = new Float64Array(length);
  const tones = new Uint8Array(length),
    id = new Uint32Array(length);
  const blocks = new Float64Array(Math.ceil(length / BLOCK)).fill(-Infinity);
  const counts: (Uint32Array | null)[] = new Array<Uint32Array | null>(TONES).fill(null);
  let furthest = -Infinity;
  for (let n = 0; n < length; n++) {
    const i = ids[n] ?? 0;
    const end = Math.max(to(i), from(i));
    id[n] = i;
    t0[n] = from(i);
    t1[n] = end;
    furthest = Math.max(furthest, end);
    reach[n] = furthest;
    const block = Math.floor(n / BLOCK);
    blocks[block] = Math.max(blocks[block] ?? -Infinity, end);
    const which = tone(i);
    tones[n] = which;
    if (which !== Tone.plain) (counts[which] ??= new Uint32Array(length + 1))[n + 1] = 1;
  }
  for (const count of counts) {
    if (count) for (let n = 1; n <= length; n++) count[n] = (count[n] ?? 0) + (count[n - 1] ?? 0);
  }
  return { length, t0, t1, reach, blocks, tone: tones, counts, id };
}

export function pointTrack(ids: ArrayLike<number>, at: (i: number) => number): PointTrack {
  const t = new Float64Array(ids.length),
    id = new Uint32Array(ids.length);
  for (let n = 0; n < ids.length; n++) {
    const i = ids[n] ?? 0;
    id[n] = i;
    t[n] = at(i);
  }
  return { length: ids.length, t, id };
}

/** The third and each further step in a row that does the same as the one before in its lane. */
export function loops(outline: Outline): number[] {
  const { steps } = outline;
  const before = new Map<number, { what: string; times: number }>();
  const found: number[] = [];
  for (let i = 0; i < steps.length; i++) {
    const detail = steps.detail(i);
    const what = detail === "" ? "" : `${steps.name(i)} ${detail}`;
    const lane = steps.lane(i);
    const last = before.get(lane);
    if (last && what !== "" && last.what === what) {
      last.times += 1;
      if (last.times >= 3) found.push(i);
    } else {
      before.set(lane, { what, times: 1 });
    }
  }
  return found;
}

/** Starts of spans and instants of marks, merged. */
function pulse(outline: Outline): Float64Array {
  const { spans, marks } = outline;
  const all = new Float64Array(spans.length + marks.length);
  let s = 0,
    m = 0;
  for (let n = 0; n < all.length; n++) {
    const ts = s < spans.length ? spans.t0(s) : Infinity;
    const tm = m < marks.length ? marks.t(m) : Infinity;
    all[n] = ts <= tm ? (s++, ts) : (m++, tm);
  }
  return all;
}

function push(map: Map<number, number[]>, key: number, value: number): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
