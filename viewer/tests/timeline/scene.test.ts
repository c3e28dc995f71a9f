/** What the lanes draw: bounded by the picture's width, and nothing that matters is lost by that. */
import { describe, expect, it } from "vitest";
import { findGaps, makeAxis, project, whole, type Projection } from "../../src/core/axis";
import { Mark, type Outline, PERMISSIONS, Status } from "../../src/core/types";
import { bars, clusters, density } from "../../src/panes/timeline/columns";
import { hit, spoken, openGapAt } from "../../src/panes/timeline/hit";
import { describe as words } from "../../src/panes/timeline/tip";
import { makeScene, placePermissions, ticks, type Beside, type Scene } from "../../src/panes/timeline/scene";
import { loops, makeTracks, networkTone, pointTrack, Tone } from "../../src/panes/timeline/tracks";
import { readStudy } from "../../src/panes/timeline/study";
import { chance, madeOutline, madeRun, type MadeMark } from "./made-outline";

const SECOND = 1e9;
const NOTHING: Beside = { notes: pointTrack([], () => 0), video: [], study: null, timeOf: () => 0 };

/** The view, or all of the run, with its gaps folded. */
function shownOf(outline: Outline, width = 1000, view?: [number, number]): Projection {
  const axis = makeAxis(outline.span, findGaps(outline), () => false);
  return project(axis, ...(view ?? whole(axis)), width);
}

/** A thousand seconds on as many pixels, nothing folded. */
function evenly(): Projection {
  const axis = makeAxis([0, 1000 * SECOND], new Float64Array(0), () => false);
  return project(axis, ...whole(axis), 1000);
}

function sceneOf(outline: Outline, width = 1000, view?: [number, number]): Scene {
  return makeScene(makeTracks(outline), shownOf(outline, width, view), NOTHING, []);
}

describe("permissions", () => {
  const random = (seed: number, count: number): Outline => {
    const next = chance(seed);
    const marks: MadeMark[] = Array.from({ length: count }, (_, seq) => ({
      t: next() ** 3 * 1000 * SECOND,
      mark: Mark.permission,
      sub: Math.floor(next() * PERMISSIONS.length),
      name: "http.post",
      seq,
    }));
    return madeOutline({ marks, span: [0, 1000 * SECOND] });
  };

  it("are never coalesced away: the signs of each word hold all its rows, however many there are", () => {
    for (const [seed, count] of [
      [1, 1],
      [2, 7],
      [3, 60],
      [4, 900],
      [5, 6_000],
    ] as const) {
      const outline = random(seed, count);
      const tracks = makeTracks(outline);
      const placed = placePermissions(tracks.permissions, shownOf(outline));
      tracks.permissions.forEach((track, word) => {
        const signs = placed.filter((one) => one.word === word);
        expect(signs.reduce((sum, one) => sum + one.count, 0)).toBe(track.length);
        expect(signs.every((one) => one.r >= 3)).toBe(true);
      });
      expect(placed.length).toBeLessThan(1000);
    }
  });

  it("stand where they happened, and no sign that is larger than a dot hides another of its row", () => {
    const outline = random(6, 400);
    const placed = placePermissions(makeTracks(outline).permissions, shownOf(outline)).filter((one) => one.r > 3);
    for (const row of [-1, 0, 1]) {
      const xs = placed
        .filter((one) => one.row === row)
        .map((one) => ({ ...one, x: one.x + one.aside }))
        .sort((a, b) => a.x - b.x);
      const hidden = xs.filter((one, i) => i > 0 && one.x - one.r < (xs[i - 1]?.x ?? -100) + (xs[i - 1]?.r ?? 0) - 2);
      expect(hidden).toEqual([]);
    }
  });

  it("keep a denial in the middle of its lane, at full size, whatever stands around it", () => {
    const marks: MadeMark[] = ["requested", "auto_approved", "granted", "denied", "granted"].map((word, i) => ({
      t: (500 + i * 0.001) * SECOND,
      mark: Mark.permission,
      sub: PERMISSIONS.indexOf(word as "denied"),
      seq: i,
    }));
    const outline = madeOutline({ marks, span: [0, 1000 * SECOND] });
    const permissions = placePermissions(makeTracks(outline).permissions, evenly());
    const denied = permissions.find((one) => PERMISSIONS[one.word] === "denied");
    expect(denied).toMatchObject({ row: 0, r: 9, count: 1 });
    expect(permissions).toHaveLength(4);
  });
});

