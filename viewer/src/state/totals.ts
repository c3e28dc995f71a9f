/** Sums over all steps for the top bar: tokens in and out. Kept while the outline grows, so that a row costs nothing. */
import type { Outline } from "../core/types";

interface Sum {
  tokensIn: number;
  tokensOut: number;
  upTo: number;
  complete: boolean;
}

const kept = new WeakMap<Outline, Sum>();

/** All but the last step, which may still grow, until the outline is done. */
export function tokens(outline: Outline): { tokensIn: number; tokensOut: number } {
  let sum = kept.get(outline);
  // Answers of long calls may come to a step that was passed long ago: at the end it is summed once from the start.
  if (sum === undefined || (outline.done && !sum.complete))
    sum = { tokensIn: 0, tokensOut: 0, upTo: 0, complete: outline.done };
  const { steps } = outline;
  const end = outline.done ? steps.length : Math.max(0, steps.length - 1);
  for (let i = sum.upTo; i < end; i++) {
    sum.tokensIn += known(steps.tokensIn(i));
    sum.tokensOut += known(steps.tokensOut(i));
  }
  sum.upTo = Math.max(sum.upTo, end);
  kept.set(outline, sum);
  return sum;
}

function known(n: number): number {
  return n > 0 ? n : 0;
}
