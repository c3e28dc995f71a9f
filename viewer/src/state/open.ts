/**
 * All ways in which a recording comes into the page: inside it, from its own server, by an address, by a file.
 *
 * Whatever the way, it ends in `Open`: a recording, the fold over its rows that goes on behind the first screen, the
 * verdict, and what was found out about the record itself.
 */
import { batch, signal } from "@preact/signals";
import { carries, openSource, type Source } from "./reading";
import {
  body,
  drawer,
  filter,
  following,
  liveState,
  other,
  page,
  playhead,
  playing,
  run,
  step,
  trouble,
  unseen,
  version,
  view,
  type Open,
} from "./app";
import { nextFrame } from "./frames";
import { follow, parse, say, type Place } from "./link";
import { maskAgain } from "./mask";
import { goTo, grew } from "./moves";
import { placeOfNumber } from "./numbers";
import { get, ServerError } from "./server";

/** What `GET api/session` answers. */
export interface Session {
  version: string;
  mode: "run" | "compare" | "runs";
  runs: string[];
  features: { fork: boolean; notes: boolean; live: boolean };
  store: string;
  /** What `r/<id>/about` says of the runs that were named, so that it need not be asked. */
  about?: Record<string, unknown>;
}

export const session = signal<Session | null>(null);
/** What is being opened now, for the waiting page. */
export const opening = signal<{ label: string; size: number | null } | null>(null);
export const dragging = signal(false);

/** Ends what goes on for a run: its scan, its live tail. */
const endings = new WeakMap<Open, () => void>();
/** Of several openings only the last counts. */
let turn = 0;

/** The page has loaded: the first way that applies is taken. */
export async function start(): Promise<void> {
  const place = parse(location.hash);
  if (carries()) return openRun([{ inside: true }], place);
  if (location.protocol !== "file:") {
    session.value = await askSession();
    if (session.value !== null) return openSession(session.value, place);
  }
  if (place.url !== undefined) return openRun([{ url: place.url }], place);
  page.value = "empty";
}

/** A run of the server, by its id: the runs page and the forks go this way. Stays at the step where `at` says so. */
export async function openServed(id: string, at?: Place): Promise<void> {
  await openRun([{ served: id }], at ?? {});
}

/** Opens the first source, and the second beside it where there is one. */
export async function openRun(sources: readonly Source[], place: Place = {}): Promise<void> {
  const [left, right] = sources;
  if (left === undefined) return;
  const mine = ++turn;
  batch(() => {
    trouble.value = null;
    opening.value = { label: labelOf(left), size: "file" in left ? left.file.size : null };
    if (run.value === null) page.value = "opening";
  });
  try {
    const open = await openOne(left, () => mine === turn);
    const beside = right === undefined ? null : await openOne(right, () => mine === turn);
    if (mine !== turn) return;
    show(open, beside, place);
  } catch (reason) {
    if (mine !== turn) return;
    fail(left, reason);
  } finally {
    if (mine === turn) opening.value = null;
  }
}

/** A second run beside the open one. */
export async function openBeside(source: Source): Promise<void> {
  if (run.value === null) return openRun([source]);
  const mine = ++turn;
  say(`opening ${labelOf(source)} beside this run`);
  try {
    const beside = await openOne(source, () => mine === turn);
    if (mine !== turn) return;
    end(other.value);
    batch(() => {
      other.value = beside;
      page.value = "compare";
    });
  } catch (reason) {
    fail(source, reason);
  }
}

export function closeOther(): void {
  end(other.value);
  batch(() => {
    other.value = null;
    page.value = "run";
  });
}

/** Files dropped anywhere on the page. With Shift held down the first comes beside the open run. */
export function listenForDrops(target: Document = document): () => void {
  const has = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
  const over = (event: DragEvent): void => {
    if (!has(event)) return;
    event.preventDefault();
    dragging.value = true;
  };
  const leave = (event: DragEvent): void => {
    if (event.relatedTarget === null) dragging.value = false;
  };
  const drop = (event: DragEvent): void => {
    if (!has(event)) return;
    event.preventDefault();
    dragging.value = false;
    const files = [...(event.dataTransfer?.files ?? [])].map((file) => ({ file }));
    const [first] = files;
    if (first && event.shiftKey && run.value !== null) void openBeside(first);
    else void openRun(files.slice(0, 2));
  };
  target.addEventListener("dragenter", over);
  target.addEventListener("dragover", over);
  target.addEventListener("dragleave", leave);
  target.addEventListener("drop", drop);
  return () => {
    target.removeEventListener("dragenter", over);
    target.removeEventListener("dragover", over);
    target.removeEventListener("dragleave", leave);
    target.removeEventListener("drop", drop);
  };
}

async function askSession(): Promise<Session | null> {
  try {
    return await get<Session>("api/session");
  } catch (reason) {
    // A page on some web server has no session: it is opened by an address or a file.
    if (reason instanceof ServerError || reason instanceof SyntaxError) return null;
    throw reason;
  }
}