describe("the lanes", () => {
  it("draw however many entries in as many shapes as there are pixels, and count each of them", () => {
    const outline = madeRun(4_000, 3);
    const scene = sceneOf(outline, 800);
    const all = [...scene.steps, scene.tools, scene.network, scene.decisions];
    for (const lane of all) expect(lane.length).toBeLessThanOrEqual(801);
    const held = all.flat().reduce((sum, bar) => sum + bar.count, 0);
    expect(held).toBe(outline.steps.length + outline.spans.length);
    const failed = scene.tools.filter((bar) => bar.tone === Tone.failed).reduce((sum, bar) => sum + bar.worst, 0);
    let expected = 0;
    for (let i = 0; i < outline.spans.length; i++)
      if (outline.spans.track(i) === "tool" && outline.spans.status(i) === Status.failed) expected += 1;
    expect(failed).toBe(expected);
  });

  it("show what began before the left edge and still lasts", () => {
    const outline = madeOutline({
      spans: [
        { t0: 0, t1: 90 * SECOND, track: "tool" },
        { t0: SECOND, t1: 2 * SECOND, track: "tool" },
      ],
      span: [0, 100 * SECOND],
    });
    const axis = makeAxis(outline.span, new Float64Array(0), () => false);
    const found = bars(makeTracks(outline).tools, project(axis, 50 * SECOND, 100 * SECOND, 1000));
    expect(found).toHaveLength(1);
    expect(found[0]?.x1).toBeCloseTo(800, 0);
  });

  it("take the worst of a column for its tone, and say how many it is of how many", () => {
    const spans = Array.from({ length: 50 }, (_, i) => ({
      t0: i * 1000,
      t1: i * 1000 + 10,
      track: "tool" as const,
      status: i === 13 ? Status.failed : Status.ok,
    }));
    const outline = madeOutline({ spans, span: [0, 1000 * SECOND] });
    expect(bars(makeTracks(outline).tools, evenly())).toMatchObject([{ count: 50, tone: Tone.failed, worst: 1 }]);
  });

  it("tell refused from failed requests", () => {
    expect([200, 302, 404, 429, 500, 503].map((code) => networkTone(code, code >= 400))).toEqual([
      Tone.plain,
      Tone.plain,
      Tone.refused,
      Tone.refused,
      Tone.failed,
      Tone.failed,
    ]);
    expect(networkTone(0, true)).toBe(Tone.failed);
  });

  it("find loops: the third and each further step that does the same in its lane", () => {
    const steps = ["a", "a", "a", "a", "b", "a", "a"].map((detail, i) => ({ t0: i, t1: i + 1, name: "click", detail }));
    expect(loops(madeOutline({ steps }))).toEqual([2, 3]);
    expect(loops(madeOutline({ steps: steps.map((step, i) => ({ ...step, lane: i % 2 })) }))).toEqual(
      [5, 6].slice(0, 1),
    );
  });

  it("put each sub-agent on a row of its own, and all beyond sixteen on one", () => {
    const steps = Array.from({ length: 60 }, (_, i) => ({ t0: i, t1: i + 1, lane: i % 30 }));
    const lanes = Array.from({ length: 30 }, (_, i) => `agent ${i}`);
    const tracks = makeTracks(madeOutline({ steps, lanes }));
    expect(tracks.steps).toHaveLength(16);
    expect(tracks.steps.at(-1)?.lane).toBe("15 more");
    expect(tracks.steps.reduce((sum, { track }) => sum + track.length, 0)).toBe(60);
  });

  it("put steps of one lane that last at the same time beside each other", () => {
    const steps = [
      [0, 10],
      [2, 8],
      [3, 9],
      [10, 12],
      [11, 13],
    ].map(([t0, t1]) => ({ t0: t0 ?? 0, t1: t1 ?? 0 }));
    expect(makeTracks(madeOutline({ steps })).steps.map(({ track }) => [...track.id])).toEqual([[0, 3], [1, 4], [2]]);
  });

  it("count every row of the run into the minimap", () => {
    const outline = madeRun(500, 9);
    const tracks = makeTracks(outline);
    const counts = density(tracks.pulse, shownOf(outline), 5);
    expect(counts.reduce((a, b) => a + b, 0)).toBe(outline.spans.length + outline.marks.length);
  });

  it("give round times to the ruler, apart from each other, none inside a folded gap", () => {
    for (const seed of [1, 2, 3, 4]) {
      const at = shownOf(madeRun(30 * seed, seed));
      const found = ticks(at);
      expect(found.length).toBeGreaterThan(1);
      expect(found.every(({ x }, i) => i === 0 || x - (found[i - 1]?.x ?? 0) >= 60)).toBe(true);
      for (let n = 0; n < at.axis.from.length; n++) {
        const [from, to] = [at.axis.from[n] ?? 0, at.axis.to[n] ?? 0];
        expect(found.filter(({ t }) => t > from && t < to)).toEqual([]);
      }
    }
  });

  it("cluster instants without losing any at the picture's edges", () => {
    const outline = madeOutline({
      marks: [0, 1, 500, 999, 1000].map((t) => ({ t: t * SECOND, mark: Mark.error })),
      span: [0, 1000 * SECOND],
    });
    const found = clusters(makeTracks(outline).signs.error, evenly(), 8);
    expect(found.map(({ count }) => count)).toEqual([2, 1, 2]);
  });
});

