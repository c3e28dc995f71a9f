/**
 * The terminal as it stood at the end of a step: the newest outputs of its stream, in their order, as blocks of lines;
 * and the cast that covers a time, wherever in the run its row was written.
 */
import type { Observation, Recording } from "../../../core/types";
import { ByteCache } from "../byte-cache";
import { wallStart } from "../clock";
import { isMissing, observationAt, readHeld, textOf } from "../reading";
import { recordingId } from "../recording-id";
import type { Place, Sources } from "../sources";
import { parseAnsi, type Line } from "./ansi";
import { castStart, readCast, type Cast } from "./cast";

export const CAST = "application/x-asciicast";

export interface Block {
  observation: Observation;
  lines: Line[];
  characters: number;
  /** In words, where the output is not there. */
  missing: string | null;
}

export interface Scrollback {
  blocks: Block[];
  /** Outputs before these are not shown. */
  earlier: number;
  /** Characters that were cut off from the newest output alone, at its beginning. */
  cut: number;
}

/** Characters and outputs that are looked back over. */
const CHARACTERS = 400_000;
const OUTPUTS = 200;

export async function scrollback(
  recording: Recording,
  sources: Sources,
  end: number,
  lane: number | null,
  all: boolean,
): Promise<Scrollback> {
  const blocks: Block[] = [];
  let characters = 0;
  let earlier = 0;
  let cut = 0;
  const most = all ? 40 * CHARACTERS : CHARACTERS;
  for (const place of sources.back(end, lane, "terminal")) {
    if (characters >= most || blocks.length >= OUTPUTS) {
      earlier += 1;
      continue;
    }
    const observation = await observationAt(recording, place.seq, place.step);
    if (observation === null || observation.ref?.type === CAST) continue;
    const held = await readHeld(recording, observation);
    if (isMissing(held)) {
      blocks.push({ observation, lines: [], characters: 0, missing: `${held.missing}: ${held.why}` });
      continue;
    }
    let text = (await textOf(held)) ?? ("value" in held ? (JSON.stringify(held.value, null, 2) ?? "") : "");
    if (readCast(text) !== null) continue;
    // The end of an output says most; what a step is judged by stands there.
    if (text.length > most - characters) {
      cut = text.length - (most - characters);
      text = text.slice(cut);
    }
    characters += text.length;
    blocks.push({ observation, lines: parseAnsi(text).lines, characters: text.length, missing: null });
  }
  return { blocks: blocks.reverse(), earlier, cut };
}

export interface PlacedCast {
  cast: Cast;
  observation: Observation;
  /** ns of the run at its first moment. */
  start: number;
}

const casts = new ByteCache<PlacedCast | null>(32 * 1024 * 1024);
/** Outputs that are looked at on each side of a step for a cast; and always the last ones, where recorders put it. */
const NEIGHBOURS = 6;
export const CAST_BYTES = 24_000_000;

/** The cast that covers `t`; where none does, the nearest of those that were looked at. One over the bound is named. */
export async function castAt(
  recording: Recording,
  sources: Sources,
  end: number,
  t: number,
  anyway: boolean,
): Promise<PlacedCast | { size: number } | null> {
  const places = new Map<number, Place>();
  let behind = 0;
  for (const place of sources.back(end, null, "terminal")) {
    if ((behind += 1) > NEIGHBOURS) break;
    places.set(place.seq, place);
  }
  for (const place of [...sources.after(end, "terminal", NEIGHBOURS), ...sources.of("terminal").slice(-NEIGHBOURS)])
    places.set(place.seq, place);
  let best: { placed: PlacedCast; away: number } | null = null;
  for (const place of places.values()) {
    const observation = await observationAt(recording, place.seq, place.step);
    if (observation === null || observation.ref?.type !== CAST) continue;
    if (observation.ref.size > CAST_BYTES && !anyway) return { size: observation.ref.size };
    const placed = await load(recording, observation);
    if (placed === null) continue;
    const stop = placed.start + placed.cast.duration * 1e9;
    const away = t < placed.start ? placed.start - t : t > stop ? t - stop : 0;
    if (best === null || away < best.away) best = { placed, away };
  }
  return best?.placed ?? null;
}

async function load(recording: Recording, observation: Observation): Promise<PlacedCast | null> {
  const key = `${recordingId(recording)}/${observation.seq}`;
  const had = casts.get(key);
  if (had !== undefined) return had;
  const held = await readHeld(recording, observation);
  const text = isMissing(held) ? null : await textOf(held);
  const cast = text === null ? null : readCast(text);
  const placed =
    cast === null ? null : { cast, observation, start: castStart(cast, observation.t, wallStart(recording.header)) };
  casts.put(key, placed, (text?.length ?? 0) * 3);
  return placed;
}
