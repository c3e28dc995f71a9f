/**
 * Decoded pictures: from a recorded content to a bitmap, small or whole, kept by bytes and never twice at work.
 *
 * A picture that would take more memory than `POINTS` allows is not decoded until the user asks for it by its numbers.
 */
import type { BlobRef, Missing, Recording } from "../../../core/types";
import { ByteCache } from "../byte-cache";
import { recordingId } from "../recording-id";
import { dimensions, HEAD } from "./dimensions";

export interface Picture {
  /** Null for a vector picture: that one is only ever shown by an <img>. */
  bitmap: ImageBitmap | null;
  width: number;
  height: number;
  blob: Blob;
}

/** A picture that is there, but costs: shown as numbers and a choice. */
export interface Heavy {
  heavy: { width: number; height: number; bytes: number };
}

export type Look = Picture | Heavy | Missing;

/** 40 megapixels are 160 MB decoded; a 5K screen has 15. */
export const POINTS = 40_000_000;
/** Beyond this nothing is decoded, whoever asks: browsers fail there in ways that take the page along. */
export const NEVER_BYTES = 1_072_000_000;
const CACHE_BYTES = 128 * 1024 * 1024;
/** The content itself is loaded whole before it is decoded. */
const FILE_BYTES = 128 * 1024 * 1024;

const whole = new ByteCache<Picture>(CACHE_BYTES, (picture) => picture.bitmap?.close());
const small = new ByteCache<ImageBitmap>(CACHE_BYTES / 4, (bitmap) => bitmap.close());
const atWork = new Map<string, Promise<Look>>();

const keyOf = (recording: Recording, { name }: { name: string }, width?: number): string =>
  `${recordingId(recording)}/${name}${width === undefined ? "" : `@${width}`}`;

/** The whole picture `ref`. `anyway` decodes one that is heavy. Never rejects for what the content is. */
export async function picture(recording: Recording, ref: BlobRef, anyway = false): Promise<Look> {
  const key = keyOf(recording, ref);
  const had = whole.get(key);
  if (had !== undefined) return had;
  const asked = `${key}/${anyway}`;
  let work = atWork.get(asked);
  if (work === undefined) {
    work = load(recording, ref, key, anyway).finally(() => atWork.delete(asked));
    atWork.set(asked, work);
  }
  return work;
}

async function load(recording: Recording, ref: BlobRef, key: string, anyway: boolean): Promise<Look> {
  if (ref.size > FILE_BYTES && !anyway) return { heavy: { width: 0, height: 0, bytes: ref.size } };
  const blob = await recording.content(ref);
  if ("missing" in blob) return blob;
  if (ref.type === "image/svg+xml") return { bitmap: null, width: 0, height: 0, blob };
  const size = dimensions(new Uint8Array(await blob.slice(0, HEAD).arrayBuffer()));
  if (size === null) return { missing: "corrupt", why: `its bytes are no picture that is drawn here (${ref.type})` };
  const points = size.width * size.height;
  if (points === 0) return { missing: "corrupt", why: "a picture without points" };
  if (points > POINTS && (!anyway || points * 4 > NEVER_BYTES)) return { heavy: { ...size, bytes: points * 4 } };
  try {
    const bitmap = await createImageBitmap(blob);
    const done: Picture = { bitmap, width: bitmap.width, height: bitmap.height, blob };
    whole.put(key, done, bitmap.width * bitmap.height * 4);
    return done;
  } catch (error) {
    return { missing: "corrupt", why: `it does not decode: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/**
 * A small form of the picture, `width` points wide: the bundle's own thumbnail, else the picture scaled down while it
 * is decoded. Null where there is nothing to draw.
 */
export async function thumbnail(recording: Recording, ref: BlobRef, width: number): Promise<ImageBitmap | null> {
  return (
    (await ownThumbnail(recording, ref.name, width)) ??
    smaller(recording, ref.name, width, await lightContent(recording, ref))
  );
}

/** The bundle's own thumbnail of a content. Only ordinary pictures have one, so nothing else has to be read of it. */
export async function ownThumbnail(recording: Recording, name: string, width: number): Promise<ImageBitmap | null> {
  return small.get(keyOf(recording, { name }, width)) ?? smaller(recording, name, width, await recording.thumb(name));
}

async function smaller(
  recording: Recording,
  name: string,
  width: number,
  blob: Blob | null,
): Promise<ImageBitmap | null> {
  if (blob === null) return null;
  const size = dimensions(new Uint8Array(await blob.slice(0, HEAD).arrayBuffer()));
  if (size === null || size.width * size.height > POINTS || size.width === 0) return null;
  const options: ImageBitmapOptions = size.width > width ? { resizeWidth: width, resizeQuality: "medium" } : {};
  const bitmap = await createImageBitmap(blob, options).catch(() => null);
  if (bitmap !== null) small.put(keyOf(recording, { name }, width), bitmap, bitmap.width * bitmap.height * 4);
  return bitmap;
}

async function lightContent(recording: Recording, ref: BlobRef): Promise<Blob | null> {
  if (ref.size > FILE_BYTES || ref.tier === "restricted") return null;
  const blob = await recording.content(ref);
  return "missing" in blob ? null : blob;
}

/** The whole picture where it is decoded already, so that a pane can draw it in the same frame. */
export function pictureAtHand(recording: Recording, ref: { name: string }): Picture | null {
  return whole.get(keyOf(recording, ref)) ?? null;
}
