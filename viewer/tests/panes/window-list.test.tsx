/** A list of a million rows is a few nodes, and every row can be reached. */
// @vitest-environment happy-dom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { look, TALLEST, WindowList, type WindowListProps } from "../../src/panes/steps/window-list";

let host: HTMLElement;

beforeEach(() => {
  host = document.createElement("div");
  document.body.append(host);
});

afterEach(() => {
  act(() => render(null, host));
  host.remove();
  vi.useRealTimers();
});

function show(props: Partial<WindowListProps> & { length: number }): HTMLElement {
  act(() => {
    render(
      <WindowList
        label="Rows"
        rowHeight={55}
        active={-1}
        onPick={() => undefined}
        row={(at) => <span>row {at}</span>}
        {...props}
      />,
      host,
    );
  });
  const box = host.querySelector<HTMLElement>("[role=listbox]");
  if (box === null) throw new Error("no list");
  return box;
}

const rows = (): HTMLElement[] => [...host.querySelectorAll<HTMLElement>("[role=option]")];
const places = (): number[] => rows().map((row) => Number(row.getAttribute("aria-posinset")) - 1);
const scroll = (box: HTMLElement, to: number): void => {
  act(() => {
    box.scrollTop = to;
    box.dispatchEvent(new Event("scroll"));
  });
};

describe("rows that keys do not go to", () => {
  it("are drawn and pressed; the first that keys reach is the one behind them", () => {
    const picked: number[] = [];
    const press = (box: HTMLElement, key: string): void => {
      act(() => void box.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })));
    };
    const box = show({ length: 9, first: 3, active: 3, onPick: (at) => picked.push(at) });
    expect(places().slice(0, 4)).toEqual([0, 1, 2, 3]);
    for (const key of ["Home", "ArrowUp", "PageUp", "ArrowDown"]) press(box, key);
    expect(picked.splice(0)).toEqual([3, 3, 3, 4]);
    act(() => void rows()[1]?.click());
    expect(picked).toEqual([1]);
  });
});

describe("a million rows", () => {
  const length = 1_000_000;

  it("stand as a few nodes in a box that no browser cuts", () => {
    const box = show({ length });
    expect(host.querySelectorAll("*").length).toBeLessThan(80);
    expect(parseInt(host.querySelector<HTMLElement>(".tall")?.style.height ?? "")).toBe(TALLEST);
    for (let part = 0; part <= 20; part++) {
      scroll(box, ((TALLEST - 600) * part) / 20);
      expect(host.querySelectorAll("*").length).toBeLessThan(80);
      expect(places().length).toBeGreaterThan(10);
    }
  });

  it("are reached from end to end by the scrollbar, each part of it at its part of the list", () => {
    const box = show({ length });
    scroll(box, TALLEST - 600);
    expect(places()).toContain(length - 1);
    scroll(box, (TALLEST - 600) / 2);
    expect(Math.abs((places()[0] ?? 0) - length / 2)).toBeLessThan(40);
    scroll(box, 0);
    expect(places()).toContain(0);
  });

  it("move by the pixels that were scrolled, though the box is smaller than they are", () => {
    const box = show({ length });
    scroll(box, (TALLEST - 600) / 2);
    const before = places()[0] ?? 0;
    for (let n = 1; n <= 10; n++) scroll(box, (TALLEST - 600) / 2 + n * 55);
    expect((places()[0] ?? 0) - before).toBe(10);
  });

  it("put the scrollbar right when the scrolling rests, without moving what is seen", () => {
    vi.useFakeTimers();
    const box = show({ length });
    scroll(box, 1_000_000);
    for (let n = 1; n <= 50; n++) scroll(box, 1_000_000 + n * 500);
    const before = places();
    act(() => void vi.advanceTimersByTime(1000));
    expect(places()).toEqual(before);
    const part = (before[5] ?? 0) / length;
    expect(Math.abs(box.scrollTop / TALLEST - part)).toBeLessThan(0.001);
  });

  it("bring the selected row into sight, wherever it is", () => {
    for (const active of [0, 999_999, 500_000, 500_001, 3, 123_456]) {
      const box = show({ length, active });
      const row = rows().find((one) => one.getAttribute("aria-selected") === "true");
      expect(row?.textContent).toBe(`row ${active}`);
      expect(box.getAttribute("aria-activedescendant")).toBe(row?.id);
      const top = parseFloat(row?.style.top ?? "") - box.scrollTop;
      expect(top).toBeGreaterThanOrEqual(-1);
      expect(top + 55).toBeLessThanOrEqual(601);
    }
  });
});

describe("the keyboard", () => {
  it("walks, and stops at the ends", () => {
    const picked: number[] = [];
    const opened: number[] = [];
    const box = show({ length: 100, active: 50, onPick: (at) => picked.push(at), onOpen: (at) => opened.push(at) });
    for (const key of ["ArrowDown", "ArrowUp", "Home", "End", "PageDown", "PageUp", "Enter"]) {
      act(() => void box.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));
    }
    expect(picked).toEqual([51, 49, 0, 99, 59, 41]);
    expect(opened).toEqual([50]);
    const last = show({ length: 100, active: 99, onPick: (at) => picked.push(at) });
    act(() => void last.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true })));
    expect(picked.at(-1)).toBe(99);
  });
});

describe("who scrolled away by hand", () => {
  it("is left alone while the selection moves by itself, and can go back", () => {
    const box = show({ length: 1000, active: 5, auto: true });
    scroll(box, 30_000);
    const seen = places();
    show({ length: 1000, active: 6, auto: true });
    expect(places()).toEqual(seen);
    const back = host.querySelector<HTMLElement>("button.back");
    expect(back?.textContent).toContain("playhead");
    act(() => back?.click());
    expect(places()).toContain(6);
    expect(host.querySelector("button.back")).toBeNull();
  });

  it("is taken along when a person moves the selection", () => {
    const box = show({ length: 1000, active: 5 });
    scroll(box, 30_000);
    show({ length: 1000, active: 6 });
    expect(places()).toContain(6);
  });
});

describe("what is drawn", () => {
  it("is what is in sight and a margin, never outside of the list", () => {
    for (const [top, height, rowHeight, length] of [
      [0, 600, 55, 3],
      [0, 600, 55, 0],
      [54_000, 600, 55, 1000],
      [1e9, 600, 20, 10],
    ] as const) {
      const { from, to } = look(top, 0, height, rowHeight, length);
      expect(from).toBeGreaterThanOrEqual(0);
      expect(to).toBeGreaterThanOrEqual(from);
      expect(to - from).toBeLessThanOrEqual(height / rowHeight + 12);
      if (top < length * rowHeight) expect(to).toBeLessThanOrEqual(length);
    }
  });
});
