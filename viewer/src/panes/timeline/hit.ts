/** What lies under a point of the timeline: for a click, for the tooltip; and what the playhead says of its place. */
import { type Outline, PERMISSIONS } from "../../core/types";
import { spokenTime } from "../../state/words";
import { STATUS } from "../icons";
import { laneAt } from "./lanes";
import { PERMISSION_ROW, type Scene } from "./scene";
import { type PointTrack, type SpanTrack, Tone } from "./tracks";
import type { Bar, Cluster } from "./columns";
import { stepNumber } from "../../state/numbers";

/** What a click goes to: an entry of the outline, a folded gap, or a certified drop of the study. */
export type Hit =
  | { what: "step" | "span"; id: number; count: number; worst: number; tone: number; t0: number; t1: number; x: number }
  | { what: "mark"; id: number; count: number; t: number; x: number; word: string }
  | { what: "loop"; id: number; count: number; t: number; x: number }
  | { what: "note"; id: number; count: number; t: number; x: number }
  | { what: "gap"; from: number; to: number; open: boolean; x: number }
  | { what: "drop"; step: number; drop: number; lo: number; hi: number; x: number };

/** Pixels by which a pointer may miss. */
const SLACK = 3;

export function hit(scene: Scene, x: number, y: number): Hit | null {
  const lane = laneAt(scene.lanes, y);
  if (lane === null) return null;
  const found = ((): Hit | null => {
    switch (lane.kind) {
      case "steps":
        return onBars(scene.steps[lane.part] ?? [], scene.tracks.steps[lane.part]?.track, "step", x);
      case "tools":
        return onBars(scene.tools, scene.tracks.tools, "span", x);
      case "decisions":
        return onBars(scene.decisions, scene.tracks.decisions, "span", x);
      case "network":
        return onBars(scene.network, scene.tracks.network, "span", x);
      case "permissions": {
        const middle = lane.y + lane.height / 2;
        const near = scene.permissions
          .map((placed) => ({
            placed,
            off: Math.hypot(placed.x + placed.aside - x, (middle + placed.row * PERMISSION_ROW - y) * 0.7) - placed.r,
          }))
          .filter(({ off }) => off <= SLACK)
          .sort((a, b) => a.off - b.off)[0]?.placed;
        const track = near ? scene.tracks.permissions[near.word] : undefined;
        return near && track ? markHit(near, track, (PERMISSIONS[near.word] ?? "").replace("_", "-")) : null;
      }
      case "console": {
        for (const level of [2, 1, 0]) {
          const cluster = nearest(scene.console[level]?.clusters ?? [], x, 5);
          const track = scene.tracks.console[level];
          if (cluster && track)
            return markHit(cluster, track, `console ${["line", "warning", "error"][level] ?? "line"}`);
        }
        return null;
      }
      case "signs": {
        const placed = nearest([...scene.signs].reverse(), x, 7);
        if (!placed) return null;
        if (placed.sign === "note") return { what: "note", id: placed.first, count: placed.count, t: 0, x: placed.x };
        const track = scene.tracks.signs[placed.sign];
        const id = track.id[placed.first] ?? 0,
          t = track.t[placed.first] ?? 0;
        if (placed.sign === "loop") return { what: "loop", id, count: placed.count, t, x: placed.x };
        return {
          what: "mark",
          id,
          count: placed.count,
          t,
          x: placed.x,
          word: placed.sign === "loss" ? "not recorded" : placed.sign,
        };
      }
      case "chance": {
        const drop = scene.drops.find((one) => Math.abs(one.x - x) <= 8);
        return drop ? { what: "drop", step: drop.step, drop: drop.drop, lo: drop.lo, hi: drop.hi, x: drop.x } : null;
      }
      default:
        return null;
    }
  })();
  if (found !== null || lane.kind === "ruler") return found;
  const gap = scene.breaks.find((box) => x >= box.x0 && x <= box.x1 && !box.open);
  return gap ? { what: "gap", from: gap.from, to: gap.to, open: gap.open, x: (gap.x0 + gap.x1) / 2 } : null;
}

/** The opened gap under a point where nothing else is: a click closes it again. */
export function openGapAt(scene: Scene, x: number): Hit | null {
  const gap = scene.breaks.find((box) => box.open && x >= box.x0 && x <= box.x1);
  return gap ? { what: "gap", from: gap.from, to: gap.to, open: true, x: (gap.x0 + gap.x1) / 2 } : null;
}

function onBars(bars: readonly Bar[], track: SpanTrack | undefined, what: "step" | "span", x: number): Hit | null {
  if (!track) return null;
  let best: Bar | null = null;
  for (const bar of bars) {
    if (bar.x0 > x + SLACK) break;
    if (x > Math.max(bar.x1, bar.x0 + 2) + SLACK) continue;
    // The one that began last lies on top; a direct hit goes before a near one.
    if (best === null || bar.x0 <= x || best.x1 < x) best = bar;
  }
  if (best === null) return null;
  const n = best.count > 1 && best.tone !== Tone.plain ? firstOf(track, best) : best.first;
  return {
    what,
    id: track.id[n] ?? 0,
    count: best.count,
    worst: best.worst,
    tone: best.tone,
    t0: track.t0[n] ?? 0,
    t1: track.t1[n] ?? 0,
    x: Math.max(best.x0, 0),
  };
}

/** The first entry of a bar that has its tone: a click on a coalesced bar goes to the trouble in it. */
function firstOf(track: SpanTrack, bar: Bar): number {
  for (let n = bar.first; n < bar.first + bar.count; n++) if (track.tone[n] === bar.tone) return n;
  return bar.first;
}

function markHit(cluster: Cluster, track: PointTrack, word: string): Hit {
  return {
    what: "mark",
    id: track.id[cluster.first] ?? 0,
    count: cluster.count,
    t: track.t[cluster.first] ?? 0,
    x: cluster.x,
    word,
  };
}

function nearest<T extends Cluster>(placed: readonly T[], x: number, reach: number): T | null {
  let best: T | null = null;
  for (const one of placed) {
    if (Math.abs(one.x - x) <= reach && (best === null || Math.abs(one.x - x) < Math.abs(best.x - x))) best = one;
  }
  return best;
}

/** What the playhead says: "step 41 of 42, failed, 2 hours 14 minutes". */
export function spoken(outline: Outline, step: number, t: number): string {
  const { steps } = outline;
  if (steps.length === 0) return `no steps, ${spokenTime(t)}`;
  return `step ${stepNumber(step, outline)} of ${stepNumber(steps.length - 1, outline)}, ${STATUS[steps.status(step)].word}, ${spokenTime(t)}`;
}
