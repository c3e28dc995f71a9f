/** The reader of ZIPs agrees with another one that shares no line with it, on our bundles and on what others make. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BlobReader, BlobWriter, TextReader, Uint8ArrayWriter, ZipReader, ZipWriter } from "@zip.js/zip.js";
import { describe, expect, it } from "vitest";
import { BlobBytes } from "../../src/core/bytes";
import { openContainer } from "../../src/core/container";
import { Entries } from "../../src/core/entries";
import {
  centralRecord,
  dueEnd,
  dueLocalHeader,
  dueRecord,
  localHeader,
  readDirectory,
  scanned,
} from "../../src/core/zip";
import { bundles, GOLDEN } from "./golden";

const ALL = [...bundles("v0"), ...bundles("v1")];
const file = (name: string): Blob => new Blob([Uint8Array.from(readFileSync(join(GOLDEN, name)))]);

describe("bundles", () => {
  it.each(ALL)("%s: the same entries and contents as zip.js finds", async (name) => {
    const blob = file(name),
      bytes = new BlobBytes(blob);
    const reader = new ZipReader(new BlobReader(blob));
    const due = await reader.getEntries();
    const own = await readDirectory(bytes);
    expect(own.map(({ name, size, stored, crc32, at }) => [name, size, stored, crc32, at])).toEqual(
      due.map((entry) => [entry.filename, entry.uncompressedSize, entry.compressedSize, entry.signature, entry.offset]),
    );
    const entries = new Entries(bytes, await openContainer(bytes));
    for (const entry of due) {
      if (entry.filename === "container.json" || entry.directory) continue;
      const content = await entry.getData(new Uint8ArrayWriter());
      const known = entries.get(entry.filename);
      expect(known && Buffer.from(await entries.read(known)).equals(Buffer.from(content)), entry.filename).toBe(true);
    }
    expect((await scanned(bytes)).map(({ entry }) => entry.name)).toEqual(own.map((entry) => entry.name));
    await reader.close();
  });
});

describe("other ZIPs", () => {
  it.each([false, true])("are listed as zip.js wrote them (zip64: %s)", async (zip64) => {
    const writer = new ZipWriter(new BlobWriter("application/zip"), {
      zip64,
      extendedTimestamp: false,
      dataDescriptor: false,
    });
    for (const name of ["a.txt", "folder/b.txt", "ü.txt"]) await writer.add(name, new TextReader(name.repeat(500)));
    const blob = await writer.close();
    const own = await readDirectory(new BlobBytes(blob));
    const due = await new ZipReader(new BlobReader(blob)).getEntries();
    expect(own.map(({ size, stored, crc32, at }) => [size, stored, crc32, at])).toEqual(
      due.map((entry) => [entry.uncompressedSize, entry.compressedSize, entry.signature, entry.offset]),
    );
  });
});

describe("sizes beyond 32 bits", () => {
  const entry = {
    name: "events.jsonl",
    method: 8,
    size: 2 ** 40 + 5,
    stored: 2 ** 33 + 7,
    crc32: 0xdeadbeef,
    at: 2 ** 34 + 1,
  };

  it("read back from the headers that a bundle has", async () => {
    const record = dueRecord(entry);
    expect(centralRecord(record, 0, 0)).toEqual([entry, record.length]);
    const header = dueLocalHeader(entry);
    const found = await localHeader(new BlobBytes(new Blob([Uint8Array.from(header)])), 0);
    expect(found).toEqual({ entry: { ...entry, at: 0 }, begins: header.length });
    expect(dueEnd(70_000, 2 ** 34, 5_000_000).length).toBe(98);
  });
});
