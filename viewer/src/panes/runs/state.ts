/** What the runs page shows and what is chosen on it. It stays while a run is open, so that one comes back to the same list. */
import { batch, computed, signal } from "@preact/signals";
import { openRun, openServed } from "../../state/open";
import { get } from "../../state/server";
import { type RunEntry, readRuns } from "./entries";
import { type Chosen, FACETS, type Facet, type Order, inOrder, select } from "./facets";

export const runs = signal<readonly RunEntry[] | null>(null);
/** All that the store has; the list may hold fewer. */
export const total = signal(0);
export const runsTrouble = signal("");
export const loading = signal(false);

export const words = signal("");
export const chosen = signal<Chosen>({});
export const order = signal<{ by: Order; down: boolean }>({ by: "started", down: true });
/** The run under the cursor, by its id, and those that are marked for a comparison: at most two. */
export const cursor = signal("");
export const marked = signal<readonly string[]>([]);

/** An answer holds at most so many; the next ones are asked for behind them, up to a number that no page can use. */
const PAGE = 10_000;
const MOST = 100_000;
/** Runs that the server has not looked through yet. It is asked again while there are some. */
export const pending = signal(0);
const AGAIN_MS = 1500;

export const selection = computed(() => select(runs.value ?? [], chosen.value, words.value));
export const listed = computed(() => inOrder(selection.value.found, order.value.by, order.value.down));
export const isFiltered = computed(
  () => words.value.trim() !== "" || FACETS.some((facet) => (chosen.value[facet]?.size ?? 0) > 0),
);
export const place = computed(() => listed.value.findIndex((run) => run.run === cursor.value));

export async function load(abort?: AbortSignal): Promise<void> {
  loading.value = true;
  try {
    const found = await all(abort);
    batch(() => {
      runs.value = found.runs;
      total.value = found.total;
      pending.value = found.pending;
      runsTrouble.value = "";
      if (!found.runs.some((run) => run.run === cursor.value)) cursor.value = "";
      marked.value = marked.value.filter((id) => found.runs.some((run) => run.run === id));
    });
  } catch (reason) {
    if (!abort?.aborted) runsTrouble.value = reason instanceof Error ? reason.message : String(reason);
  } finally {
    loading.value = false;
  }
}

/** Reads the catalogue until all of it has been looked through. Returns the end of it. */
export function watchRuns(): () => void {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ask = async (): Promise<void> => {
    await load(abort.signal);
    if (!abort.signal.aborted && pending.value > 0 && runsTrouble.value === "")
      timer = setTimeout(() => void ask(), AGAIN_MS);
  };
  void ask();
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}

async function all(abort?: AbortSignal): Promise<ReturnType<typeof readRuns>> {
  const found = readRuns(await get<unknown>(`api/runs?limit=${PAGE}`, abort));
  while (found.runs.length < Math.min(found.total, MOST)) {
    const more = readRuns(await get<unknown>(`api/runs?limit=${PAGE}&offset=${found.runs.length}`, abort)).runs;
    if (more.length === 0) break;
    found.runs.push(...more);
  }
  return found;
}

export function choose(facet: Facet, value: string): void {
  const set = new Set(chosen.value[facet] ?? []);
  if (!set.delete(value)) set.add(value);
  chosen.value = { ...chosen.value, [facet]: set };
}

export function clear(): void {
  batch(() => {
    chosen.value = {};
    words.value = "";
  });
}

/** Marks or unmarks a run for a comparison; of three the oldest choice gives way. */
export function mark(id: string): void {
  marked.value = marked.value.includes(id) ? marked.value.filter((one) => one !== id) : [...marked.value, id].slice(-2);
}

/** Where it went wrong first, as far as the catalogue knows. */
export function openAt(run: RunEntry): void {
  void openServed(run.run, run.troubleSeq === null ? {} : { seq: run.troubleSeq });
}

export function compareMarked(): void {
  const [left, right] = marked.value;
  if (left !== undefined && right !== undefined) void openRun([{ served: left }, { served: right }]);
}

export function sortBy(by: Order): void {
  const now = order.value;
  order.value =
    now.by === by ? { by, down: !now.down } : { by, down: by !== "task" && by !== "model" && by !== "outcome" };
}
