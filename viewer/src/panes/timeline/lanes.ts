/** Which lanes the timeline has for a run, and where they stand: top edge and height in CSS pixels. */
import type { Tracks } from "./tracks";

export type LaneKind =
  "ruler" | "signs" | "steps" | "tools" | "decisions" | "permissions" | "console" | "network" | "video" | "chance";

export interface Lane {
  kind: LaneKind;
  label: string;
  /** Number of the run's lane among those with steps; 0 elsewhere. */
  part: number;
  y: number;
  height: number;
}

const HEIGHTS: Record<LaneKind, number> = {
  ruler: 15,
  signs: 15,
  steps: 19,
  tools: 18,
  decisions: 16,
  permissions: 36,
  console: 14,
  network: 16,
  video: 13,
  chance: 26,
};
/** A sub-agent's steps take less room than the first lane's. */
const PART_HEIGHT = 14;

/** What a run has beside its tracks. */
export interface Extras {
  notes: boolean;
  video: boolean;
  study: boolean;
}

/** The lanes from top to bottom. Signs, video and P(success) are there only where something stands in them. */
export function layLanes(tracks: Tracks, extras: Extras): { lanes: Lane[]; height: number } {
  const lanes: Lane[] = [];
  let y = 0;
  const add = (kind: LaneKind, label: string, part = 0, height = HEIGHTS[kind]): void => {
    lanes.push({ kind, label, part, y, height });
    y += height;
  };
  add("ruler", "");
  const { signs } = tracks;
  if (extras.notes || Object.values(signs).some((track) => track.length > 0)) add("signs", "events");
  const parts = Math.max(tracks.steps.length, 1);
  add(
    "steps",
    tracks.steps.some(({ lane }, part) => part > 0 && lane !== "") ? `steps · ${tracks.steps[0]?.lane ?? ""}` : "steps",
  );
  for (let part = 1; part < parts; part++) add("steps", tracks.steps[part]?.lane ?? "", part, PART_HEIGHT);
  add("tools", "tools");
  add("decisions", "decisions");
  add("permissions", "permissions");
  add("console", "console");
  add("network", "network");
  if (extras.video) add("video", "video");
  if (extras.study) add("chance", "P(success)");
  return { lanes, height: y };
}

export function laneAt(lanes: readonly Lane[], y: number): Lane | null {
  return lanes.find((lane) => y >= lane.y && y < lane.y + lane.height) ?? null;
}
