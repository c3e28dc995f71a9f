/** Aligning two outlines, in a worker where there is one: the shortest script of two long runs takes a while. */
import { type Alignment, type Keys, anchorsOf, keysOf, pairs } from "./alignment";
import type { Word } from "./crew";
import { start } from "./start";
import type { Outline } from "./types";
import { Unreadable } from "./unreadable";

export type { Alignment } from "./alignment";

/** Runs of fewer steps are aligned at once. */
const SMALL = 500;

/** `shared`: how many steps of either side the other took over when it left it. They stand first, and are not aligned. */
export async function align(left: Outline, right: Outline, [l, r] = [0, 0]): Promise<Alignment> {
  const [a, b] = [after(keysOf(left), l), after(keysOf(right), r)];
  const small = left.steps.length + right.steps.length < SMALL || typeof Worker === "undefined";
  const own = small ? pairs(a, b) : await elsewhere({ left: a, right: b });
  const exact = new Uint8Array(l + r + own.exact.length).fill(1);
  exact.set(own.exact, l + r);
  const found = { left: shifted(own.left, l, r), right: shifted(own.right, r, l), exact, first: exact.indexOf(0) };
  return { ...found, anchors: anchorsOf(left, right, found) };
}

function after({ whole, action }: Keys, shared: number): Keys {
  return { whole: whole.slice(shared), action: action.slice(shared) };
}

/** The column of a side: its shared steps, rows in which the other's stand, then its own. */
function shifted(own: Int32Array, shared: number, others: number): Int32Array {
  const first = shared + others;
  return new Int32Array(first + own.length).map((_, row) => {
    if (row < first) return shared > 0 ? row : -1;
    const place = own[row - first] ?? -1;
    return place < 0 ? -1 : place + shared;
  });
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
