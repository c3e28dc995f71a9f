/** A short name for each recording that is open in this page, for the keys of caches that outlive a pane. */
import type { Recording } from "../../core/types";

const ids = new WeakMap<Recording, number>();
let next = 1;

export function recordingId(recording: Recording): number {
  let id = ids.get(recording);
  if (id === undefined) ids.set(recording, (id = next++));
  return id;
}
