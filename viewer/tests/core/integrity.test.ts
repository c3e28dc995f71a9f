/** What was changed is found, with its row; what was not, is sealed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openFile } from "../../src/core/open";
import { check } from "../../src/core/integrity";
import { asHex } from "../../src/core/sha256";
import { Chain } from "../../src/core/verifying";
import type { Integrity } from "../../src/core/types";
import { bundles, GOLDEN, opened } from "./golden";

async function judged(open: Awaited<ReturnType<typeof openFile>>): Promise<Integrity> {
  await check(open.recording, open.integrity, () => undefined).done;
  return open.integrity;
}

describe("the verdict on a bundle", () => {
  it.each([...bundles("v0"), ...bundles("v1")])("%s is sealed, and not called signed", async (name) => {
    const found = await judged(await opened(name));
    expect(found.problems).toEqual([]);
    expect(found.verdict).toBe("sealed");
    expect(found.signed).toBe(false);
    expect(found.seal).toMatch(/^[0-9a-f]{64}$/);
  });

  it.each([...bundles("v0/damaged"), ...bundles("v1/damaged")])("%s is never called sealed", async (name) => {
    const open = await opened(name).catch((error: unknown) => error as Error);
    if (open instanceof Error) return expect(open.name).toBe("Unreadable");
    const found = await judged(open);
    expect(["changed", "truncated"]).toContain(found.verdict);
    expect(found.problems.length).toBeGreaterThan(0);
  });

  it("sees any changed byte of a bundle, wherever it stands", async () => {
    const data = readFileSync(join(GOLDEN, "v1/short.skn"));
    for (let at = 7; at < data.length; at += 211) {
      const changed = Uint8Array.from(data);
      changed[at] = (changed[at] as number) ^ 0x20;
      const open = await openFile(new Blob([changed]), "changed").catch((error: unknown) => error as Error);
      if (open instanceof Error) {
        expect(open.name, `byte ${at}: ${open.message}`).toBe("Unreadable");
        continue;
      }
      const found = await judged(open);
      expect(found.verdict, `byte ${at}`).not.toBe("sealed");
    }
  });
});

describe("the chain", () => {
  it("names the one row that was changed, also where everything around it was packed anew", async () => {
    const { recording } = await opened("v1/complete.skn");
    const log = await recording.log.raw(0),
      lines = Buffer.from(log).toString("latin1").split("\n");
    const whole = new Chain();
    whole.feed(log);
    expect(whole.problems).toEqual([]);
    const row = lines[5] as string;
    lines[5] = row.replace(/"t":(\d)/, (_, digit: string) => `"t":${(Number(digit) % 9) + 1}`);
    const changed = new Chain();
    // In pieces, as they come: no border of a piece is one of a row.
    const bytes = Buffer.from(lines.join("\n"), "latin1");
    for (let at = 0; at < bytes.length; at += 997) changed.feed(bytes.subarray(at, at + 997));
    changed.end();
    expect(changed.problems).toEqual([
      { what: "row 5 was changed since it was recorded", seq: 5, offset: lines.slice(0, 5).join("\n").length + 1 },
    ]);
    expect(asHex(changed.head)).toBe(asHex(whole.head));
    const torn = new Chain();
    torn.feed(bytes.subarray(0, bytes.length - 20));
    torn.end();
    expect(torn.problems.at(-1)?.what).toContain("inside a row");
  });
});
