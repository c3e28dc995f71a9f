/** Whatever a stranger made of a file: one clear error, or what can be read of it, and never the word "sealed". */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { check } from "../../src/core/integrity";
import { inflate } from "../../src/core/inflate";
import { openFile, type Opened } from "../../src/core/open";
import { scan } from "../../src/core/scan";
import type { Row } from "../../src/core/types";
import { Unreadable } from "../../src/core/unreadable";
import { bundles, GOLDEN, opened } from "./golden";

const data = (name: string): Uint8Array<ArrayBuffer> => Uint8Array.from(readFileSync(join(GOLDEN, name)));

async function allRows({ recording }: Opened): Promise<Row[]> {
  const rows: Row[] = [];
  for (let block = 0; block < recording.index.blocks.seq.length; block++) rows.push(...(await recording.rows(block)));
  return rows;
}

async function tried(open: Promise<Opened>): Promise<Opened | Unreadable> {
  try {
    return await open;
  } catch (error) {
    expect(error).toBeInstanceOf(Unreadable);
    expect((error as Unreadable).message.length).toBeGreaterThan(10);
    return error as Unreadable;
  }
}

describe("hostile bundles", () => {
  it.each([...bundles("v0/hostile"), ...bundles("v1/hostile")])(
    "%s is refused, or opened for what it is",
    async (name) => {
      const open = await tried(opened(name));
      if (open instanceof Unreadable) return;
      const { done, outline } = scan(open.recording, () => undefined);
      await done.catch((error: unknown) => expect(error).toBeInstanceOf(Unreadable));
      await check(open.recording, open.integrity, () => undefined).done;
      expect(["changed", "newer", "truncated"]).toContain(open.integrity.verdict);
      expect(outline.scanned).toBeLessThan(5000);
    },
  );

  it("breaks a bomb off where it exceeds what it said", async () => {
    const bomb = new Uint8Array(
      await new Response(
        new Blob([new Uint8Array(5_000_000)]).stream().pipeThrough(new CompressionStream("deflate-raw")),
      ).arrayBuffer(),
    );
    await expect(inflate(bomb, 1000, "bomb")).rejects.toThrow("larger than it says");
    await expect(inflate(bomb, 6_000_000, "bomb")).rejects.toThrow("shorter than it says");
  });
});

describe("cut files", () => {
  it("give the rows that came, in order, wherever the cut is", async () => {
    const whole = data("v1/blocks.skn"),
      due = await allRows(await openFile(new Blob([whole]), "whole"));
    let readable = 0;
    for (let size = 1; size < whole.length; size += 397) {
      const open = await tried(openFile(new Blob([whole.slice(0, size)]), "cut"));
      if (open instanceof Unreadable) {
        expect(size, open.message).toBeLessThan(4000);
        continue;
      }
      const rows = await allRows(open);
      expect(open.integrity.verdict).toBe("truncated");
      expect(rows.length).toBeGreaterThanOrEqual(readable);
      expect(rows).toEqual(due.slice(0, rows.length));
      const { done, outline } = scan(open.recording, () => undefined);
      await done;
      expect(outline.scanned).toBe(rows.length);
      readable = rows.length;
    }
    expect(readable).toBe(due.length);
  });
});

describe("a bundle from the future", () => {
  /** The container of a later version: its format has another number, and its digest is right. */
  function later(name: string): Uint8Array<ArrayBuffer> {
    const bytes = data(name),
      text = Buffer.from(bytes);
    const begins = text.indexOf('{"format":"worldline-container/1"'),
      ends = text.indexOf(',"container":"', begins);
    text.write("2", begins + '{"format":"worldline-container/'.length);
    const digest = createHash("sha256").update(Uint8Array.of(4)).update(text.subarray(begins, ends)).digest("hex");
    text.write(digest, ends + ',"container":"'.length);
    return Uint8Array.from(text);
  }

  it("opens for what is understood of it, and is judged by nothing that may have changed", async () => {
    const open = await openFile(new Blob([later("v1/seen.skn")]), "later");
    expect(await allRows(open)).toEqual(await allRows(await opened("v1/seen.skn")));
    await check(open.recording, open.integrity, () => undefined).done;
    expect(open.integrity.verdict).toBe("newer");
  });
});
