/** Chance that is the same in every run: a property that failed fails again under its seed. */
export interface Dice {
  /** A whole number from 0 to `most`, both included. */
  upTo(most: number): number;
  one<T>(of: readonly T[]): T;
  word(): string;
}

export function dice(seed: number): Dice {
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  const upTo = (most: number): number => Math.floor(next() * (most + 1));
  return {
    upTo,
    one: (of) => of[upTo(of.length - 1)]!,
    word: () => Array.from({ length: 3 + upTo(5) }, () => "abcdefghijklmnop"[upTo(15)]).join(""),
  };
}
