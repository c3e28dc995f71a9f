/**
 * Which runs are listed: facets with counts, words, and an order.
 *
 * Values of one facet widen the choice (this model or that one), facets narrow it (and this outcome). A facet's counts
 * are those of all runs that the other facets and the words let through: they say what one more click would give.
 */
import { errorClass, type RunEntry } from "./entries";

export const FACETS = ["outcome", "task", "model", "tools", "permissions", "error", "duration", "cost"] as const;
export type Facet = (typeof FACETS)[number];
export type Chosen = Partial<Record<Facet, ReadonlySet<string>>>;

const DURATIONS: readonly [number, string][] = [
  [10, "under 10 s"],
  [60, "10 s to 1 min"],
  [600, "1 to 10 min"],
  [3600, "10 min to 1 h"],
  [Infinity, "over 1 h"],
];
const COSTS: readonly [number, string][] = [
  [0.01, "under $0.01"],
  [0.1, "$0.01 to $0.10"],
  [1, "$0.10 to $1"],
  [10, "$1 to $10"],
  [Infinity, "over $10"],
];
export const UNKNOWN = "unknown";
export const NONE = "none";

/** The values that a run has of a facet: at least one. */
export function valuesOf(run: RunEntry, facet: Facet): string[] {
  switch (facet) {
    case "outcome":
      return [run.outcome || UNKNOWN];
    case "task":
      return [run.task || NONE];
    case "model":
      return [run.model || UNKNOWN];
    case "tools":
      return run.tools.length > 0 ? run.tools : [NONE];
    case "permissions": {
      const words = Object.keys(run.permissions);
      return words.length > 0 ? words : [NONE];
    }
    case "error":
      return [errorClass(run.error) || NONE];
    case "duration":
      return [bucket(run.seconds, DURATIONS)];
    case "cost":
      return [bucket(run.cost, COSTS)];
  }
}

function bucket(value: number | null, borders: readonly [number, string][]): string {
  if (value === null) return UNKNOWN;
  return borders.find(([below]) => value < below)?.[1] ?? UNKNOWN;
}

export interface Selection {
  /** The runs that are listed. */
  found: RunEntry[];
  /** Value and count of every facet, the most frequent first (sizes by size). A chosen value stays, also with 0. */
  counts: Record<Facet, { value: string; count: number }[]>;
}

export function select(runs: readonly RunEntry[], chosen: Chosen, words: string): Selection {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const tallies = Object.fromEntries(FACETS.map((facet) => [facet, new Map<string, number>()])) as Record<
    Facet,
    Map<string, number>
  >;
  for (const facet of FACETS) for (const value of chosen[facet] ?? []) tallies[facet].set(value, 0);
  const found: RunEntry[] = [];
  for (const run of runs) {
    if (wanted.length > 0 && !wanted.every((word) => haystack(run).includes(word))) continue;
    const values = FACETS.map((facet) => valuesOf(run, facet));
    const misses = FACETS.filter((facet, i) => {
      const set = chosen[facet];
      return set !== undefined && set.size > 0 && !(values[i] ?? []).some((value) => set.has(value));
    });
    if (misses.length === 0) found.push(run);
    FACETS.forEach((facet, i) => {
      if (misses.length > 1 || (misses.length === 1 && misses[0] !== facet)) return;
      for (const value of values[i] ?? []) tallies[facet].set(value, (tallies[facet].get(value) ?? 0) + 1);
    });
  }
  const counts = Object.fromEntries(
    FACETS.map((facet) => [facet, ordered(facet, tallies[facet])]),
  ) as Selection["counts"];
  return { found, counts };
}

function ordered(facet: Facet, tally: Map<string, number>): { value: string; count: number }[] {
  const list = [...tally].map(([value, count]) => ({ value, count }));
  const borders = facet === "duration" ? DURATIONS : facet === "cost" ? COSTS : null;
  if (borders) {
    const place = (value: string): number => {
      const at = borders.findIndex(([, name]) => name === value);
      return at < 0 ? borders.length : at;
    };
    return list.sort((a, b) => place(a.value) - place(b.value));
  }
  return list.sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
}

const haystacks = new WeakMap<RunEntry, string>();

/** What the words are looked for in: all of the entry, nothing of the run's contents. */
function haystack(run: RunEntry): string {
  let text = haystacks.get(run);
  if (text === undefined) {
    text = [
      run.run,
      run.task,
      run.model,
      run.outcome,
      run.disposition,
      run.error,
      run.parent ?? "",
      ...run.tools,
      ...Object.keys(run.permissions),
    ]
      .join("\n")
      .toLowerCase();
    haystacks.set(run, text);
  }
  return text;
}

export const ORDERS = ["started", "outcome", "task", "model", "steps", "seconds", "tokens", "cost", "denied"] as const;
export type Order = (typeof ORDERS)[number];

/** The runs in order; what is unknown comes last whichever way. Equal ones keep their places. */
export function inOrder(runs: readonly RunEntry[], by: Order, down: boolean): RunEntry[] {
  const key = (run: RunEntry): string | number | null => {
    if (by === "denied") return run.permissions["denied"] ?? 0;
    const value = run[by];
    return value === "" ? null : value;
  };
  return runs
    .map((run, place) => ({ run, place, key: key(run) }))
    .sort((a, b) => {
      if (a.key === null || b.key === null)
        return (a.key === null ? 1 : 0) - (b.key === null ? 1 : 0) || a.place - b.place;
      const order = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
      return (down ? -order : order) || a.place - b.place;
    })
    .map(({ run }) => run);
}
