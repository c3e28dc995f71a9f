/**
 * SHA-256 without promises, for what is hashed by the hundred thousand (rows and their chain); CRC-32 beside it.
 *
 * The algorithm of FIPS 180-4. Where few large pieces are hashed, WebCrypto is faster (`digest`).
 */
const K = new Uint32Array(64);
const START = new Uint32Array(8);

// Both tables follow from the first primes: fractional parts of cube and square roots.
for (let prime = 2, found = 0; found < 64; prime++) {
  let divides = false;
  for (let d = 2; d * d <= prime; d++) divides ||= prime % d === 0;
  if (divides) continue;
  if (found < 8) START[found] = Math.sqrt(prime) * 2 ** 32;
  K[found++] = Math.cbrt(prime) * 2 ** 32;
}

const W = new Int32Array(64);
/** One hash that is made bit by bit. */
export class Sha256 {
  private readonly state = new Int32Array(START);
  private readonly block = new Uint8Array(128);
  private kept = 0;
  private total = 0;

  restart(): this {
    this.state.set(START);
    this.kept = this.total = 0;
    return this;
  }

  update(part: Uint8Array): this {
    this.total += part.length;
    let at = 0;
    if (this.kept > 0) {
      at = Math.min(64 - this.kept, part.length);
      this.block.set(part.subarray(0, at), this.kept);
      this.kept += at;
      if (this.kept < 64) return this;
      compress(this.state, this.block, 0);
      this.kept = 0;
    }
    for (; at + 64 <= part.length; at += 64) compress(this.state, part, at);
    if (at < part.length) this.block.set(part.subarray(at));
    this.kept = part.length - at;
    return this;
  }

  digest(): Uint8Array {
    const { block, state, kept, total } = this,
      length = kept < 56 ? 64 : 128;
    block[kept] = 0x80;
    block.fill(0, kept + 1, length);
    const bits = new DataView(block.buffer);
    bits.setUint32(length - 8, Math.floor(total / 2 ** 29));
    bits.setUint32(length - 4, (total << 3) >>> 0);
    for (let at = 0; at < length; at += 64) compress(state, block, at);
    const out = new Uint8Array(32),
      words = new DataView(out.buffer);
    state.forEach((word, i) => words.setInt32(i * 4, word));
    return out;
  }
}

const ONE = new Sha256();

/** Hash the parts as one. */
export function sha256(...parts: Uint8Array[]): Uint8Array {
  ONE.restart();
  for (const part of parts) ONE.update(part);
  return ONE.digest();
}

function compress(state: Int32Array, data: Uint8Array, at: number): void {
  for (let i = 0; i < 16; i++, at += 4)
    W[i] = (data[at]! << 24) | (data[at + 1]! << 16) | (data[at + 2]! << 8) | data[at + 3]!;
  for (let i = 16; i < 64; i++) {
    const x = W[i - 15]!,
      y = W[i - 2]!;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    W[i] = (W[i - 16]! + s0 + W[i - 7]! + s1) | 0;
  }
  let a = state[0]!,
    b = state[1]!,
    c = state[2]!,
    d = state[3]!;
  let e = state[4]!,
    f = state[5]!,
    g = state[6]!,
    h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i]! + W[i]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    ((h = g), (g = f), (f = e), (e = (d + t1) | 0), (d = c), (c = b), (b = a), (a = (t1 + t2) | 0));
  }
  ((state[0]! += a), (state[1]! += b), (state[2]! += c), (state[3]! += d));
  ((state[4]! += e), (state[5]! += f), (state[6]! += g), (state[7]! += h));
}

const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function asHex(data: Uint8Array): string {
  let out = "";
  for (const byte of data) out += DIGITS[byte];
  return out;
}

/** The same by WebCrypto, in hex: for contents of many megabytes. */
export async function digest(data: Uint8Array): Promise<string> {
  return asHex(new Uint8Array(await crypto.subtle.digest("SHA-256", data as Uint8Array<ArrayBuffer>)));
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  return c;
});

export function crc32(data: Uint8Array): number {
  let c = ~0;
  for (const byte of data) c = CRC[(c ^ byte) & 255]! ^ (c >>> 8);
  return ~c >>> 0;
}
