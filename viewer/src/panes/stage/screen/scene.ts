/**
 * All that one screenshot needs to be shown truly: its picture, the window's facts, and the tree that has the boxes.
 *
 * Loaded together, so that no field is seen for a moment before its mask is known.
 */
import type { Missing, Observation, Recording } from "../../../core/types";
import type { Open } from "../../../state/app";
import { missing } from "../../../core/values";
import { masked } from "../../../state/mask";
import { blobRef, isMissing, observationAt, readHeld } from "../reading";
import type { Sources } from "../sources";
import { treeAt } from "../tree/chain";
import { walk, type Tree } from "../tree/tree";
import { pictureScale, readWindow, share, type Share, type WindowFacts } from "./geometry";
import { picture, type Heavy, type Picture } from "./pictures";

export interface Scene {
  look: Picture | Heavy | Missing;
  observation: Observation;
  window: WindowFacts | null;
  tree: Tree | null;
  /** The row that the tree came from: a reveal of it lifts the masks of its fields. */
  treeSeq: number;
}

export async function sceneOf(
  { recording, outline }: Open,
  sources: Sources,
  observation: Observation,
  anyway: boolean,
): Promise<Scene> {
  const lane =
    observation.step < 0 || observation.step >= outline.steps.length ? null : outline.steps.lane(observation.step);
  const ref = observation.ref ?? blobRef(observation.value);
  const look =
    ref === null
      ? ((isMissing(observation.value) ? observation.value : missing(observation.value)) ??
        ({ missing: "corrupt", why: "a screenshot that is no picture file" } as const))
      : picture(recording, ref, anyway);
  const [drawn, window, seen] = await Promise.all([
    look,
    newestWindow(recording, sources, observation, lane),
    newestTree(recording, sources, observation, lane),
  ]);
  return { look: drawn, observation, window, tree: seen?.tree ?? null, treeSeq: seen?.seq ?? observation.seq };
}

/** What the window was when `observation` was made: the newest row of its stream, or of its lane. */
export async function newestWindow(
  recording: Recording,
  sources: Sources,
  observation: Observation,
  lane: number | null,
): Promise<WindowFacts | null> {
  let other: WindowFacts | null = null;
  let looked = 0;
  for (const place of sources.back(observation.seq, lane, "window")) {
    if ((looked += 1) > 20) break;
    const found = await observationAt(recording, place.seq, place.step);
    if (found === null) continue;
    const held = await readHeld(recording, found);
    if (!("value" in held)) continue;
    const facts = readWindow(held.value);
    if (found.name === observation.name) return facts;
    other ??= facts;
  }
  return other;
}

/**
 * The tree that belongs to a screenshot: agents observe both beside each other, in either order. So it is the newest
 * up to it, or one behind it in the same step.
 */
async function newestTree(
  recording: Recording,
  sources: Sources,
  observation: Observation,
  lane: number | null,
): Promise<{ tree: Tree; seq: number } | null> {
  const behind = [...sources.after(observation.seq, "a11y_full", 1), ...sources.after(observation.seq, "a11y_delta", 1)]
    .filter((place) => place.step === observation.step && (lane === null || place.lane === lane))
    .sort((a, b) => a.seq - b.seq)[0];
  const before = sources.back(observation.seq, lane, "a11y_full", "a11y_delta").next().value;
  const near =
    before !== undefined && before !== null && before.step === observation.step ? before : (behind ?? before);
  if (!near) return null;
  const row = await observationAt(recording, near.seq, near.step);
  if (row === null) return null;
  const seen = await treeAt(recording, sources, row, lane);
  return isMissing(seen) ? null : { tree: seen.tree, seq: near.seq };
}

/** The places of fields that hold something, as parts of the picture, where they are masked in step `index`. */
export function fieldMasks({ tree, treeSeq, window }: Scene, drawn: Picture, index: number): Share[] {
  const masks: Share[] = [];
  if (tree === null || !masked("field", treeSeq, index)) return masks;
  const scale = pictureScale(drawn.width, window, tree);
  for (const { node } of walk(tree)) {
    if (node.value === null || node.value === "" || node.box === null) continue;
    const place = share(node.box, scale, drawn.width, drawn.height);
    if (place !== null) masks.push(place);
    if (masks.length >= 200) break;
  }
  return masks;
}
