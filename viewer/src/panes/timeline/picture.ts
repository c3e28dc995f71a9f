/** What the timeline shows, as signals: the tracks, the notes and videos beside them, and the scene of the lanes. */
import { computed, effect, signal } from "@preact/signals";
import { type Projection, project, whole } from "../../core/axis";
import type { Outline } from "../../core/types";
import { outline, run, version } from "../../state/app";
import { axis, gaps, opened, plotWidth, projection } from "./camera";
import { paced } from "./paced";
import { type Beside, type Scene, makeScene } from "./scene";
import { study, timeOf } from "./study";
import { type PointTrack, type Tracks, makeTracks, pointTrack } from "./tracks";

export const tracks = paced<Tracks | null>(makeTracks, null);

/** Notes that stand, by time. `id` is their place in `noteList`. */
export const noteList = computed(() => {
  void version.value;
  const open = run.value;
  if (open === null) return [];
  const removed = new Set(open.annotations.filter((note) => note.removed).map((note) => note.id));
  return open.annotations
    .filter((note) => !note.removed && !removed.has(note.id))
    .map((note) => ({ ...note, t: timeOfRow(open.outline, note.seq) }))
    .sort((a, b) => a.t - b.t);
});

const notes = computed<PointTrack>(() =>
  pointTrack(
    noteList.value.map((_, i) => i),
    (i) => noteList.value[i]?.t ?? 0,
  ),
);

/** From the first to the last frame of each video of the run. */
const video = signal<{ t0: number; t1: number }[]>([]);
effect(() => {
  const open = run.value;
  video.value = [];
  if (open === null) return;
  open.recording.media().then(
    (found) => {
      if (run.peek() !== open) return;
      video.value = found.flatMap(({ frames }) => {
        const first = frames[0],
          last = frames[frames.length - 1];
        return first && last ? [{ t0: first.t, t1: last.t }] : [];
      });
    },
    // The stage, which plays it, says why a video cannot be read; without one there is no lane.
    () => undefined,
  );
});

export const scene = computed<Scene | null>(() => {
  const now = outline.value,
    made = tracks.value,
    at = projection.value;
  if (now === null || made === null || at === null) return null;
  const beside: Beside = {
    notes: notes.value,
    video: video.value,
    study: study.value,
    timeOf: (step) => timeOf(now, step),
  };
  const open = opened.value;
  const found: [number, number][] = [];
  for (let i = 0; open.size > 0 && i + 1 < gaps.value.length; i += 2) {
    const from = gaps.value[i] ?? 0;
    if (open.has(from)) found.push([from, gaps.value[i + 1] ?? 0]);
  }
  return makeScene(made, at, beside, found);
});

/** The whole run on the minimap. */
export const map = computed<Projection | null>(() => {
  const now = axis.value;
  return now === null ? null : project(now, ...whole(now), plotWidth.value);
});

/** When the row `seq` was written: exact for marks and starts of spans, else the begin of its step. */
export function timeOfRow(now: Outline, seq: number): number {
  const { marks, spans, steps } = now;
  const mark = bySeq(marks.length, (i) => marks.seq(i), seq);
  if (mark >= 0) return marks.t(mark);
  const span = bySeq(spans.length, (i) => spans.seq(i), seq);
  if (span >= 0) return spans.t0(span);
  const step = steps.of(seq);
  return step >= 0 ? steps.t0(step) : now.span[0];
}

function bySeq(length: number, at: (i: number) => number, seq: number): number {
  let low = 0,
    high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(middle) < seq) low = middle + 1;
    else high = middle;
  }
  return low < length && at(low) === seq ? low : -1;
}
