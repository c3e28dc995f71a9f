/**
 * What pointer and wheel do on the timeline: scrub, zoom, pan, click a thing, and move the window of the minimap.
 *
 * Moves of the pointer are gathered and acted on once a frame.
 */
import type { Projection } from "../../core/axis";
import { toT, toX } from "../../core/axis";
import { rested } from "../../state/bodies";
import { seek } from "../../state/moves";
import { trail, trailNoMore } from "../../state/trailing";
import { isWhole, panPixels, projection, show, timeAt, zoomBy } from "./camera";

/** So many pixels make a drag of a press. */
const DRAG_PX = 4;
/** The window's edges can be taken this far from them. */
const EDGE_PX = 7;

/** Acts at most once a frame, with the newest value. `now` acts on what waits for the frame, `stop` drops it. */
export function eachFrame<T>(act: (value: T) => void): { (value: T): void; now: () => void; stop: () => void } {
  let frame = 0;
  let newest: { value: T } | null = null;
  const stop = (): void => {
    cancelAnimationFrame(frame);
    frame = 0;
    newest = null;
  };
  const now = (): void => {
    const due = newest;
    stop();
    if (due) act(due.value);
  };
  const plan = (value: T): void => {
    newest = { value };
    frame ||= requestAnimationFrame(now);
  };
  return Object.assign(plan, { now, stop });
}

/** Makes the lanes' area take the pointer. `click` gets where a press without a drag was. Returns the end of it. */
export function onPlot(
  area: HTMLElement,
  click: (x: number, y: number) => void,
  hover: (at: { x: number; y: number } | null) => void,
): () => void {
  let pressed: { id: number; x: number; y: number; drags: boolean; pans: boolean; box: DOMRect } | null = null;
  // The box is measured when it is pressed: asking in the middle of a drag would lay out the page at every move.
  const place = (event: PointerEvent | WheelEvent | MouseEvent): { x: number; y: number } => {
    const box = pressed?.box ?? area.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const scrub = eachFrame((x: number) => seek(timeAt(x)));
  const point = eachFrame(hover);
  const wheel = eachFrame(({ x, zoom, pan }: { x: number; zoom: number; pan: number }) => {
    sum = { zoom: 0, pan: 0 };
    if (zoom !== 0) zoomBy(Math.exp(zoom * 0.0022), x);
    if (pan !== 0) panPixels(pan);
  });
  let sum = { zoom: 0, pan: 0 };

  const down = (event: PointerEvent): void => {
    if (event.button !== 0 && event.button !== 1) return;
    const box = area.getBoundingClientRect();
    const x = event.clientX - box.left,
      y = event.clientY - box.top;
    pressed = { id: event.pointerId, x, y, drags: false, pans: event.button === 1 || event.altKey, box };
    area.setPointerCapture(event.pointerId);
    if (event.button === 1) event.preventDefault();
  };
  const move = (event: PointerEvent): void => {
    const { x, y } = place(event);
    if (pressed === null || pressed.id !== event.pointerId) return point({ x, y });
    if (!pressed.drags && Math.abs(x - pressed.x) < DRAG_PX) return;
    if (!pressed.drags) {
      hover(null);
      if (!pressed.pans) trail();
    }
    pressed.drags = true;
    if (pressed.pans) {
      panPixels(pressed.x - x);
      pressed.x = x;
    } else {
      scrub(x);
    }
  };
  const up = (event: PointerEvent): void => {
    if (pressed === null || pressed.id !== event.pointerId) return;
    const { drags, pans } = pressed;
    const { x, y } = place(event);
    pressed = null;
    if (pans) return;
    if (drags) scrub.now();
    else click(x, y);
    trailNoMore();
    rested();
  };
  const cancel = (): void => {
    pressed = null;
    trailNoMore();
  };
  const leave = (): void => point(null);
  const turn = (event: WheelEvent): void => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 300 : 1;
    const sideways = event.shiftKey ? event.deltaX + event.deltaY : event.deltaX;
    sum = {
      zoom: sum.zoom + (event.shiftKey ? 0 : event.deltaY * unit),
      pan: sum.pan + sideways * unit,
    };
    wheel({ x: place(event).x, ...sum });
  };
  area.addEventListener("pointerdown", down);
  area.addEventListener("pointermove", move);
  area.addEventListener("pointerup", up);
  area.addEventListener("pointercancel", cancel);
  area.addEventListener("pointerleave", leave);
  area.addEventListener("wheel", turn, { passive: false });
  return () => {
    area.removeEventListener("pointerdown", down);
    area.removeEventListener("pointermove", move);
    area.removeEventListener("pointerup", up);
    area.removeEventListener("pointercancel", cancel);
    area.removeEventListener("pointerleave", leave);
    area.removeEventListener("wheel", turn);
    for (const each of [scrub, point, wheel]) each.stop();
    trailNoMore();
  };
}

