/**
 * The one error of the readers: what cannot be read, where, why, and what the user can do about it.
 */
export type Why = "not-a-bundle" | "damaged" | "newer" | "too-large" | "network" | "absent" | "truncated" | "changed";

export class Unreadable extends Error {
  /** `where` is a file's name, an address or an entry; `todo` is one sentence for the user. */
  constructor(
    readonly why: Why,
    readonly what: string,
    readonly todo = "",
    readonly offset?: number,
  ) {
    super(offset === undefined ? what : `${what} (byte ${offset})`);
    this.name = "Unreadable";
  }
}

/** An error in words, whoever threw it. */
export function inWords(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
