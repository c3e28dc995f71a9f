// @vitest-environment happy-dom
/** The lanes are drawn once; moving the playhead draws nothing but the playhead. Counted on the canvas itself. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Outline } from "../../src/core/types";
import { Timeline } from "../../src/panes/timeline";
import {
  isWhole,
  opened,
  plotWidth,
  shown,
  showWhole,
  toggleNearestGap,
  zoomBy,
} from "../../src/panes/timeline/camera";
import { page, playhead, run, step, version, view, type Open } from "../../src/state/app";
import { goTo, seek } from "../../src/state/moves";
import { madeRun } from "./made-outline";

let drawn: Map<HTMLCanvasElement, number>;
let root: HTMLDivElement;

/** happy-dom has no drawing: a pen that counts what it is told stands for it. */
function countingPen(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const call = (): unknown => {
    drawn.set(canvas, (drawn.get(canvas) ?? 0) + 1);
    return { width: 10 };
  };
  return new Proxy({}, { get: () => call, set: () => true }) as CanvasRenderingContext2D;
}

function openOf(outline: Outline): Open {
  const recording = { kind: "bundle", label: "made", manifest: null, media: async () => [], header: { data: {} } };
  return {
    recording: recording as unknown as Open["recording"],
    outline,
    verdict: {} as Open["verdict"],
    integrity: {} as Open["integrity"],
    annotations: [],
    server: null,
  };
}

const frames = async (): Promise<void> => {
  await act(async () => {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  });
};

beforeEach(async () => {
  drawn = new Map();
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockImplementation(function (this: HTMLCanvasElement) {
    return countingPen(this);
  } as never);
  root = document.createElement("div");
  document.body.append(root);
  run.value = openOf(madeRun(120, 5));
  page.value = "run";
  plotWidth.value = 1000;
  await act(() => render(<Timeline />, root));
  await frames();
});

afterEach(() => {
  render(null, root);
  root.remove();
  run.value = null;
  vi.restoreAllMocks();
});

const total = (): number => [...drawn.values()].reduce((a, b) => a + b, 0);

it("draws no lane while the playhead moves, and draws them when the view does", async () => {
  expect(total()).toBeGreaterThan(100);
  const before = total();
  const end = run.value?.outline.span[1] ?? 0;
  for (let i = 0; i < 40; i++) {
    seek((end * i) / 40);
    if (i % 10 === 0) await frames();
  }
  await frames();
  expect(total()).toBe(before);
  await act(() => zoomBy(0.5, 300));
  await frames();
  expect(total()).toBeGreaterThan(before);
});

it("says where the playhead is, and moves the element alone", async () => {
  const head = root.querySelector<HTMLElement>("[role=slider]")!;
  goTo(118);
  await frames();
  expect(head.getAttribute("aria-valuenow")).toBe("118");
  expect(head.getAttribute("aria-valuetext")).toMatch(/^step 118 of 119, failed, 11 hours/);
  const at = head.style.transform;
  seek(0);
  await frames();
  expect(head.getAttribute("aria-valuetext")).toMatch(/^step 0 of 119, /);
  expect(head.style.transform).not.toBe(at);
  expect(step.value).toBe(0);
});

it("keeps all of a run in view while it grows, and a part where one was chosen", async () => {
  const outline = run.value!.outline;
  const grow = async (by: number): Promise<void> => {
    outline.span = [0, outline.span[1] + by];
    outline.version += 1;
    await act(() => {
      version.value += 1;
    });
  };
  await grow(1e9);
  expect(view.value[1]).toBe(outline.span[1]);
  playhead.value = outline.span[1];
  await act(() => zoomBy(0.25, 500));
  const chosen = shown.value;
  expect(isWhole.value).toBe(false);
  await grow(1e9);
  expect(shown.value).toEqual(chosen);
  await act(showWhole);
  expect(view.value).toEqual([0, outline.span[1]]);
});

it("offers folded gaps to the keyboard and opens them", async () => {
  const gap = root.querySelector<HTMLButtonElement>("button.tl-gap")!;
  expect(gap.getAttribute("aria-label")).toBe("11 h 00 m idle, open");
  await act(() => gap.click());
  expect(opened.value.size).toBe(1);
  await act(toggleNearestGap);
  expect(opened.value.size).toBe(0);
});
