/**
 * From an observation to what it holds: a JSON value, a file, or the reason why there is neither.
 */
import { type BlobRef, Mark, type Missing, type Observation, type Outline, type Recording } from "../../core/types";
import { isJsonContent, missing, plain, reference, valueOf } from "../../core/values";

export type Held = { value: unknown } | { file: Blob; type: string; ref: BlobRef } | Missing;

/** A JSON value over this is not parsed without asking: parsing holds the page. */
export const JSON_BYTES = 32 * 1024 * 1024;

export function isMissing(thing: unknown): thing is Missing {
  return typeof thing === "object" && thing !== null && "missing" in thing && "why" in thing;
}

/** What `observation` holds. Rejects only where the recording itself cannot be read. */
export async function readHeld(recording: Recording, observation: Observation): Promise<Held> {
  const ref = observation.ref ?? blobRef(observation.value);
  if (ref === null) {
    if (isMissing(observation.value)) return observation.value;
    return missing(observation.value) ?? { value: plain(observation.value) };
  }
  if (!isJsonContent(ref)) {
    const blob = await recording.content(ref);
    return isMissing(blob) ? blob : { file: blob, type: ref.type, ref };
  }
  if (ref.size > JSON_BYTES)
    return { missing: "not-captured", why: `${ref.size.toLocaleString("en")} bytes of JSON are too many to draw` };
  const blob = await recording.content(ref);
  if (isMissing(blob)) return blob;
  try {
    return { value: valueOf(ref, await blob.text()) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { missing: "corrupt", why: "its content is no JSON" };
  }
}

/** The text of a value or of a text file; null where it is neither. */
export async function textOf(held: Held): Promise<string | null> {
  if ("value" in held) return typeof held.value === "string" ? held.value : null;
  return "file" in held ? held.file.text() : null;
}

export const blobRef = (value: unknown): BlobRef | null => reference(value);

/** The observation that row `seq` is; null where the row is none or cannot be read. */
export async function observationAt(recording: Recording, seq: number, step: number): Promise<Observation | null> {
  const row = await recording.row(seq);
  if (row === null || row.kind !== "observation") return null;
  const { name, value } = row.data;
  return {
    seq,
    t: row.t,
    step,
    src: row.src,
    name: typeof name === "string" ? name : null,
    value,
    ref: blobRef(value),
  };
}

/** The name of the content that screenshot row `seq` refers to, from the outline alone; "" where it is not known. */
export function screenshotName({ marks }: Outline, seq: number): string {
  let low = 0,
    high = marks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (marks.seq(middle) < seq) low = middle + 1;
    else high = middle;
  }
  return low < marks.length && marks.seq(low) === seq && marks.mark(low) === Mark.screenshot ? marks.name(low) : "";
}
