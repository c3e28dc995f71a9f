/**
 * Links to a place in a run: `#run=..&step=41&tab=decision&stage=screen&t=7331` behind the page's own address.
 *
 * `t` is in milliseconds since the run began. What the page was opened with (`url=`) stays. A link says where to look,
 * never what to see: masks, notes and texts are not in it.
 */
import { signal } from "@preact/signals";
import { other, playhead, run, stage, step, tab, type Stage, type Tab } from "./app";
import { goTo, seek, seekRow } from "./moves";
import { placeOfNumber, stepNumber } from "./numbers";

export interface Place {
  url?: string;
  run?: string;
  /** The run beside it in a comparison. */
  with?: string;
  /** The number that people know it by, as `worldline show` prints it. */
  step?: number;
  seq?: number;
  tab?: Tab;
  stage?: Stage;
  /** Milliseconds. */
  t?: number;
}

const TABS: readonly Tab[] = ["decision", "snapshot", "state", "console", "network", "raw", "integrity"];
const STAGES: readonly Stage[] = ["seen", "screen", "dom", "terminal", "video", "rrweb"];

/** What was said to the user last ("link copied"), for a moment. */
export const said = signal("");
let saying: ReturnType<typeof setTimeout> | undefined;

export function parse(hash: string): Place {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const place: Place = {};
  for (const key of ["url", "run", "with"] as const) {
    const value = words.get(key);
    if (value) place[key] = value;
  }
  for (const key of ["step", "seq", "t"] as const) {
    const value = words.get(key);
    if (value !== null && /^\d+(\.\d+)?$/.test(value))
      place[key] = key === "t" ? Number(value) : Math.trunc(Number(value));
  }
  place.tab = TABS.find((name) => name === words.get("tab"));
  place.stage = STAGES.find((name) => name === words.get("stage"));
  if (place.tab === undefined) delete place.tab;
  if (place.stage === undefined) delete place.stage;
  return place;
}

export function write(place: Place): string {
  const words = new URLSearchParams();
  for (const key of ["url", "run", "with", "step", "seq", "tab", "stage", "t"] as const) {
    const value = place[key];
    if (value !== undefined) words.set(key, String(value));
  }
  return `#${words}`;
}

/** Where the user is now. */
export function here(): Place {
  const place: Place = {};
  const { url } = parse(location.hash);
  if (url !== undefined) place.url = url;
  if (run.value === null) return place;
  place.run = runId(run.value.recording.header.data);
  if (other.value !== null) place.with = runId(other.value.recording.header.data);
  place.step = stepNumber(step.value);
  place.tab = tab.value;
  place.stage = stage.value;
  place.t = Math.round(playhead.value / 1e6);
  return place;
}

/** Goes where the place says, as far as it says so: a row before a step, a time within the step. */
export function follow(place: Place): boolean {
  if (place.tab) tab.value = place.tab;
  if (place.stage) stage.value = place.stage;
  if (place.seq !== undefined) seekRow(place.seq);
  else if (place.step !== undefined) {
    const to = placeOfNumber(place.step);
    goTo(to);
    const steps = run.value?.outline.steps;
    const t = (place.t ?? -1) * 1e6;
    const next = steps && to + 1 < steps.length ? steps.t0(to + 1) : Infinity;
    // A time is rounded to milliseconds, so the very begin of the step may lie behind it.
    if (steps && t > steps.t0(step.value) && t < next) seek(t);
  } else if (place.t !== undefined) seek(place.t * 1e6);
  else return false;
  return true;
}

export function link(): string {
  return location.href.replace(/#.*$/, "") + write(here());
}

export async function copyLink(): Promise<void> {
  await copy(link(), "link copied");
}

/** To the clipboard, and say so. Pages from a file have no clipboard API in every browser: then by an old way. */
export async function copy(text: string, what = "copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    const focused = document.activeElement;
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    if (!done) return say("this browser does not let the page write to the clipboard");
  }
  say(what);
}

/** A short word at the edge of the page, read out by screen readers. */
export function say(text: string): void {
  said.value = text;
  if (saying !== undefined) clearTimeout(saying);
  saying = setTimeout(() => {
    said.value = "";
  }, 3000);
}

export function runId(header: Record<string, unknown>): string {
  return typeof header["run"] === "string" ? header["run"] : "";
}
