/**
 * Bytes over a message port: for a worker that cannot read them itself, since they stand in the document.
 */
import type { Bytes } from "./types";
import { inWords, Unreadable, type Why } from "./unreadable";

type Ask = { id: number; offset: number; length: number };
type Answer = { id: number; data?: Uint8Array; why?: Why; what?: string };

/** Answer what is asked at `port`; the other side makes a `PortBytes` of its end. */
export function serve(bytes: Bytes, port: MessagePort): void {
  port.onmessage = async ({ data: { id, offset, length } }: MessageEvent<Ask>) => {
    try {
      const read = await bytes.read(offset, length);
      // A part of something larger is copied, so that the whole stays where it is.
      const data = read.byteLength === read.buffer.byteLength ? read : read.slice();
      port.postMessage({ id, data } satisfies Answer, [data.buffer as ArrayBuffer]);
    } catch (error) {
      const why = error instanceof Unreadable ? error.why : "damaged";
      port.postMessage({ id, why, what: inWords(error) } satisfies Answer);
    }
  };
}

export class PortBytes implements Bytes {
  private readonly open = new Map<number, (answer: Answer) => void>();
  private asked = 0;

  constructor(
    private readonly port: MessagePort,
    readonly size: number,
  ) {
    port.onmessage = ({ data }: MessageEvent<Answer>) => {
      const done = this.open.get(data.id);
      this.open.delete(data.id);
      done?.(data);
    };
  }

  read(offset: number, length: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const id = this.asked++;
      this.open.set(id, ({ data, why, what }) =>
        data ? resolve(data) : reject(new Unreadable(why ?? "damaged", what ?? "", "", offset)),
      );
      this.port.postMessage({ id, offset, length } satisfies Ask);
    });
  }
}
