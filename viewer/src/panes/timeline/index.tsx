/**
 * The timeline: the whole run in a strip, and below it the lanes of what is seen, with the playhead above them.
 *
 * The lanes are one canvas that is drawn when run, zoom or theme change. The playhead, the window and the tooltip are
 * elements that lie above it and are only moved.
 */
import { effect, useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import "../../style/timeline.css";
import { toX } from "../../core/axis";
import { leftOf, toParent } from "../../state/ancestry";
import { outline, playhead, run, step, tab, version } from "../../state/app";
import { goTo, seek, seekRow } from "../../state/moves";
import { duration } from "../../state/words";
import { Icon } from "../icons";
import { isWhole, plotWidth, projection, timeAt, toggleGap } from "./camera";
import { onMap, onPlot } from "./gestures";
import { type Hit, hit, openGapAt, spoken } from "./hit";
import { MAP_HEIGHT, paintMap } from "./minimap";
import { paint } from "./paint";
import { map, noteList, scene, tracks } from "./picture";
import { part } from "../part";
import { Stamps } from "./stamps";
import { rescue, studyTrouble, watchStudy } from "./study";
import { surface, watchScreen } from "./surface";
import { stepNumber } from "../../state/numbers";

/** Buttons of folded gaps for the keyboard: only so many, else they would be a wall of stops. */
const MOST_BUTTONS = 24;

const Tooltip = part(async () => (await import("./tip")).Tooltip);
const RescueCard = part(async () => (await import("./rescue")).RescueCard);

export function Timeline(): JSX.Element {
  useEffect(watchScreen, []);
  useEffect(watchStudy, []);
  return (
    <section class="timeline" aria-label="Timeline">
      <Minimap />
      <div class="tl-scroll">
        <Labels />
        <Plot />
      </div>
      {studyTrouble.value === "" ? null : (
        <p class="tl-trouble is-warn" role="status">
          The study of this run could not be read: {studyTrouble.value}
        </p>
      )}
      {rescue.value === null ? null : <RescueCard />}
    </section>
  );
}

function Minimap(): JSX.Element {
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const brush = useRef<HTMLDivElement>(null);
  useEffect(() => (area.current ? onMap(area.current, () => map.peek()) : undefined), []);
  useEffect(() => {
    if (!canvas.current) return undefined;
    return surface(canvas.current, () => {
      const at = map.value,
        made = tracks.value;
      if (at === null || made === null) return null;
      return {
        width: at.width,
        height: MAP_HEIGHT,
        paint: (pen, palette, ratio) => paintMap(pen, palette, made, at, ratio),
      };
    });
  }, []);
  useEffect(
    () =>
      effect(() => {
        const at = map.value,
          now = projection.value,
          box = brush.current;
        if (!box || at === null || now === null) return;
        const x0 = toX(at, now.t0),
          x1 = toX(at, now.t1);
        box.style.transform = `translateX(${x0}px)`;
        box.style.width = `${Math.max(x1 - x0, 3)}px`;
        box.classList.toggle("whole", isWhole.value);
      }),
    [],
  );
  return (
    <div class="tl-map" ref={area} aria-hidden="true">
      <canvas ref={canvas} />
      <div class="tl-brush" ref={brush} />
      <MapHead />
    </div>
  );
}

/** Where the playhead stands in the whole run. */
function MapHead(): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(
    () =>
      effect(() => {
        const at = map.value;
        if (ref.current && at !== null) ref.current.style.transform = `translateX(${toX(at, playhead.value)}px)`;
      }),
    [],
  );
  return <div class="tl-map-head" ref={ref} />;
}

function Labels(): JSX.Element {
  const lanes = useComputed(() => scene.value?.lanes ?? []);
  return (
    <div class="tl-labels" aria-hidden="true">
      {lanes.value.map((lane) => (
        <span
          key={`${lane.kind}${lane.part}`}
          class={`tl-label tl-${lane.kind}${lane.part > 0 ? " part" : ""}`}
          title={lane.label}
          style={{ top: `${lane.y}px`, height: `${lane.height}px` }}
        >
          {lane.label}
        </span>
      ))}
    </div>
  );
}

