/** The three columns and the bars between them: dragged, or moved with the arrows; kept for the next visit. */
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";

const KEY = "worldline.columns";
const LEAST = 240;
const MOST = 720;

/** Widths of the outer columns in CSS pixels. */
export const widths = signal<{ left: number; right: number }>(stored() ?? { left: 384, right: 428 });

export function Columns({ children }: { children: ComponentChildren }): JSX.Element {
  const { left, right } = widths.value;
  return (
    <main class="columns" id="main" style={{ "--left": `${left}px`, "--right": `${right}px` }}>
      {children}
    </main>
  );
}

export function Divider({ side, label }: { side: "left" | "right"; label: string }): JSX.Element {
  const from = useRef<{ x: number; width: number } | null>(null);
  const sign = side === "left" ? 1 : -1;
  const set = (width: number): void => {
    const room = typeof innerWidth === "number" ? innerWidth : 1440;
    const other = side === "left" ? widths.value.right : widths.value.left;
    const most = Math.max(LEAST, Math.min(MOST, room - other - 320));
    widths.value = { ...widths.value, [side]: Math.round(Math.min(Math.max(LEAST, width), most)) };
    keep();
  };
  return (
    <div
      class={`divider ${side}`}
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={widths.value[side]}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      onPointerDown={(event) => {
        from.current = { x: event.clientX, width: widths.value[side] };
        event.currentTarget.setPointerCapture(event.pointerId);
        event.preventDefault();
      }}
      onPointerMove={(event) => {
        if (from.current) set(from.current.width + sign * (event.clientX - from.current.x));
      }}
      onPointerUp={() => (from.current = null)}
      onPointerCancel={() => (from.current = null)}
      onDblClick={() => set(side === "left" ? 384 : 428)}
      onKeyDown={(event) => {
        const by = event.key === "ArrowLeft" ? -16 : event.key === "ArrowRight" ? 16 : 0;
        if (by === 0) return;
        set(widths.value[side] + sign * by);
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}

function stored(): { left: number; right: number } | null {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "null");
    if (typeof found !== "object" || found === null) return null;
    const { left, right } = found as { left?: unknown; right?: unknown };
    const fits = (n: unknown): n is number => typeof n === "number" && n >= LEAST && n <= MOST;
    return fits(left) && fits(right) ? { left, right } : null;
  } catch {
    // No storage for this page, or words of another version in it: the columns are as they come.
    return null;
  }
}

function keep(): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(widths.value));
  } catch {
    return;
  }
}
