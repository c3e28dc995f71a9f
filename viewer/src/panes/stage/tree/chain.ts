/**
 * The tree at an observation: the newest full one before it with every delta since, from the recording.
 *
 * Trees that were made are kept, so that the next step costs its own delta only.
 */
import type { Missing, Observation, Recording } from "../../../core/types";
import { ByteCache } from "../byte-cache";
import { isMissing, observationAt, readHeld, textOf, type Held } from "../reading";
import { recordingId } from "../recording-id";
import type { Sources } from "../sources";
import { applyDeltas } from "./apply";
import { readSnapshot } from "./snapshot";
import { NODES, readTree, type Tree } from "./tree";

export interface Seen {
  tree: Tree;
  observation: Observation;
  /** The observation of the same stream before it, which a change is measured from. Null where it is the first. */
  before: Observation | null;
  /** Deltas that were applied to the full tree of step `fullStep`. */
  deltas: number;
  fullStep: number;
  misfits: string[];
  form: "tree" | "text";
}

/** Deltas in a row that are applied at most; docs/format/kinds.md names this number. */
export const DELTAS = 1_000;
/** A node of a kept tree is taken for this many bytes. */
const NODE_BYTES = 300;
const made = new ByteCache<Seen>(48 * 1024 * 1024);

const keyOf = (recording: Recording, seq: number, limit: number): string => `${recordingId(recording)}/${seq}/${limit}`;

/** The tree that `observation` (an a11y_full or a11y_delta of `lane`) leaves behind. */
export async function treeAt(
  recording: Recording,
  sources: Sources,
  observation: Observation,
  lane: number | null,
  limit = NODES,
): Promise<Seen | Missing> {
  const had = made.get(keyOf(recording, observation.seq, limit));
  if (had !== undefined) return had;
  const deltas: { value: unknown; from: Observation }[] = [];
  let base: Seen | null = null;
  let before: Observation | null = null;
  for await (const entry of stream(recording, sources, observation, lane)) {
    if (entry.seq !== observation.seq && before === null) before = entry;
    if (base !== null) break;
    const kept = made.get(keyOf(recording, entry.seq, limit));
    if (kept !== undefined) {
      base = kept;
      break;
    }
    const held = await readHeld(recording, entry);
    if (isMissing(held)) return held;
    if (entry.src === "a11y_full") {
      const full = await readFull(held, limit);
      if (full === null) return { missing: "corrupt", why: "an a11y_full whose value is no tree and no text" };
      base = { ...full, observation: entry, before: null, deltas: 0, fullStep: entry.step, misfits: [] };
    } else {
      deltas.push({ value: "value" in held ? held.value : null, from: entry });
      if (deltas.length > DELTAS)
        return { missing: "not-captured", why: `more than ${DELTAS} deltas without a full tree between them` };
    }
  }
  if (base === null) return { missing: "not-captured", why: "deltas without a full tree before them" };
  const seen = build(
    base,
    deltas.reverse().map(({ value }) => value),
    observation,
    before,
  );
  made.put(keyOf(recording, observation.seq, limit), seen, seen.tree.size * NODE_BYTES);
  return seen;
}

function build(base: Seen, deltas: unknown[], observation: Observation, before: Observation | null): Seen {
  if (deltas.length === 0) return { ...base, observation, before };
  const { tree, misfits } = applyDeltas(base.tree, deltas);
  return {
    tree,
    misfits: [...base.misfits, ...misfits],
    observation,
    before,
    form: base.form,
    deltas: base.deltas + deltas.length,
    fullStep: base.fullStep,
  };
}

/** The observations of the stream that `observation` belongs to, from it backwards. */
async function* stream(
  recording: Recording,
  sources: Sources,
  observation: Observation,
  lane: number | null,
): AsyncGenerator<Observation> {
  yield observation;
  let looked = 0;
  for (const place of sources.back(observation.seq - 1, lane, "a11y_full", "a11y_delta")) {
    if ((looked += 1) > 4 * DELTAS) return;
    const other = await observationAt(recording, place.seq, place.step);
    if (other !== null && other.name === observation.name) yield other;
  }
}

async function readFull(
  held: Exclude<Held, Missing>,
  limit: number,
): Promise<{ tree: Tree; form: "tree" | "text" } | null> {
  const tree = "value" in held ? readTree(held.value, limit) : null;
  if (tree !== null) return { tree, form: "tree" };
  const text = await textOf(held);
  return text === null ? null : { tree: readSnapshot(text, limit), form: "text" };
}
