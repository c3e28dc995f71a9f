/**
 * The first rows of a recording, folded in this thread: the log's first block was read with the header, and a worker takes
 * longer to start than these rows take to fold. What the worker says later begins anew and says the same of them.
 */
import { Fold } from "./fold";
import { snapshot, type Snapshot } from "./outline";
import type { LogRecording } from "./recording";

/** The outline of the first block; null where there is none yet. */
export async function firstRows(recording: LogRecording): Promise<Snapshot | null> {
  if (recording.log.blocks === 0) return null;
  const fold = new Fold(recording.contents);
  for (const row of await recording.rows(0)) {
    const wait = fold.row(row);
    if (wait) await wait;
  }
  return snapshot(fold, Math.max(recording.index.rows, fold.rows), false, false);
}
