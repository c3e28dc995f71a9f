/**
 * How large a picture is, from its first bytes: asked before a decoder is, because a small file may hold a huge
 * picture.
 *
 * PNG (IHDR), JPEG (the first frame header), WebP (VP8, VP8L, VP8X) and GIF; null where the bytes are none of these.
 */

export interface Dimensions {
  type: "image/png" | "image/jpeg" | "image/webp" | "image/gif";
  width: number;
  height: number;
}

/** Enough for every header here; a JPEG's frame header may lie behind thumbnails and profiles. */
export const HEAD = 256 * 1024;

export function dimensions(bytes: Uint8Array): Dimensions | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (begins(bytes, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) && bytes.length >= 24) {
    return { type: "image/png", width: view.getUint32(16), height: view.getUint32(20) };
  }
  if (begins(bytes, [0x47, 0x49, 0x46, 0x38]) && bytes.length >= 10) {
    return { type: "image/gif", width: view.getUint16(6, true), height: view.getUint16(8, true) };
  }
  if (begins(bytes, [0xff, 0xd8])) return jpeg(view);
  if (begins(bytes, [0x52, 0x49, 0x46, 0x46]) && begins(bytes.subarray(8), [0x57, 0x45, 0x42, 0x50])) return webp(view);
  return null;
}

function begins(bytes: Uint8Array, magic: number[]): boolean {
  return bytes.length >= magic.length && magic.every((byte, i) => bytes[i] === byte);
}

/** Segments from marker to marker until a start of frame (C0..CF without DHT, JPG and DAC). */
function jpeg(view: DataView): Dimensions | null {
  let at = 2;
  while (at + 9 <= view.byteLength) {
    if (view.getUint8(at) !== 0xff) return null;
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return { type: "image/jpeg", height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    }
    const alone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    at += alone ? 2 : 2 + view.getUint16(at + 2);
  }
  return null;
}

function webp(view: DataView): Dimensions | null {
  if (view.byteLength < 30) return null;
  const chunk = String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + 12, 4));
  if (chunk === "VP8X") return { type: "image/webp", width: 1 + uint24(view, 24), height: 1 + uint24(view, 27) };
  if (chunk === "VP8 ") {
    return { type: "image/webp", width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
  }
  if (chunk !== "VP8L") return null;
  const bits = view.getUint32(21, true);
  return { type: "image/webp", width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
}

function uint24(view: DataView, at: number): number {
  return view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
}
