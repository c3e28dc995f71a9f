/** Reading one step in full: the code for it is a part of its own, which comes with the first step that is looked at. */
import type { Folded } from "./outline";
import type { LogRecording } from "./recording";
import type { StepBody } from "./types";

/** Read step `i`. Rejects where the recording cannot be read, or `signal` says that nobody waits any more. */
export async function loadStep(
  recording: LogRecording,
  outline: Folded,
  i: number,
  signal?: AbortSignal,
): Promise<StepBody> {
  const part = await import("./step-body");
  return part.loadStep(recording, outline, i, signal);
}
