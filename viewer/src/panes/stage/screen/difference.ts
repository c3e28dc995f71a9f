/**
 * Where two pictures differ: a check for the eye, second to what the tree says. Works on plain pixels, so it runs
 * anywhere.
 */

export interface Difference {
  /** RGBA of the picture that shows it: the newer picture faded, what differs in full colour. */
  pixels: Uint8ClampedArray<ArrayBuffer>;
  differing: number;
  total: number;
}

/** A channel may be off by this much: pictures that were scaled differ everywhere by a little. */
const TOLERANCE = 12;

/** Both in RGBA of the same size. `colour` marks what differs. */
export function difference(
  before: Uint8ClampedArray,
  after: Uint8ClampedArray,
  colour: readonly [number, number, number],
): Difference {
  const total = after.length / 4;
  const pixels = new Uint8ClampedArray(after.length);
  let differing = 0;
  for (let i = 0; i < after.length; i += 4) {
    const off = Math.max(
      Math.abs(after[i]! - before[i]!),
      Math.abs(after[i + 1]! - before[i + 1]!),
      Math.abs(after[i + 2]! - before[i + 2]!),
    );
    if (off > TOLERANCE) {
      differing += 1;
      for (let k = 0; k < 3; k += 1) pixels[i + k] = after[i + k]! * 0.35 + colour[k]! * 0.65;
    } else {
      const grey = (after[i]! * 0.3 + after[i + 1]! * 0.59 + after[i + 2]! * 0.11) * 0.4 + 153 * 0.6;
      pixels[i] = pixels[i + 1] = pixels[i + 2] = grey;
    }
    pixels[i + 3] = 255;
  }
  return { pixels, differing, total };
}
