/** The runs that belong together: what the server knows of the tree that the open run stands in. */
import { computed, effect, signal } from "@preact/signals";
import { type TreeRun, layTree } from "../../core/dag";
import { run, version } from "../../state/app";
import { runId } from "../../state/link";
import { get } from "../../state/server";

export const tree = signal<readonly TreeRun[] | null>(null);
export const treeTrouble = signal("");
export const layout = computed(() => layTree(tree.value ?? []));

/** A fork that was started and is not in the tree yet is asked for so often. */
const ASK_AGAIN_MS = 2000;

/** Asks the server for the tree, once for a run that was opened. Returns the end of it. */
export function watchTree(): () => void {
  let abort: AbortController | null = null;
  let asked: string | null = null;
  const stop = effect(() => {
    const server = run.value?.server ?? null;
    void version.value;
    // The first rows come first.
    if (server === asked || (server !== null && run.value?.outline.version === 0)) return;
    asked = server;
    abort?.abort();
    if (server === null) {
      tree.value = null;
      return;
    }
    abort = new AbortController();
    void load(server, abort.signal);
  });
  return () => {
    stop();
    abort?.abort();
  };
}

/** The tree anew, for instance after a fork was started. */
export async function load(server: string, signal?: AbortSignal): Promise<void> {
  treeTrouble.value = "";
  try {
    const found = readTree(await get<unknown>(`${server}tree`, signal));
    if (!signal?.aborted) tree.value = found;
  } catch (reason) {
    if (signal?.aborted) return;
    treeTrouble.value = reason instanceof Error ? reason.message : String(reason);
  }
}

/** Waits until the tree has a run that `known` does not name, at most `tries` times. The run's id, or null. */
export async function awaitNew(server: string, known: ReadonlySet<string>, tries = 15): Promise<string | null> {
  for (let i = 0; i < tries; i++) {
    await load(server);
    const fresh = (tree.value ?? []).find((one) => !known.has(one.run));
    if (fresh) return fresh.run;
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  }
  return null;
}

/** The server's answer as runs. Whatever it leaves out is unknown, not wrong. */
export function readTree(answer: unknown): TreeRun[] {
  const list = typeof answer === "object" && answer !== null ? (answer as { nodes?: unknown }).nodes : [];
  if (!Array.isArray(list)) return [];
  return list.flatMap((one: unknown) => {
    if (typeof one !== "object" || one === null) return [];
    const found = one as Record<string, unknown>;
    const id = text(found["run"]);
    if (id === "") return [];
    return [
      {
        run: id,
        parent: text(found["parent"]) || null,
        at: number(found["at"]),
        change: text(found["change"]),
        outcome: text(found["outcome"]),
        steps: number(found["steps"]),
        started: text(found["started"]),
        live: found["live"] === true,
      },
    ];
  });
}

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The id of the run that is open. */
export const here = computed(() => (run.value ? runId(run.value.recording.header.data) : ""));
