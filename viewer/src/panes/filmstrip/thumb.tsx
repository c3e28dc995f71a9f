/**
 * One small picture, drawn when its turn comes: two are decoded at a time, and one that went out of sight before its
 * turn is never read.
 *
 * It stands in the page as an image, not as a canvas: each canvas is a layer of its own, which every frame would pay for.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { BlobRef, Recording } from "../../core/types";
import { ByteCache } from "../stage/byte-cache";
import type { Open } from "../../state/app";
import { observationAt, screenshotName } from "../stage/reading";
import { recordingId } from "../stage/recording-id";
import { ownThumbnail, thumbnail } from "../stage/screen/pictures";

const WIDTH = 184;
const HEIGHT = 108;
const AT_ONCE = 2;
const refs = new ByteCache<BlobRef | null>(4_000);
const wishes: (() => Promise<void>)[] = [];
let working = 0;

function wish(task: () => Promise<void>): () => void {
  wishes.push(task);
  void work();
  return () => {
    const at = wishes.indexOf(task);
    if (at >= 0) wishes.splice(at, 1);
  };
}

async function work(): Promise<void> {
  if (working >= AT_ONCE) return;
  const task = wishes.shift();
  if (task === undefined) return;
  working += 1;
  try {
    await task();
  } finally {
    working -= 1;
    void work();
  }
}

/** The content of the screenshot in row `seq`. */
export async function screenshotRef(recording: Recording, seq: number): Promise<BlobRef | null> {
  const key = `${recordingId(recording)}/${seq}`;
  const had = refs.get(key);
  if (had !== undefined) return had;
  const ref = (await observationAt(recording, seq, -1))?.ref ?? null;
  refs.put(key, ref, 1);
  return ref;
}

interface Drawn {
  recording: Recording;
  seq: number;
  state: "picture" | "none" | "restricted";
  /** The picture's address in this page; "" where there is none. */
  address: string;
}

/** The cell that it stands in says in words which step it is. */
export function Thumb({ open, seq }: { open: Open; seq: number }): JSX.Element {
  const { recording, outline } = open;
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  useEffect(() => {
    if (seq < 0) return;
    let wanted = true;
    const say = (state: Drawn["state"], address = ""): void => {
      if (wanted) setDrawn({ recording, seq, state, address });
    };
    const stop = wish(async () => {
      try {
        let bitmap = await ownThumbnail(recording, screenshotName(outline, seq), WIDTH);
        if (bitmap === null) {
          const ref = await screenshotRef(recording, seq);
          if (!wanted) return;
          if (ref?.tier === "restricted") return say("restricted");
          bitmap = ref === null ? null : await thumbnail(recording, ref, WIDTH);
        }
        const small = bitmap === null || !wanted ? null : await cover(bitmap);
        if (!wanted) return;
        if (small === null) return say("none");
        say("picture", URL.createObjectURL(small));
      } catch {
        // A picture that cannot be read leaves its cell hatched; the stage says why when one goes there.
        say("none");
      }
    });
    return () => {
      wanted = false;
      stop();
    };
  }, [recording, seq]);
  const address = drawn?.address ?? "";
  useEffect(() => () => URL.revokeObjectURL(address), [address]);
  const own = drawn !== null && drawn.recording === recording && drawn.seq === seq;
  const state = seq < 0 ? "none" : own ? drawn.state : drawn === null ? "wait" : "old";
  return address === "" ? (
    <span class={`film-picture ${state}`} aria-hidden="true" />
  ) : (
    <img class={`film-picture ${state}`} src={address} alt="" aria-hidden="true" draggable={false} />
  );
}

/** Fills the cell from the picture's top, where pages say what they are. */
async function cover(bitmap: ImageBitmap): Promise<Blob | null> {
  const canvas = new OffscreenCanvas(WIDTH, HEIGHT);
  const context = canvas.getContext("2d");
  if (context === null || bitmap.width === 0) return null;
  const ratio = WIDTH / HEIGHT;
  const width = Math.min(bitmap.width, bitmap.height * ratio);
  const height = width / ratio;
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, (bitmap.width - width) / 2, 0, width, height, 0, 0, WIDTH, HEIGHT);
  return canvas.convertToBlob();
}
