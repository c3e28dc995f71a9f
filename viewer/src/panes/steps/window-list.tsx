/**
 * The list of all long lists: rows of one height, of which only those in sight stand in the document.
 *
 * Browsers stop at some height of a scrolled box (Chromium at 33.5 million pixels, Firefox at 17.8). A longer list gets
 * a box of `TALLEST` and two scales: small scrolls move by their pixels, a far one (the scrollbar) by its part of the
 * whole, and when the scrolling rests the scrollbar is put where the part is right again.
 */
import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../icons";

export const TALLEST = 15_000_000;
/** Rows that are drawn above and below what is seen; behind a jump only one, and the others when it rests. */
const MARGIN = 5;
const JUMP_MARGIN = 1;
const REST_MS = 160;
/** The height that is assumed until the box was measured. */
const UNMEASURED = 600;

export interface WindowListProps {
  label: string;
  length: number;
  rowHeight: number;
  row: (place: number) => ComponentChildren;
  /** The first row that keys go to; those before it are for who presses them. */
  first?: number;
  /** Place of the selected row; -1 for none. It is scrolled into sight when it changes. */
  active: number;
  onPick: (place: number) => void;
  /** Enter, or a second click. */
  onOpen?: (place: number) => void;
  /** A name for the row that is no position, so that its node is kept when the list changes before it. */
  rowKey?: (place: number) => string | number;
  rowClass?: (place: number) => string;
  /** The selection moves by itself (playback, live): then a user who scrolled away is left alone. */
  auto?: boolean;
  onScrolled?: () => void;
  /** Lines of a text: nothing is selected, and they are read as text. */
  plain?: boolean;
  class?: string;
  empty?: ComponentChildren;
}

interface Sight {
  from: number;
  to: number;
  /** Pixels between a row's own place and its place in the box. */
  base: number;
}

