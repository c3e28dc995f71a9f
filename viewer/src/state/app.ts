/**
 * What the user is looking at. Panes read these signals and write them; nothing else is shared between panes.
 */
import { computed, signal } from "@preact/signals";
import type { Annotation, Integrity, Outline, Recording, StepBody, Verdict } from "../core/types";

export type Stage = "seen" | "screen" | "dom" | "terminal" | "video" | "rrweb";
export type Tab = "decision" | "snapshot" | "state" | "console" | "network" | "raw" | "integrity";
export type Moment = "before" | "action" | "after";

/** One run that is open in this page. Two of them in a comparison. */
export interface Open {
  recording: Recording;
  outline: Outline;
  verdict: Verdict;
  integrity: Integrity;
  annotations: Annotation[];
  /** Path of the server's routes for this run (`r/<id>/`), or null where no server stands behind the page. */
  server: string | null;
}

export const run = signal<Open | null>(null);
export const other = signal<Open | null>(null);

/** The step under the playhead, and its time: moving one moves the other (`state/moves.ts`). */
export const step = signal(0);
export const playhead = signal(0);
/** What the timeline shows: [t, t]. */
export const view = signal<[number, number]>([0, 1]);
export const folded = signal(true);

export const stage = signal<Stage>("seen");
export const tab = signal<Tab>("decision");
export const moment = signal<Moment>("action");
export const filter = signal<"all" | "failed" | "denied" | "notes">("all");
export const query = signal("");

export const playing = signal(false);
export const speed = signal(1);
export const skipIdle = signal(true);
/** Live: whether the playhead is pinned to now, and how many rows came while it is not. */
export const following = signal(false);
export const unseen = signal(0);
export const liveState = signal<"off" | "live" | "stalled" | "ended">("off");

/** The step's bodies, loaded once the playhead rests (`state/bodies.ts`); null while they come. Never blanks the stage. */
export const body = signal<StepBody | null>(null);

/** Masking: everything is masked unless its scope was revealed (`state/mask.ts`). */
export const maskOn = signal(true);
export const theme = signal<"system" | "light" | "dark">("system");
export const drawer = signal<"none" | "forks" | "search" | "help" | "note" | "fork" | "reveal">("none");
export const page = signal<"empty" | "opening" | "run" | "compare" | "runs" | "error">("opening");
export const trouble = signal<{ title: string; what: string; todo: string } | null>(null);

export const outline = computed(() => run.value?.outline ?? null);

/**
 * Grows, at most once a frame, when what `run` or `other` holds has changed in place: rows folded, the verdict, the
 * integrity, annotations. A pane that draws from the outline reads it, too.
 */
export const version = signal(0);
