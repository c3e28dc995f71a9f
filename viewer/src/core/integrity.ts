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

/** Check `recording`; `integrity` is what opening it found, and is added to. `everything` fetches what it takes. */
export function check(
  recording: LogRecording,
  integrity: Integrity,
  changed: (now: Integrity) => void,
  everything = false,
): Checking {
  let stopped = false,
    begun: Checking | null = null;
  const done = import("./checking").then(({ begin }) => {
    if (stopped) return;
    begun = begin(recording, integrity, changed, everything);
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
