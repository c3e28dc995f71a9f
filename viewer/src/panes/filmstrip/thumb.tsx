/**
 * One small picture, drawn when its turn comes: two are decoded at a time, and one that went out of sight before its
 * turn is never read.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { BlobRef, Recording } from "../../core/types";
import { ByteCache } from "../stage/byte-cache";
import { observationAt } from "../stage/reading";
import { recordingId } from "../stage/recording-id";
import { thumbnail } from "../stage/screen/pictures";

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

/** The cell that it stands in says in words which step it is. */
export function Thumb({ recording, seq }: { recording: Recording; seq: number }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [drawn, setDrawn] = useState<{
    recording: Recording;
    seq: number;
    state: "picture" | "none" | "restricted";
  } | null>(null);
  useEffect(() => {
    if (seq < 0) return;
    let wanted = true;
    const say = (state: "picture" | "none" | "restricted"): void => {
      if (wanted) setDrawn({ recording, seq, state });
    };
    const stop = wish(async () => {
      try {
        const ref = await screenshotRef(recording, seq);
        if (!wanted) return;
        if (ref?.tier === "restricted") return say("restricted");
        const bitmap = ref === null ? null : await thumbnail(recording, ref, WIDTH);
        const element = canvas.current;
        if (!wanted || element === null) return;
        if (bitmap === null) return say("none");
        cover(element, bitmap);
        say("picture");
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
  const own = drawn !== null && drawn.recording === recording && drawn.seq === seq;
  const state = seq < 0 ? "none" : own ? drawn.state : drawn === null ? "wait" : "old";
  return <canvas ref={canvas} width={WIDTH} height={HEIGHT} aria-hidden="true" class={`film-picture ${state}`} />;
}

/** Fills the cell from the picture's top, where pages say what they are. */
function cover(canvas: HTMLCanvasElement, bitmap: ImageBitmap): void {
  const context = canvas.getContext("2d");
  if (context === null || bitmap.width === 0) return;
  const ratio = WIDTH / HEIGHT;
  const width = Math.min(bitmap.width, bitmap.height * ratio);
  const height = width / ratio;
  context.clearRect(0, 0, WIDTH, HEIGHT);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, (bitmap.width - width) / 2, 0, width, height, 0, 0, WIDTH, HEIGHT);
}
