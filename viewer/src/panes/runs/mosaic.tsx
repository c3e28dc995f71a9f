/**
 * All listed runs at a glance, one small sign each, in the order of the list: a thousand fit on a screen.
 *
 * For eyes and pointer alone; the list below says the same in words.
 */
import { effect, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { lookOf } from "../forks/outcome";
import { cross } from "../timeline/glyphs";
import { surface } from "../timeline/surface";
import { type RunEntry, isLive, shortName } from "./entries";
import { cursor, listed, openAt, place } from "./state";

const CELL = 12;
/** More runs than this get smaller signs, and more than fit are not drawn: the list has them. */
const MOST = 6000;

export function Mosaic(): JSX.Element | null {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const head = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const over = useSignal<RunEntry | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => (width.value = element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (!canvas.current) return undefined;
    return surface(canvas.current, () => {
      const { cell, columns, shown, height } = grid(listed.value.length, width.value);
      const cells = listed.value.slice(0, shown);
      if (width.value === 0) return null;
      return {
        width: width.value,
        height,
        paint: (pen, palette, ratio) => {
          pen.setTransform(ratio, 0, 0, ratio, 0, 0);
          pen.clearRect(0, 0, width.peek(), height);
          const colours: Record<string, string> = {
            "is-ok": palette.ok,
            "is-failed": palette.fail,
            "is-denied": palette.deny,
            "is-running": palette.accent,
            "is-note": palette.warn,
            "is-warn": palette.warn,
          };
          cells.forEach((run, i) => {
            const x = (i % columns) * cell + cell / 2,
              y = Math.floor(i / columns) * cell + cell / 2,
              r = cell / 2 - 1.5;
            const look = lookOf(run.outcome, isLive(run));
            pen.fillStyle = pen.strokeStyle = colours[look.class] ?? palette.muted;
            pen.lineWidth = 1.7;
            if (look.class === "is-failed") {
              pen.globalAlpha = 0.22;
              pen.fillRect(x - r, y - r, r * 2, r * 2);
              pen.globalAlpha = 1;
              cross(pen, x, y, r * 0.6);
            } else if (look.class === "is-ok") {
              pen.globalAlpha = palette.forced ? 1 : 0.55;
              pen.fillRect(x - r, y - r, r * 2, r * 2);
              pen.globalAlpha = 1;
            } else {
              pen.strokeRect(x - r + 0.8, y - r + 0.8, r * 2 - 1.6, r * 2 - 1.6);
            }
            if ((run.permissions["denied"] ?? 0) > 0) {
              pen.fillStyle = palette.deny;
              pen.beginPath();
              pen.arc(x + r - 1.5, y - r + 1.5, 2.4, 0, Math.PI * 2);
              pen.fill();
            }
          });
        },
      };
    });
  }, []);
  useEffect(
    () =>
      effect(() => {
        const { cell, columns, shown } = grid(listed.value.length, width.value);
        const at = place.value,
          element = head.current;
        if (!element) return;
        element.hidden = at < 0 || at >= shown;
        element.style.transform = `translate(${(at % columns) * cell}px, ${Math.floor(at / columns) * cell}px)`;
        element.style.width = element.style.height = `${cell}px`;
      }),
    [],
  );
  const at = (event: MouseEvent): RunEntry | null => {
    const rect = box.current?.getBoundingClientRect();
    if (!rect) return null;
    const { cell, columns, shown } = grid(listed.value.length, width.value);
    const column = Math.floor((event.clientX - rect.left) / cell),
      row = Math.floor((event.clientY - rect.top) / cell);
    const n = row * columns + column;
    return column < columns && n < shown ? (listed.value[n] ?? null) : null;
  };
  const hovered = over.value;
  return (
    <div class="mosaic" aria-hidden="true">
      <div
        class="cells"
        ref={box}
        onMouseMove={(event) => (over.value = at(event))}
        onMouseLeave={() => (over.value = null)}
        onClick={(event) => (cursor.value = at(event)?.run ?? cursor.value)}
        onDblClick={(event) => {
          const run = at(event);
          if (run) openAt(run);
        }}
      >
        <canvas ref={canvas} />
        <div class="cell-head" ref={head} hidden />
      </div>
      <p class="muted clip">
        {hovered
          ? `${shortName(hovered.run)} · ${lookOf(hovered.outcome, isLive(hovered)).word}${hovered.error === "" ? "" : ` · ${hovered.error}`}${hovered.task === "" ? "" : ` · ${hovered.task}`}`
          : "one sign a run, in the order of the list"}
      </p>
    </div>
  );
}

function grid(count: number, width: number): { cell: number; columns: number; shown: number; height: number } {
  const cell = count > 3000 ? 8 : CELL;
  const columns = Math.max(1, Math.floor(width / cell));
  const shown = Math.min(count, MOST);
  return { cell, columns, shown, height: Math.max(1, Math.ceil(shown / columns)) * cell };
}
