/** The digests are those of the platform, whatever the length and however the parts fall. */
import { createHash, randomBytes } from "node:crypto";
import { crc32 as oracle } from "node:zlib";
import { describe, expect, it } from "vitest";
import { asHex, crc32, digest, sha256 } from "../../src/core/sha256";

describe("sha256", () => {
  it("agrees with the platform for every length around its blocks, in one part and in several", async () => {
    const data = randomBytes(300);
    for (let size = 0; size <= data.length; size++) {
      const whole = data.subarray(0, size);
      const due = createHash("sha256").update(whole).digest("hex");
      expect(asHex(sha256(whole))).toBe(due);
      const [a, b] = [size % 7, Math.max(size % 7, size % 131)];
      expect(asHex(sha256(whole.subarray(0, a), whole.subarray(a, b), whole.subarray(b)))).toBe(due);
    }
    expect(await digest(data)).toBe(createHash("sha256").update(data).digest("hex"));
  });

  it("makes the ZIP's checksum", () => {
    const data = randomBytes(1000);
    expect(crc32(data)).toBe(oracle(data));
  });
});
