/**
 * The layers of the stage: what each is called, which of them a run has, and which observation a moment shows.
 */
import type { Signal } from "@preact/signals";
import type { Observation, StepBody } from "../../core/types";
import type { Moment, Open, Stage } from "../../state/app";
import type { Sources } from "./sources";
import { stepNumber } from "../../state/numbers";

/** In the order of their keys: Alt+1 is the first. */
export const LAYERS: readonly { id: Stage; label: string; none: string }[] = [
  { id: "seen", label: "What the agent saw", none: "" },
  { id: "screen", label: "Screen", none: "This run has no screenshots." },
  { id: "dom", label: "DOM", none: "This run has no DOM snapshots." },
  { id: "terminal", label: "Terminal", none: "This run has no terminal output." },
  { id: "video", label: "Video", none: "This bundle has no video." },
  { id: "rrweb", label: "rrweb", none: "This run has no rrweb events." },
];

/** What a renderer gets. `body` is the newest that was read; `fresh` says whether it is the step under the playhead. */
export interface RendererProps {
  open: Open;
  sources: Sources;
  body: StepBody;
  fresh: boolean;
  /** The layer in words, at the bottom of the stage. */
  layer: Signal<string>;
}

/** The lightest faithful layer is always there: where no tree was seen, what the agent was told is what it saw. */
export function available(sources: Sources, hasVideo: boolean): Set<Stage> {
  const layers = new Set<Stage>(["seen"]);
  if (sources.has("screenshot")) layers.add("screen");
  if (sources.has("dom_full")) layers.add("dom");
  if (sources.has("terminal")) layers.add("terminal");
  if (sources.has("rrweb")) layers.add("rrweb");
  if (hasVideo) layers.add("video");
  return layers;
}

/**
 * The observation that a moment shows. What the agent had before its first action may be nothing: then the action
 * shows what came after it, and the layer's line says so.
 */
export function pick(
  pair: { before: Observation | null; after: Observation | null },
  moment: Moment,
): Observation | null {
  if (moment === "after") return pair.after;
  return moment === "before" ? pair.before : (pair.before ?? pair.after);
}

/** "from step 40", "observed in this step", "before the first step". */
export function origin(observation: Observation, step: number): string {
  if (observation.step === step) return "observed in this step";
  return observation.step < 0 ? "from before the first step" : `from step ${stepNumber(observation.step)}`;
}

export function bytes(size: number): string {
  if (size < 1_000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1_000).toFixed(size < 10_000 ? 1 : 0)} kB`;
  return size < 1_000_000_000 ? `${(size / 1_000_000).toFixed(1)} MB` : `${(size / 1_000_000_000).toFixed(1)} GB`;
}

export function plural(count: number, word: string): string {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}