export function WindowList(props: WindowListProps): JSX.Element {
  const { length, rowHeight, active, auto = false, plain = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  /** Where we are, in pixels of the whole list: `top` of what is seen. `expected` is a scroll that we made ourselves. */
  const now = useRef({ top: 0, base: 0, scrolled: 0, expected: NaN, held: false });
  const [height, setHeight] = useState(UNMEASURED);
  const total = length * rowHeight;
  const tall = Math.min(total, TALLEST);
  const [sight, setSight] = useState<Sight>(() => look(0, 0, UNMEASURED, rowHeight, length));
  const [astray, setAstray] = useState(false);

  const draw = useCallback(
    (margin: number) => {
      const { top, base } = now.current;
      const next = look(top, base, height, rowHeight, length, margin);
      setSight((old) => (old.from === next.from && old.to === next.to && old.base === next.base ? old : next));
    },
    [height, rowHeight, length],
  );

  /** Puts `top` pixels of the whole list at the upper edge. */
  const place = useCallback(
    (top: number, margin = MARGIN) => {
      const element = box.current;
      if (element === null) return;
      const most = Math.max(0, total - height);
      const to = Math.min(Math.max(0, top), most);
      const physical = total <= TALLEST || most === 0 ? to : (to / most) * (tall - height);
      now.current.top = to;
      now.current.base = to - Math.round(physical);
      now.current.scrolled = Math.round(physical);
      now.current.expected = Math.round(physical);
      element.scrollTop = Math.round(physical);
      draw(margin);
    },
    [total, tall, height, draw],
  );

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = (): void => {
      if (element.clientHeight > 0) setHeight(element.clientHeight);
    };
    measure();
    if (typeof ResizeObserver === "undefined") return;
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);

  useLayoutEffect(() => draw(MARGIN), [draw]);

  const settle = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(settle.current), []);

  const inSight = (at: number): boolean => {
    const { top } = now.current;
    return at * rowHeight >= top && (at + 1) * rowHeight <= top + height;
  };

  const bring = (at: number): void => {
    if (at < 0 || inSight(at)) return;
    const { top } = now.current;
    const y = at * rowHeight;
    const near = y < top ? top - y < height : y - top < 2 * height;
    // A neighbour comes in at the edge, a far row in the middle, where both its neighbours are seen.
    if (!near) {
      place(y - (height - rowHeight) / 2, JUMP_MARGIN);
      clearTimeout(settle.current);
      settle.current = setTimeout(() => place(now.current.top), REST_MS);
    } else place(y < top ? y : y + rowHeight - height);
  };

  useLayoutEffect(() => {
    if (active < 0 || active >= length) return;
    if (auto && now.current.held) setAstray(!inSight(active));
    else {
      now.current.held = false;
      setAstray(false);
      bring(active);
    }
  }, [active, auto, height, total]);

  const onScroll = (): void => {
    const element = box.current;
    if (element === null) return;
    const state = now.current;
    const at = element.scrollTop;
    if (Math.abs(at - state.expected) <= 1) {
      state.scrolled = at;
      state.expected = NaN;
      return;
    }
    const by = at - state.scrolled;
    state.scrolled = at;
    if (total <= TALLEST) {
      state.top = at;
      state.base = 0;
    } else {
      const most = total - height;
      const end = tall - height;
      if (at <= 0) state.top = 0;
      else if (at >= end) state.top = most;
      else if (Math.abs(by) > 2 * height) state.top = (at / end) * most;
      else state.top = Math.min(Math.max(0, state.top + by), most);
      state.base = state.top - at;
      clearTimeout(settle.current);
      settle.current = setTimeout(() => place(now.current.top), REST_MS);
    }
    draw(MARGIN);
    if (auto && active >= 0) {
      state.held = !inSight(active);
      setAstray(state.held);
    }
    props.onScrolled?.();
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    if (plain || event.altKey || event.ctrlKey || event.metaKey || length === 0) return;
    const pageful = Math.max(1, Math.floor(height / rowHeight) - 1);
    const at = Math.max(0, active);
    const to: Record<string, number> = {
      ArrowDown: active < 0 ? (props.first ?? 0) : at + 1,
      ArrowUp: at - 1,
      PageDown: at + pageful,
      PageUp: at - pageful,
      Home: props.first ?? 0,
      End: length - 1,
    };
    const goal = to[event.key];
    if (goal !== undefined) {
      props.onPick(Math.min(Math.max(props.first ?? 0, goal), length - 1));
    } else if (event.key === "Enter" && active >= 0 && props.onOpen) {
      props.onOpen(active);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  // Behind a jump no row stays: the nodes do, and only their words change.
  const kept = useRef({ from: 0, to: 0, origin: 0 });
  const { from, to, origin } = kept.current;
  const jumped = sight.from >= to || sight.to <= from;
  kept.current = { from: sight.from, to: sight.to, origin: jumped ? origin + sight.from - from : origin };

  const rows: JSX.Element[] = [];
  for (let at = sight.from; at < Math.min(sight.to, length); at++) {
    rows.push(
      <div
        key={props.rowKey?.(at) ?? at - kept.current.origin}
        id={`${id}-${at}`}
        role={plain ? undefined : "option"}
        aria-selected={plain ? undefined : at === active}
        aria-posinset={plain ? undefined : at + 1}
        aria-setsize={plain ? undefined : length}
        class={`row ${props.rowClass?.(at) ?? ""}`}
        style={{ top: `${at * rowHeight - sight.base}px`, height: `${rowHeight}px` }}
        onClick={plain ? undefined : () => props.onPick(at)}
        onDblClick={props.onOpen ? () => props.onOpen?.(at) : undefined}
      >
        {props.row(at)}
      </div>,
    );
  }
  const drawn = active >= sight.from && active < sight.to;
  return (
    <div class={`window-list ${props.class ?? ""}`}>
      <div
        ref={box}
        class="scroll"
        role={plain ? "group" : "listbox"}
        tabIndex={0}
        aria-label={props.label}
        aria-activedescendant={drawn ? `${id}-${active}` : undefined}
        onScroll={onScroll}
        onKeyDown={onKeyDown}
      >
        <div class="tall" role="presentation" style={{ height: `${tall}px` }}>
          {rows}
        </div>
      </div>
      {length === 0 && props.empty !== undefined ? <div class="empty-line over">{props.empty}</div> : null}
      {astray && active >= 0 ? (
        <button
          type="button"
          class="button small back"
          onClick={() => {
            now.current.held = false;
            setAstray(false);
            bring(active);
          }}
        >
          <Icon name={active * rowHeight < now.current.top ? "previous" : "next"} /> back to the playhead
        </button>
      ) : null}
    </div>
  );
}

/** Which rows stand in the document when `top` is at the upper edge of a box of `height`. */
export function look(
  top: number,
  base: number,
  height: number,
  rowHeight: number,
  length: number,
  margin = MARGIN,
): Sight {
  const from = Math.max(0, Math.floor(top / rowHeight) - margin);
  const to = Math.min(length, Math.ceil((top + height) / rowHeight) + margin);
  return { from, to: Math.max(from, to), base };
}