async function openSession(now: Session, place: Place): Promise<void> {
  const [first, second] = now.runs;
  if (now.mode === "runs" && place.run === undefined) {
    page.value = "runs";
    return;
  }
  const left = place.run !== undefined && (now.mode === "runs" || now.runs.includes(place.run)) ? place.run : first;
  const right = place.with ?? (now.mode === "compare" ? second : undefined);
  if (left === undefined) {
    page.value = "runs";
    return;
  }
  const sources = [left, ...(right === undefined ? [] : [right])];
  await openRun(
    sources.map((id) => ({ served: id, about: now.about?.[id] })),
    place,
  );
  // A run that is opened again later may have been sealed meanwhile.
  delete now.about;
}

async function openOne(source: Source, wanted: () => boolean): Promise<Open> {
  const { open, stop } = await openSource(source, {
    changed: (now) => {
      if (now === run.value || now === other.value) redraw();
    },
    grew: (now, rows) => {
      if (now === run.value) grew(rows);
    },
    state: (now, state) => {
      if (now === run.value) liveState.value = state;
    },
  });
  if (!wanted()) stop();
  else endings.set(open, stop);
  return open;
}

function show(open: Open, beside: Open | null, place: Place): void {
  end(run.value);
  end(other.value);
  maskAgain();
  batch(() => {
    run.value = open;
    other.value = beside;
    body.value = null;
    playing.value = false;
    unseen.value = 0;
    filter.value = "all";
    drawer.value = "none";
    const live = open.recording.kind === "live" && !open.outline.done;
    liveState.value = live ? "live" : "off";
    following.value = live;
    step.value = 0;
    playhead.value = open.outline.span[0];
    view.value = [open.outline.span[0], Math.max(open.outline.span[1], open.outline.span[0] + 1)];
    page.value = beside === null ? "run" : "compare";
    redraw();
  });
  entered.delete(open);
  enter(open, place);
}

/** Runs whose place of entry is settled: somebody moved, or the fold has come as far as it had to. */
const entered = new WeakSet<Open>();

/**
 * To where the link points, else to the cause. The verdict may come later than the first screen; until then, and as long
 * as nobody moves, the page goes along.
 */
function enter(open: Open, place: Place): void {
  if (following.value) return;
  let at = { step: step.value, playhead: playhead.value };
  const go = (): boolean => {
    if (run.value !== open || entered.has(open)) return true;
    if (step.value !== at.step || playhead.value !== at.playhead) {
      entered.add(open);
      return true;
    }
    const pointed = place.seq !== undefined || place.step !== undefined || place.t !== undefined;
    if (pointed) follow(place);
    else goTo(Math.max(0, open.verdict.openAt));
    at = { step: step.value, playhead: playhead.value };
    const there = pointed ? reached(open, place) : open.outline.done;
    if (open.outline.done || there) entered.add(open);
    return entered.has(open);
  };
  if (!pointsAt(place)) {
    if (place.tab !== undefined || place.stage !== undefined) follow({ ...place });
  }
  if (go()) return;
  const stop = version.subscribe(() => {
    if (go()) queueMicrotask(() => stop());
  });
}

function pointsAt(place: Place): boolean {
  return place.seq !== undefined || place.step !== undefined || place.t !== undefined;
}

function reached(open: Open, place: Place): boolean {
  const { outline } = open;
  if (place.step !== undefined) return outline.steps.length > placeOfNumber(place.step, outline) + 1;
  if (place.seq !== undefined) return outline.scanned > place.seq;
  return false;
}

let drawn = false;

/** `version` grows once a frame, however often something changed. */
function redraw(): void {
  if (drawn) return;
  drawn = true;
  nextFrame(() => {
    drawn = false;
    version.value++;
  });
}

function end(open: Open | null): void {
  if (open !== null) endings.get(open)?.();
}

function labelOf(source: Source): string {
  if ("file" in source) return source.file.name;
  if ("url" in source) return source.url;
  return "served" in source ? source.served : "the recording in this page";
}

/** Says what could not be opened and why. A run that is open stays. */
function fail(source: Source, reason: unknown): void {
  const words = inWords(reason);
  const label = labelOf(source);
  const what = words.what.startsWith(label) ? words.what : `${label}: ${words.what}`;
  batch(() => {
    trouble.value = { title: words.title, what, todo: words.todo };
    if (run.value === null) page.value = session.value?.mode === "runs" ? "runs" : "error";
    else say(what);
  });
}

/** An error as the page says it: what, where, what to do. */
export function inWords(reason: unknown): { title: string; what: string; todo: string } {
  const what = reason instanceof Error ? reason.message : String(reason);
  if (reason instanceof ServerError) {
    return {
      title: "The server did not give the run",
      what,
      todo: "Look at the terminal in which worldline view runs, and load the page again.",
    };
  }
  const todo = (reason as { todo?: unknown } | null)?.todo;
  return {
    title: "This could not be opened",
    what,
    todo:
      typeof todo === "string" && todo !== "" ? todo : "Run worldline verify on it: it says what is wrong, and where.",
  };
}
