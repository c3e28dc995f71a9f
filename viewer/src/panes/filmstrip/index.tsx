/**
 * Small pictures of what the timeline shows: a map to look at, point at and jump by. Only what is in sight is ever
 * read.
 */
import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { run, step, version, view, type Open } from "../../state/app";
import { goTo } from "../../state/moves";
import "../../style/filmstrip.css";
import { part } from "../part";
import { sourcesOf } from "../stage/sources";
import { cells, room, type Cell } from "./cells";
import { stepNumber } from "../../state/numbers";

const Thumb = part(async () => (await import("./thumb")).Thumb);
const Preview = part(async () => (await import("./preview")).Preview);

/** Only a hand that rests on a picture wants it large. */
const HOVER_MS = 180;

/** Nothing where the run has no screenshots: an empty strip would be 70 pixels of nothing. */
export function Filmstrip(): JSX.Element | null {
  const open = run.value;
  void version.value;
  if (open === null || !sourcesOf(open.recording, open.outline).has("screenshot")) return null;
  return <Strip open={open} />;
}

function Strip({ open }: { open: Open }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const [focus, setFocus] = useState(-1);
  const [large, setLarge] = useState<{ cell: Cell; left: number } | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = (): void => void (width.value = element.clientWidth);
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => () => clearTimeout(timer.current), []);
  const all = useComputed(() => {
    const outline = run.value?.outline;
    void version.value;
    return !outline || width.value === 0 ? [] : cells(outline, view.value, room(width.value));
  });
  // The strip is drawn anew when the playhead comes into another cell, not with every step.
  const on = useComputed(() => all.value.findIndex(({ from, to }) => step.value >= from && step.value < to));
  const shown = all.value;
  const here = on.value;
  const stop = focus >= 0 && focus < shown.length ? focus : Math.max(0, here);

  const show = (cell: Cell, element: HTMLElement, wait: number): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setLarge({ cell, left: element.offsetLeft + element.offsetWidth / 2 }), wait);
  };
  const hide = (): void => {
    clearTimeout(timer.current);
    setLarge(null);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const goals: Record<string, number> = {
      ArrowRight: stop + 1,
      ArrowLeft: stop - 1,
      Home: 0,
      End: shown.length - 1,
    };
    const goal = goals[event.key];
    if (event.key === "Escape" && large !== null) hide();
    else if (goal !== undefined) {
      const to = Math.min(Math.max(0, goal), shown.length - 1);
      setFocus(to);
      box.current?.querySelectorAll<HTMLElement>("button")[to]?.focus();
    } else if (event.key !== "Enter" && event.key !== " ") return;
    // Enter and Space press the cell itself; nobody else may take them for the playhead's keys.
    if (goal !== undefined || event.key === "Escape") event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="filmstrip" role="toolbar" aria-label="Filmstrip" ref={box} onKeyDown={onKeyDown} onMouseLeave={hide}>
      {shown.map((cell, i) => (
        <button
          key={i}
          type="button"
          class={`film-cell${i === here ? " on" : ""}`}
          tabIndex={i === stop ? 0 : -1}
          aria-current={i === here ? "step" : undefined}
          aria-label={labelOf(cell)}
          onClick={() => goTo(cell.step)}
          onFocus={(event) => {
            setFocus(i);
            if (event.currentTarget.matches(":focus-visible")) show(cell, event.currentTarget, 0);
          }}
          onBlur={hide}
          onMouseEnter={(event) => show(cell, event.currentTarget, HOVER_MS)}
        >
          <Thumb open={open} seq={cell.screenshot} />
          {cell.failed ? (
            <i class="failed" aria-hidden="true">
              ✕
            </i>
          ) : null}
          {cell.denied ? (
            <i class={cell.failed ? "denied other" : "denied"} aria-hidden="true">
              −
            </i>
          ) : null}
          <span aria-hidden="true">{stepNumber(cell.step)}</span>
        </button>
      ))}
      {large === null || large.cell.screenshot < 0 ? null : (
        <Preview open={open} cell={large.cell} left={large.left} width={width.value} />
      )}
    </div>
  );
}

function labelOf({ step: at, from, to, failed, denied, screenshot }: Cell): string {
  const range =
    to - from > 1
      ? `step ${stepNumber(at)}, for steps ${stepNumber(from)} to ${stepNumber(to - 1)}`
      : `step ${stepNumber(at)}`;
  return [range, failed ? "failed" : "", denied ? "denied" : "", screenshot < 0 ? "no picture" : ""]
    .filter((part) => part !== "")
    .join(", ");
}
