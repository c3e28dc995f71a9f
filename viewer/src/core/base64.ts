/** Bytes from base64, by the platform where it can. */
import { Unreadable } from "./unreadable";

interface WithBase64 {
  fromBase64?(text: string): Uint8Array;
}

/** Base64 as bytes; what is none is damage, not a crash. */
export function fromBase64(text: string): Uint8Array {
  try {
    const native = (Uint8Array as unknown as WithBase64).fromBase64;
    if (native) return native.call(Uint8Array, text);
    const binary = atob(text),
      out = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) out[i] = binary.charCodeAt(i);
    return out;
  } catch {
    throw new Unreadable("damaged", "it is no base64");
  }
}
