/**
 * The search over all rows: what is sought, what was found so far, what was not looked into.
 *
 * What is masked is not searched, and a hit whose reveal has ended is not shown any more.
 */
import { computed, effect, signal } from "@preact/signals";
import type { Hit, Progress, Query } from "../core/search";
import { maskOn, query, run, step, type Open } from "./app";
import { seekRow } from "./moves";
import { masked, revealed, sensitive } from "./mask";
import { searchIn } from "./reading";

export const asRegex = signal(true);
export const matchCase = signal(false);
/** What the search has said so far; null before the first query. */
export const progress = signal<Progress | null>(null);
/** Why the query is no expression; "" while it is. */
export const queryTrouble = signal("");
/** Place of the hit that is looked at; -1 for none. */
export const hitAt = signal(-1);

/** From the start of a search to that of the next: the first key is a query at once, those right behind it wait. */
const PAUSE_MS = 120;

/** The hits that may be seen now. */
export const hits = computed<readonly Hit[]>(() => {
  const open = run.value;
  const found = progress.value?.hits ?? [];
  return open === null ? [] : found.filter((hit) => mayBeSeen(open, hit));
});

/** Seeks while the search is open. Returns the end of it. */
export function startSearch(): () => void {
  let stop: (() => void) | undefined;
  let pause: ReturnType<typeof setTimeout> | undefined;
  let begun = -PAUSE_MS;
  const end = effect(() => {
    const open = run.value;
    const asked: Query = {
      text: query.value,
      regex: asRegex.value,
      matchCase: matchCase.value,
      masked: true,
      revealed: [],
    };
    const all = !maskOn.value || revealed().some((entry) => entry.scope === "session");
    asked.masked = !all;
    asked.revealed = ranges(open);
    stop?.();
    clearTimeout(pause);
    stop = undefined;
    queryTrouble.value = "";
    if (open === null || asked.text === "") {
      progress.value = null;
      return;
    }
    pause = setTimeout(
      () => {
        begun = performance.now();
        hitAt.value = -1;
        try {
          stop = searchIn(open, asked, (now) => {
            progress.value = { ...now };
          });
        } catch (reason) {
          progress.value = null;
          queryTrouble.value = reason instanceof Error ? reason.message : String(reason);
        }
      },
      Math.max(0, begun + PAUSE_MS - performance.now()),
    );
  });
  return () => {
    end();
    stop?.();
    clearTimeout(pause);
  };
}

/** To the next (1) or previous (-1) hit, round the end. */
export function toHit(by: 1 | -1): void {
  const all = hits.value;
  if (all.length === 0) return;
  // The first time it is the first hit behind the playhead.
  const from = hitAt.value >= 0 ? hitAt.value + by : firstFrom(all);
  goToHit((from + all.length) % all.length);
}

export function goToHit(place: number): void {
  const hit = hits.value[place];
  if (hit === undefined) return;
  hitAt.value = place;
  seekRow(hit.seq, hit.t);
}

/** The step that a hit belongs to, in its own lane. */
export function stepOfHit(open: Open, hit: Hit): number {
  const { steps, lanes } = open.outline;
  return steps.of(hit.seq, Math.max(0, lanes.indexOf(hit.lane)));
}

function firstFrom(all: readonly Hit[]): number {
  const seq = run.value?.outline.steps.seq(step.value) ?? 0;
  const found = all.findIndex((hit) => hit.seq >= seq);
  return found < 0 ? 0 : found;
}

function mayBeSeen(open: Open, hit: Hit): boolean {
  const [kind = "", src = ""] = hit.kind.split("/");
  return !sensitive({ kind, src }) || !masked("field", hit.seq, stepOfHit(open, hit));
}

/** Rows that were revealed. A step is a range of rows; those of other lanes in it are left out of the hits afterwards. */
function ranges(open: Open | null): [number, number][] {
  if (open === null) return [];
  const { steps } = open.outline;
  return revealed().flatMap((entry): [number, number][] => {
    if (entry.scope === "field") return [[entry.seq, entry.seq]];
    if (entry.scope === "step" && entry.step >= 0 && entry.step < steps.length)
      return [[steps.seq(entry.step), steps.end(entry.step)]];
    return [];
  });
}
