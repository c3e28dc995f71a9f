/** Every bundle of every version opens; what is damaged opens as far as it can be read, and says so. */
import { describe, expect, it } from "vitest";
import { scan } from "../../src/core/scan";
import { bundles, opened } from "./golden";

const GOOD = [...bundles("v0"), ...bundles("v1")];

describe("good bundles", () => {
  it.each(GOOD)("%s opens with all its rows", async (name) => {
    const { recording, integrity } = await opened(name);
    expect(integrity.problems).toEqual([]);
    expect(integrity.verdict).toBe("checking");
    expect(recording.header.data.format).toMatch(/^worldline\/[01]$/);
    const rows = [];
    for (let block = 0; block < recording.index.blocks.seq.length; block++) rows.push(...(await recording.rows(block)));
    expect(rows.map((row) => row.seq)).toEqual(Array.from({ length: recording.index.rows }, (_, seq) => seq));
    const last = recording.index.rows - 1;
    expect((await recording.row(last))?.src).toBe("end");
    const { outline, done } = scan(recording, () => undefined);
    await done;
    expect(outline.scanned).toBe(recording.index.rows);
    expect(outline.done).toBe(true);
  });
});
