/**
 * Judging the record: everything is checked behind the first screen, by code that comes when that is there.
 *
 * A seal says that nothing was changed since; it does not say who made it. Signatures are judged by `worldline verify`.
 */
import type { LogRecording } from "./recording";
import type { Integrity } from "./types";

export interface Checking {
  readonly done: Promise<void>;
  stop(): void;
}

/** Logs over this are not fetched a second time from a server unless somebody asks for it. */
export const FETCHED = 48 << 20;

/** How far a check goes: `everything` fetches what it takes, else at most `most` bytes of the log. */
export interface Depth {
  everything?: boolean;
  most?: number;
}

/** Check `recording`; `integrity` is what opening it found, and is added to. */
export function check(
  recording: LogRecording,
  integrity: Integrity,
  changed: (now: Integrity) => void,
  depth: Depth = {},
): Checking {
  let stopped = false,
    begun: Checking | null = null;
  const done = import("./checking").then(({ begin }) => {
    if (stopped) return;
    begun = begin(recording, integrity, changed, depth);
    return begun.done;
  });
  return {
    done,
    stop: () => {
      stopped = true;
      begun?.stop();
    },
  };
}
