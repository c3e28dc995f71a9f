/** Real bundles come into the page by their file: verdict, entry, bodies, search, notes; what is none says what to do. */
// @vitest-environment happy-dom
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { body, other, page, run, step, tab, trouble } from "../../src/state/app";
import { startBodies } from "../../src/state/bodies";
import { addNote, changeNote, exported, removeNote, standing } from "../../src/state/notes";
import { openBeside, openRun } from "../../src/state/open";
import { reveal } from "../../src/state/mask";
import { asRegex, hits, progress, startSearch } from "../../src/state/search";
import { query } from "../../src/state/app";

const GOLDEN = resolve(import.meta.dirname, "../../../tests/golden/v1");
const file = (name: string): File => new File([readFileSync(resolve(GOLDEN, name))], name);

const ends: (() => void)[] = [];

beforeEach(() => {
  run.value = null;
  other.value = null;
  page.value = "empty";
  trouble.value = null;
});

afterEach(() => {
  for (const end of ends.splice(0)) end();
  vi.unstubAllGlobals();
});

const until = (what: () => boolean): Promise<void> =>
  vi.waitFor(() => expect(what()).toBe(true), { timeout: 20_000, interval: 20 });

describe("a bundle", () => {
  it("opens on its cause, and gives the bodies of the step once the playhead rests", async () => {
    ends.push(startBodies());
    await openRun([{ file: file("complete.skn") }], { tab: "raw" });
    expect([page.value, tab.value]).toEqual(["run", "raw"]);
    await until(() => run.value?.outline.done === true && body.value !== null);
    expect(step.value).toBe(Math.max(0, run.value?.verdict.openAt ?? -1));
    expect(body.value?.index).toBe(step.value);
    expect(body.value?.rows.length).toBeGreaterThan(0);
    await until(() => run.value?.integrity.verdict === "sealed");
  });

  it("comes beside another, and ends the comparison with it", async () => {
    await openRun([{ file: file("complete.skn") }]);
    await openBeside({ file: file("short.skn") });
    expect(page.value).toBe("compare");
    expect(other.value?.recording.label).toBe("short.skn");
    await openRun([{ file: file("short.skn") }]);
    expect([page.value, other.value, run.value?.recording.label]).toEqual(["run", null, "short.skn"]);
  });

  it("that is none leaves an open run as it was, and says what, where and what to do", async () => {
    await openRun([{ file: new File(["no bundle at all"], "bad.skn") }]);
    expect(page.value).toBe("error");
    expect(trouble.value?.what).toContain("bad.skn");
    expect(trouble.value?.todo).not.toBe("");
    await openRun([{ file: file("short.skn") }]);
    const open = run.value;
    await openRun([{ file: new File(["PK"], "worse.skn") }]);
    expect([page.value, run.value === open]).toEqual(["run", true]);
    expect(trouble.value?.what).toContain("worse.skn");
  });
});

describe("a search", () => {
  const look = async (text: string): Promise<string[]> => {
    query.value = text;
    await until(() => progress.value?.done === true);
    return hits.value.map((hit) => hit.kind);
  };

  it("does not look into what is masked and says so; a reveal lets it", async () => {
    await openRun([{ file: file("complete.skn") }]);
    await until(() => run.value?.outline.done === true);
    asRegex.value = true;
    ends.push(startSearch());
    const before = await look("lamp|stock");
    expect(before.length).toBeGreaterThan(0);
    expect(before.some((kind) => kind.startsWith("observation/") || kind === "decision/request")).toBe(false);
    expect(progress.value?.left.masked).toBeGreaterThan(0);
    const masked = (): number => progress.value?.left.masked ?? -1;
    progress.value = null;
    await reveal("session", 0, "to search");
    await until(() => progress.value?.done === true);
    expect(masked()).toBe(0);
    expect(hits.value.length).toBeGreaterThan(before.length);
  });
});

describe("notes", () => {
  it("without a server stay in the page, in the order of their rows, and are carried out as lines", async () => {
    await openRun([{ file: file("complete.skn") }]);
    await until(() => run.value?.outline.done === true);
    await addNote("second", "", 12);
    await addNote(" first ", "cause", 3);
    const notes = (): ReturnType<typeof standing> => standing(run.value?.annotations ?? []);
    expect(notes().map((note) => [note.seq, note.text, note.tag])).toEqual([
      [3, "first", "cause"],
      [12, "second", undefined],
    ]);
    await changeNote(notes()[0]!, "better", "");
    await removeNote(notes()[1]!);
    expect(notes().map((note) => note.text)).toEqual(["better"]);
    expect(
      exported(run.value?.annotations ?? [])
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { text: string }).text),
    ).toEqual(["better"]);
    await expect(addNote("  ", "")).rejects.toThrow(/text/);
  });

  it("with a server are what it wrote, and none where it did not", async () => {
    await openRun([{ file: file("complete.skn") }]);
    await until(() => run.value?.outline.done === true);
    run.value!.server = "r/run_1/";
    vi.stubGlobal("fetch", async (_url: string, init: RequestInit) => {
      const said = JSON.parse(String(init.body)) as { text: string };
      return said.text === "no"
        ? new Response("read-only", { status: 403 })
        : new Response(JSON.stringify({ ...said, id: "note_of_the_server", who: "ada" }));
    });
    await addNote("yes", "", 3);
    expect(standing(run.value?.annotations ?? [])).toMatchObject([
      { id: "note_of_the_server", who: "ada", text: "yes" },
    ]);
    await expect(addNote("no", "", 3)).rejects.toThrow(/403.*read-only/);
    expect(standing(run.value?.annotations ?? [])).toHaveLength(1);
  });
});