/** Makes the minimap take the pointer: its window is moved, its edges are drawn, elsewhere a new window begins. */
export function onMap(area: HTMLElement, whole: () => Projection | null): () => void {
  let held: { id: number; from: number; grip: "new" | "move" | "left" | "right"; x0: number; x1: number } | null = null;
  const xOf = (event: PointerEvent): number => event.clientX - area.getBoundingClientRect().left;
  const bounds = (map: Projection): [number, number] => {
    const now = projection.peek();
    return now === null ? [0, 0] : [toX(map, now.t0), toX(map, now.t1)];
  };
  const apply = (x: number): void => {
    const map = whole();
    if (map === null || held === null) return;
    const by = x - held.from;
    const width = held.x1 - held.x0;
    if (held.grip === "move") {
      const left = Math.min(Math.max(held.x0 + by, 0), map.width - width);
      show(toT(map, left), toT(map, left + width));
    } else if (held.grip === "left") {
      show(toT(map, Math.min(held.x0 + by, held.x1 - 2)), toT(map, held.x1));
    } else if (held.grip === "right") {
      show(toT(map, held.x0), toT(map, Math.max(held.x1 + by, held.x0 + 2)));
    } else if (Math.abs(by) >= DRAG_PX) {
      show(toT(map, Math.min(held.from, x)), toT(map, Math.max(held.from, x)));
    }
  };
  const act = eachFrame(apply);
  const down = (event: PointerEvent): void => {
    const map = whole();
    if (event.button !== 0 || map === null) return;
    const x = xOf(event);
    const [x0, x1] = bounds(map);
    const grip = isWhole.peek()
      ? "new"
      : Math.abs(x - x0) <= EDGE_PX
        ? "left"
        : Math.abs(x - x1) <= EDGE_PX
          ? "right"
          : x > x0 && x < x1
            ? "move"
            : "new";
    held = { id: event.pointerId, from: x, grip, x0, x1 };
    area.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent): void => {
    if (held?.id === event.pointerId) act(xOf(event));
  };
  const up = (event: PointerEvent): void => {
    if (held?.id !== event.pointerId) return;
    const map = whole();
    const x = xOf(event);
    // A press without a drag outside of the window brings the window there.
    if (map !== null && held.grip === "new" && Math.abs(x - held.from) < DRAG_PX) {
      if (isWhole.peek()) {
        seek(toT(map, x));
      } else {
        const width = held.x1 - held.x0;
        const left = Math.min(Math.max(x - width / 2, 0), map.width - width);
        show(toT(map, left), toT(map, left + width));
      }
    } else {
      apply(x);
    }
    act.stop();
    held = null;
  };
  area.addEventListener("pointerdown", down);
  area.addEventListener("pointermove", move);
  area.addEventListener("pointerup", up);
  area.addEventListener("pointercancel", up);
  return () => {
    area.removeEventListener("pointerdown", down);
    area.removeEventListener("pointermove", move);
    area.removeEventListener("pointerup", up);
    area.removeEventListener("pointercancel", up);
    act.stop();
  };
}
