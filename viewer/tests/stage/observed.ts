/** A recording in memory that holds observations only: one row each, in steps of ten rows, for what walks over them. */
import { Mark, type Missing, type Outline, type Recording, type Row } from "../../src/core/types";
import { Sources } from "../../src/panes/stage/sources";
import { outlineOf } from "../state/memory";

export interface Seen {
  seq: number;
  src: string;
  value: unknown;
  name?: string;
}

export interface Observed {
  recording: Recording;
  outline: Outline;
  sources: Sources;
  /** Rows that were read, in order. */
  read: number[];
}

export function observed(
  rows: readonly Seen[],
  contents: Record<string, Blob | Missing> = {},
  lanes: (step: number) => number = () => 0,
): Observed {
  const last = rows.at(-1)?.seq ?? 0;
  const outline = outlineOf(
    Array.from({ length: Math.floor(last / 10) + 1 }, (_, i) => ({
      name: "step",
      at: i * 100,
      took: [10, 10, 10] as [number, number, number],
    })),
    rows.map(({ seq, src }) => ({
      t: seq * 1e6,
      seq,
      mark: src === "screenshot" ? Mark.screenshot : Mark.observation,
      sub: 0,
      name: src,
    })),
  );
  outline.steps.lane = lanes;
  const read: number[] = [];
  const header: Row = { seq: 0, t: 0, kind: "meta", src: "header", lane: "main", data: { t0_wall: "0" } };
  const recording: Recording = {
    kind: "bundle",
    label: "in memory",
    manifest: null,
    header,
    index: {} as Recording["index"],
    rows: async () => [],
    row: async (seq) => {
      read.push(seq);
      const found = rows.find((row) => row.seq === seq);
      return found === undefined
        ? null
        : {
            seq,
            t: seq * 1e6,
            kind: "observation",
            src: found.src,
            lane: "main",
            data: { name: found.name ?? null, value: found.value },
          };
    },
    content: async ({ name }) => contents[name] ?? { missing: "lost", why: "not in memory" },
    thumb: async () => null,
    media: async () => [],
    annotations: async () => [],
  };
  const sources = new Sources();
  sources.update(outline);
  return { recording, outline, sources, read };
}