describe("what is under the pointer", () => {
  const outline = madeOutline({
    steps: [
      { t0: 0, t1: 10 * SECOND, name: "orders.read" },
      { t0: 10 * SECOND, t1: 40 * SECOND, status: Status.failed, name: "browser.click" },
    ],
    spans: [
      { t0: SECOND, t1: 9 * SECOND, track: "tool", name: "orders.read" },
      { t0: 12 * SECOND, t1: 39 * SECOND, track: "network", code: 404, name: "POST /refund", step: 1 },
    ],
    marks: [
      { t: 20 * SECOND, mark: Mark.permission, sub: PERMISSIONS.indexOf("denied"), name: "http.post", step: 1, seq: 7 },
    ],
    span: [0, 100 * SECOND],
  });
  const scene = sceneOf(outline);
  const laneOf = (kind: string): number => {
    const lane = scene.lanes.find((one) => one.kind === kind);
    return lane ? lane.y + lane.height / 2 : -1;
  };
  const pixels = (seconds: number): number => {
    const at = scene.projection;
    return seconds * SECOND * at.scale;
  };

  it("is found in its lane and said in words", () => {
    const step = hit(scene, pixels(15), laneOf("steps"));
    expect(step).toMatchObject({ what: "step", id: 1 });
    expect(words(step!, outline, []).title).toBe("step 1 · browser.click");
    expect(words(step!, outline, []).lines[0]).toContain("failed · 30 s");
    expect(words(hit(scene, pixels(30), laneOf("network"))!, outline, []).lines.join(" ")).toContain("404");
    const denied = hit(scene, pixels(20), laneOf("permissions"));
    expect(denied).toMatchObject({ what: "mark", word: "denied" });
    expect(words(denied!, outline, [])).toEqual({ title: "denied: http.post", lines: ["at 00:00:20.000", "step 1"] });
  });

  it("is a folded gap where there is one, and nothing where there is nothing", () => {
    const gap = hit(scene, (scene.breaks[0]?.x0 ?? 0) + 20, laneOf("tools"));
    expect(gap).toMatchObject({ what: "gap", from: 40 * SECOND, to: 100 * SECOND, open: false });
    expect(words(gap!, outline, []).title).toContain("1 m 00 s");
    expect(hit(scene, pixels(30), laneOf("tools"))).toBeNull();
    expect(hit(scene, pixels(15), -50)).toBeNull();
    expect(openGapAt(scene, 5)).toBeNull();
  });

  it("of a coalesced bar is the first entry that went wrong", () => {
    const spans = Array.from({ length: 50 }, (_, i) => ({
      t0: i * 1000,
      t1: i * 1000 + 10,
      track: "tool" as const,
      status: i >= 13 ? Status.failed : Status.ok,
    }));
    const outline = madeOutline({ spans, span: [0, 1000 * SECOND] });
    const dense = makeScene(makeTracks(outline), evenly(), NOTHING, []);
    const tools = dense.lanes.find((one) => one.kind === "tools")!;
    expect(hit(dense, 1, tools.y + 5)).toMatchObject({ what: "span", id: 13, count: 50, worst: 37 });
  });

  it("is what the playhead says of itself", () => {
    expect(spoken(outline, 1, 8_047 * SECOND)).toBe("step 1 of 1, failed, 2 hours 14 minutes 7 seconds");
    expect(spoken(madeOutline({}), 0, 0)).toBe("no steps, 0 seconds");
  });
});

describe("a study", () => {
  it("is read as far as it is one, and its curve is drawn with a point a pixel", () => {
    expect(readStudy(null)).toBeNull();
    expect(readStudy({ curve: [{ i: "0" }], certified: "no" })).toBeNull();
    const curve = Array.from({ length: 1500 }, (_, i) => ({ i, v: i % 2, lo: 0, hi: 1 }));
    const study = readStudy({
      curve,
      certified: [{ step: 1000, drop: 0.62, lo: 0.41, hi: 0.79 }],
      verdict: "decisive",
      rescued: null,
    });
    const outline = madeRun(1500, 2);
    const scene = makeScene(
      makeTracks(outline),
      shownOf(outline),
      { ...NOTHING, study, timeOf: (i) => outline.steps.t1(i) },
      [],
    );
    expect(scene.curve.length).toBeLessThanOrEqual(1002);
    expect(scene.drops).toHaveLength(1);
    expect(scene.lanes.at(-1)?.kind).toBe("chance");
  });
});
