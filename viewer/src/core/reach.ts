/** Giving a worker its way to a recording's bytes: a handle where it can read them itself, else a port to this thread. */
import type { Order, Reach } from "./crew";
import type { LogRecording } from "./recording";
import { serve } from "./relay";

/** Posts an order that needs the bytes of `recording`. */
export function order(worker: Worker, recording: LogRecording, make: (reach: Reach) => Order): void {
  const { handle } = recording.source;
  if (handle) return worker.postMessage(make({ handle }));
  const { port1, port2 } = new MessageChannel();
  serve(recording.source, port1);
  worker.postMessage(make({ port: port2, size: recording.source.size }), [port2]);
}
