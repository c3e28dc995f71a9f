/** Pictures: judged by their first bytes, placed by their boxes, kept by their weight, compared point by point. */
import { describe, expect, it } from "vitest";
import { ByteCache } from "../../src/panes/stage/byte-cache";
import { difference } from "../../src/panes/stage/screen/difference";
import { dimensions } from "../../src/panes/stage/screen/dimensions";
import { pictureScale, readWindow, share, target } from "../../src/panes/stage/screen/geometry";
import { readTree } from "../../src/panes/stage/tree/tree";
import { videoSeconds } from "../../src/panes/stage/video";

const of = (...parts: (number[] | string)[]): Uint8Array =>
  new Uint8Array(
    parts.flatMap((part) => (typeof part === "string" ? [...part].map((character) => character.charCodeAt(0)) : part)),
  );

describe("the size of a picture", () => {
  it("stands in its first bytes", () => {
    const png = of([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13], "IHDR", [0, 0, 5, 0, 0, 0, 3, 32]);
    expect(dimensions(png)).toEqual({ type: "image/png", width: 1280, height: 800 });
    const jpeg = of(
      [0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc4, 0, 3, 9, 0xff, 0xff, 0xc2, 0, 17, 8, 3, 32, 5, 0],
      new Array(16).fill(0),
    );
    expect(dimensions(jpeg)).toEqual({ type: "image/jpeg", width: 1280, height: 800 });
    const webp = (chunk: string, body: number[]): Uint8Array =>
      of("RIFF", [0, 0, 0, 0], "WEBP", chunk, [0, 0, 0, 0], body, new Array(16).fill(0));
    expect(dimensions(webp("VP8X", [0, 0, 0, 0, 0xff, 4, 0, 0x1f, 3, 0]))).toEqual({
      type: "image/webp",
      width: 1280,
      height: 800,
    });
    expect(dimensions(webp("VP8 ", [0, 0, 0, 0x9d, 1, 0x2a, 0, 5, 0x20, 3]))).toEqual({
      type: "image/webp",
      width: 1280,
      height: 800,
    });
    expect(dimensions(webp("VP8L", [0x2f, 0xff, 0xc4, 0xc7, 0]))).toEqual({
      type: "image/webp",
      width: 1280,
      height: 800,
    });
    expect(dimensions(of("GIF89a", [0, 5, 0x20, 3]))).toEqual({ type: "image/gif", width: 1280, height: 800 });
  });

  it("is unknown for everything else, and for what breaks off", () => {
    for (const bytes of [
      of(""),
      of("<svg>"),
      of([0xff, 0xd8]),
      of([0xff, 0xd8, 0xff, 0xe0, 0, 4]),
      of("RIFF1234WEBP"),
      of([0xff, 0xd8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ]) {
      expect(dimensions(bytes)).toBeNull();
    }
  });
});

describe("places on a picture", () => {
  const facts = (value: unknown): ReturnType<typeof readWindow> => readWindow(value);

  it("scale as the window says, else by its width, by the tree's root, or not at all", () => {
    const tree = readTree({ role: "document", box: [0, 0, 640, 400] });
    expect(pictureScale(1280, facts({ scale: 1.5, width: 320 }), tree)).toBe(1.5);
    expect(pictureScale(1280, facts({ width: 640 }), tree)).toBe(2);
    expect(pictureScale(1280, facts({ width: -5, scale: "2" }), tree)).toBe(2);
    expect(pictureScale(1280, null, null)).toBe(1);
  });

  it("are parts of it, cut at its edges, or nowhere", () => {
    expect(share([10, 20, 30, 40], 2, 200, 200)).toEqual({ left: 10, top: 20, width: 30, height: 40 });
    expect(share([-50, -50, 100, 100], 1, 200, 100)).toEqual({ left: 0, top: 0, width: 25, height: 50 });
    expect(share([500, 0, 10, 10], 1, 200, 100)).toBeNull();
  });

  it("show the element's box first, the action's own second, the point last", () => {
    const acted = {
      verb: "click",
      ref: null,
      role: null,
      name: null,
      selector: null,
      box: [0, 0, 10, 10] as [number, number, number, number],
      point: [50, 50] as [number, number],
    };
    expect(target(acted, [20, 20, 10, 10], 1, 100, 100)).toEqual({ box: { left: 20, top: 20, width: 10, height: 10 } });
    expect(target(acted, null, 1, 100, 100)).toEqual({ box: { left: 0, top: 0, width: 10, height: 10 } });
    expect(target({ ...acted, box: null }, [900, 900, 10, 10], 1, 100, 100)).toEqual({ point: { left: 50, top: 50 } });
    expect(target({ ...acted, box: null, point: [500, 5] }, null, 1, 100, 100)).toBeNull();
  });
});

describe("the cache", () => {
  it("never weighs more than its bound, but for one entry that is heavier alone", () => {
    const dropped: string[] = [];
    const cache = new ByteCache<string>(100, (value) => dropped.push(value));
    for (let i = 0; i < 50; i += 1) {
      cache.put(String(i), `v${i}`, 30);
      expect(cache.bytes).toBeLessThanOrEqual(100);
    }
    expect(cache.size).toBe(3);
    expect(dropped).toHaveLength(47);
    cache.put("huge", "huge", 1_000);
    expect([cache.size, cache.bytes]).toEqual([1, 1_000]);
    cache.put("small", "small", 1);
    expect([cache.size, cache.bytes, dropped.at(-1)]).toEqual([1, 1, "huge"]);
  });

  it("drops what was used longest ago, and what is put anew", () => {
    const dropped: string[] = [];
    const cache = new ByteCache<string>(3, (value) => dropped.push(value));
    for (const key of ["a", "b", "c"]) cache.put(key, key, 1);
    expect(cache.get("a")).toBe("a");
    cache.put("d", "d", 1);
    expect(cache.has("b")).toBe(false);
    cache.put("a", "a2", 1);
    expect([cache.get("a"), cache.bytes]).toEqual(["a2", 3]);
    cache.clear();
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
    expect(dropped).toEqual(["b", "a", "c", "d", "a2"]);
  });
});

it("the difference counts the points that differ by more than scaling makes", () => {
  const before = new Uint8ClampedArray([0, 0, 0, 255, 100, 100, 100, 255, 9, 9, 9, 255]);
  const after = new Uint8ClampedArray([0, 0, 0, 255, 200, 100, 100, 255, 12, 9, 9, 255]);
  const found = difference(before, after, [255, 0, 0]);
  expect([found.differing, found.total]).toEqual([1, 3]);
  expect(found.pixels[4]).toBeGreaterThan(found.pixels[5]!);
});

it("a video follows the run between its key frames and waits at the next one", () => {
  const frames = [
    { t: 1e9, seq: 1, ms: 0 },
    { t: 2e9, seq: 5, ms: 1_000 },
    { t: 60e9, seq: 9, ms: 1_500 },
  ];
  expect([0, 1e9, 1.5e9, 2e9, 2.2e9, 30e9, 60e9, 61e9].map((t) => Number(videoSeconds(frames, t).toFixed(3)))).toEqual([
    0, 0, 0.5, 1, 1.2, 1.499, 1.5, 2.5,
  ]);
  expect(videoSeconds([], 5)).toBeCloseTo(0);
});
