/** Aligning two outlines, in a worker where there is one: the shortest script of two long runs takes a while. */
import { type Alignment, anchorsOf, keysOf, pairs } from "./alignment";
import type { Word } from "./crew";
import { start } from "./start";
import type { Outline } from "./types";
import { Unreadable } from "./unreadable";

export type { Alignment } from "./alignment";

/** Runs of fewer steps are aligned at once. */
const SMALL = 500;

export async function align(left: Outline, right: Outline): Promise<Alignment> {
  const [a, b] = [keysOf(left), keysOf(right)];
  const small = left.steps.length + right.steps.length < SMALL || typeof Worker === "undefined";
  const found = small ? pairs(a, b) : await elsewhere({ left: a, right: b });
  return { ...found, anchors: anchorsOf(left, right, found) };
}

function elsewhere(keys: {
  left: ReturnType<typeof keysOf>;
  right: ReturnType<typeof keysOf>;
}): Promise<ReturnType<typeof pairs>> {
  const worker = start();
  return new Promise<ReturnType<typeof pairs>>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Word>) => {
      if (data.is === "aligned") resolve(data.pairs);
      else if (data.is === "failed") reject(new Unreadable("damaged", data.what));
    };
    worker.onerror = (event) => reject(new Unreadable("damaged", `the worker stopped: ${event.message}`));
    worker.postMessage({ do: "align", ...keys });
  }).finally(() => worker.terminate());
}
