/** What a study found about the run: the chance to succeed after each step, and the drops that are certified. */
import { batch, effect, signal } from "@preact/signals";
import type { Outline } from "../../core/types";
import { run, version, type Open } from "../../state/app";
import { get } from "../../state/server";

/** `GET r/<id>/study`, as the server keeps it beside the run. */
export interface Study {
  /** After step `i`: the estimate and its band. */
  curve: { i: number; v: number; lo: number; hi: number }[];
  certified: { step: number; drop: number; lo: number; hi: number }[];
  /** Its word: `decisive` ... */
  verdict: string;
  /** A draw of the decisive step that went well, where one was kept as a run. */
  rescued: { run?: string; step?: number; action?: string; rate?: number } | null;
}

export const study = signal<Study | null>(null);
/** The certified drop that was clicked, whose card is open. */
export const rescue = signal<Study["certified"][number] | null>(null);
/** The server was asked and could not say. */
export const studyTrouble = signal("");

/** Asks the server for the study of the run that is open, behind its first rows; none where no server stands behind the page. */
export function watchStudy(): () => void {
  let abort: AbortController | null = null;
  let asked: Open | null = null;
  const stop = effect(() => {
    const open = run.value;
    void version.value;
    if (open === asked || open?.outline.version === 0) return;
    asked = open;
    abort?.abort();
    batch(() => {
      study.value = null;
      rescue.value = null;
      studyTrouble.value = "";
    });
    if (!open?.server) return;
    const mine = new AbortController();
    abort = mine;
    get<Study | null>(`${open.server}study`, mine.signal).then(
      (found) => {
        if (!mine.signal.aborted) study.value = readStudy(found, open.outline.base);
      },
      (reason: unknown) => {
        if (!mine.signal.aborted) studyTrouble.value = String(reason instanceof Error ? reason.message : reason);
      },
    );
  });
  return () => {
    stop();
    abort?.abort();
  };
}

/**
 * The answer as far as it is a study; null where it is none. The server speaks of steps by people's numbers; here they are
 * places in the outline, whose first step has the number `base`.
 */
export function readStudy(answer: unknown, base = 0): Study | null {
  if (typeof answer !== "object" || answer === null) return null;
  const { curve, certified, verdict, rescued } = answer as Partial<Record<keyof Study, unknown>>;
  const points = list(curve).filter((point) => numbers(point, ["i", "v", "lo", "hi"])) as unknown as Study["curve"];
  const drops = list(certified).filter((drop) =>
    numbers(drop, ["step", "drop", "lo", "hi"]),
  ) as unknown as Study["certified"];
  if (points.length === 0 && drops.length === 0) return null;
  return {
    curve: points.map((point) => ({ ...point, i: point.i - base })).sort((a, b) => a.i - b.i),
    certified: drops.map((drop) => ({ ...drop, step: drop.step - base })),
    verdict: typeof verdict === "string" ? verdict : "",
    rescued: typeof rescued === "object" && rescued !== null ? (rescued as NonNullable<Study["rescued"]>) : null,
  };
}

/** The time a point of the curve stands at: the end of its step. */
export function timeOf(outline: Outline, i: number): number {
  const { steps } = outline;
  if (steps.length === 0) return outline.span[0];
  if (i < 0) return steps.t0(0);
  return i >= steps.length ? outline.span[1] : steps.t1(i);
}

function list(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "object" && one !== null) : [];
}

function numbers(value: Record<string, unknown>, keys: string[]): boolean {
  return keys.every((key) => typeof value[key] === "number" && Number.isFinite(value[key]));
}