function Plot(): JSX.Element {
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const hovered = useSignal<{ found: Hit; x: number; y: number } | null>(null);

  useEffect(() => {
    const element = area.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => {
      if (element.clientWidth > 0) plotWidth.value = element.clientWidth;
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (!canvas.current) return undefined;
    let stamps: Stamps | null = null;
    return surface(canvas.current, () => {
      const now = scene.value;
      if (now === null) return null;
      return {
        width: now.projection.width,
        height: now.height,
        paint: (pen, palette, ratio) => {
          if (stamps?.palette !== palette || stamps.ratio !== ratio) stamps = new Stamps(palette, ratio);
          paint(pen, stamps, now, (lane, entry) => nameOf(lane.kind, entry));
        },
      };
    });
  }, []);
  useEffect(() => {
    const element = area.current;
    if (!element) return undefined;
    const at = (x: number, y: number): Hit | null => (scene.peek() ? hit(scene.peek()!, x, y) : null);
    return onPlot(
      element,
      (x, y) => {
        const now = scene.peek();
        const found = at(x, y) ?? (now ? openGapAt(now, x) : null);
        hovered.value = null;
        if (found) act(found);
        else seek(timeAt(x));
      },
      (place) => {
        const found = place ? at(place.x, place.y) : null;
        const box = element.getBoundingClientRect();
        hovered.value = found && place ? { found, x: box.left + place.x, y: box.top + place.y } : null;
        element.style.cursor = found ? "pointer" : "";
      },
    );
  }, []);

  return (
    <div class="tl-plot" ref={area} style={{ height: `${scene.value?.height ?? 120}px` }} data-testid="timeline-plot">
      <canvas ref={canvas} />
      <Gaps />
      <Began />
      <Playhead />
      {hovered.value === null ? null : <Tooltip hovered={hovered.value} />}
    </div>
  );
}

function nameOf(kind: string, entry: number): { long: string; short: string } | null {
  const now = outline.peek();
  if (now === null) return null;
  return kind === "tools"
    ? { long: now.spans.name(entry), short: "" }
    : { long: `${stepNumber(entry)} ${now.steps.name(entry)}`, short: String(stepNumber(entry)) };
}

/** Goes to what was clicked, and opens the tab that tells more of it. */
function act(found: Hit): void {
  const now = outline.peek();
  if (now === null) return;
  const { steps, spans, marks } = now;
  switch (found.what) {
    case "step":
    case "loop":
      return goTo(found.id);
    case "span":
      if (spans.track(found.id) === "network") tab.value = "network";
      return seekRow(spans.seq(found.id), found.t0);
    case "mark":
      if (found.word.startsWith("console")) tab.value = "console";
      else if (found.word === "checkpoint") tab.value = "state";
      return seekRow(marks.seq(found.id), found.t);
    case "note": {
      const note = noteList.peek()[found.id];
      return note ? seekRow(note.seq, note.t) : undefined;
    }
    case "gap":
      return toggleGap(found.from);
    case "drop":
      goTo(Math.min(found.step, steps.length - 1));
      rescue.value = { step: found.step, drop: found.drop, lo: found.lo, hi: found.hi };
  }
}

/** Where a branch begins: what stands before it is on the clock of the run that it left. */
function Began(): JSX.Element | null {
  void version.value;
  const open = run.value,
    left = leftOf(open),
    at = projection.value;
  if (open === null || left === null || at === null) return null;
  const x = toX(at, open.outline.span[0]);
  if (x < -1 || x > at.width) return null;
  const words = `began at step ${left.step} of run ${left.run.slice(-4)}`;
  return (
    <button
      type="button"
      class="tl-began"
      style={{ transform: `translateX(${Math.round(x)}px)` }}
      title={`${words}: open it there ( U )`}
      onPointerDown={(event) => event.stopPropagation()}
      onClick={() => toParent()}
    >
      <Icon name="fork" /> {words}
    </button>
  );
}

/** The playhead: a slider that says where it stands. Its keys are the panel's (arrows, J, K, Home, End). */
function Playhead(): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(
    () =>
      effect(() => {
        const at = projection.value,
          element = ref.current,
          now = outline.value;
        void version.value;
        if (!element || at === null || now === null) return;
        const x = toX(at, playhead.value);
        element.style.transform = `translateX(${Math.round(x * 2) / 2}px)`;
        element.classList.toggle("out", x < -1 || x > at.width + 1);
        element.setAttribute("aria-valuemin", "0");
        element.setAttribute("aria-valuemax", String(Math.max(now.steps.length - 1, 0)));
        element.setAttribute("aria-valuenow", String(step.value));
        element.setAttribute("aria-valuetext", spoken(now, step.value, playhead.value));
      }),
    [],
  );
  return (
    <div
      class="tl-playhead"
      ref={ref}
      role="slider"
      tabIndex={0}
      aria-label="Playhead"
      aria-orientation="horizontal"
      aria-valuenow={0}
    />
  );
}

/** Folded gaps for keyboard and screen reader; pointers go to the picture below them. */
function Gaps(): JSX.Element | null {
  const boxes = scene.value?.breaks ?? [];
  if (boxes.length === 0 || boxes.length > MOST_BUTTONS) return null;
  return (
    <>
      {boxes.map((gap) => (
        <button
          key={gap.from}
          type="button"
          class="tl-gap"
          aria-expanded={gap.open}
          onClick={() => toggleGap(gap.from)}
          style={{
            left: `${Math.max(gap.x0, 0)}px`,
            width: `${Math.max(gap.x1 - Math.max(gap.x0, 0), 8)}px`,
          }}
          aria-label={`${duration(gap.to - gap.from)} idle, ${gap.open ? "fold" : "open"}`}
        />
      ))}
    </>
  );
}
