/** One line of the runs page, as `GET api/runs` tells it: what a catalogue knows without opening the run. */

export interface RunEntry {
  run: string;
  task: string;
  model: string;
  outcome: string;
  disposition: string;
  steps: number | null;
  /** Unix time in seconds. */
  started: number | null;
  seconds: number | null;
  tokens: number | null;
  cost: number | null;
  tools: string[];
  /** Rows by the word of the permission. */
  permissions: Record<string, number>;
  /** How it failed, as it was said; "" where it did not. */
  error: string;
  /** Where the panel opens it; null for the first step. */
  troubleStep: number | null;
  /** The row of the first trouble. */
  troubleSeq: number | null;
  parent: string | null;
}

/** The answer as entries. What is missing or of another kind is unknown; an entry without an id is left out. */
export function readRuns(answer: unknown): { total: number; pending: number; runs: RunEntry[] } {
  const { total, pending, runs } =
    typeof answer === "object" && answer !== null ? (answer as Record<string, unknown>) : {};
  const found = (Array.isArray(runs) ? runs : []).flatMap((one: unknown) => {
    const entry = typeof one === "object" && one !== null ? readRun(one as Record<string, unknown>) : null;
    return entry ? [entry] : [];
  });
  return { total: number(total) ?? found.length, pending: number(pending) ?? 0, runs: found };
}

function readRun(raw: Record<string, unknown>): RunEntry | null {
  const run = text(raw["run"]);
  if (run === "") return null;
  return {
    run,
    task: text(raw["task"]),
    model: text(raw["model"]),
    outcome: text(raw["outcome"]),
    disposition: text(raw["disposition"]),
    steps: number(raw["steps"]),
    started: number(raw["started"]),
    seconds: number(raw["seconds"]),
    tokens: number(raw["tokens"]),
    cost: number(raw["cost"]),
    tools: Array.isArray(raw["tools"])
      ? [...new Set(raw["tools"].filter((tool): tool is string => typeof tool === "string"))]
      : [],
    permissions: counts(raw["permissions"]),
    error: text(raw["error"]),
    troubleStep: number(raw["trouble_step"]),
    troubleSeq: number(raw["trouble_seq"]),
    parent: text(raw["parent"]) || null,
  };
}

/** How a run is named where there is little room: the end of its id; a bundle by its file. */
export function shortName(run: string): string {
  return run.startsWith("run_") ? run.slice(-4) : run.replace(/\.skn$/, "");
}

/** Whether it is being written now. */
export function isLive(run: RunEntry): boolean {
  return run.disposition === "running";
}

/** The class of an error: the word before the colon, of "TimeoutError: element is disabled". */
export function errorClass(error: string): string {
  const found = /^(exit \d+|[A-Za-z_][\w.]*)(?:[:(]|$)/.exec(error.trim());
  return found?.[1] ?? (error === "" ? "" : "other");
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  // A task is recorded as `{id, type, text}`.
  const { text: words, id, name } = value as { text?: unknown; id?: unknown; name?: unknown };
  return [words, id, name].find((word): word is string => typeof word === "string" && word !== "") ?? "";
}

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function counts(value: unknown): Record<string, number> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, number] => typeof pair[1] === "number" && pair[1] > 0),
  );
}
