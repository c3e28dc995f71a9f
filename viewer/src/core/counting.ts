/**
 * When a step begins, and which call of a model a tool's run answers: the rules of `engine/tally.py` and `engine/steps.py`.
 */
import type { Json } from "./fields";
import { plain } from "./values";

const OPEN_CALLS = 4096; // calls that a model asked for and nobody answered; of more the oldest are given up

/** One step for each decision with its retries, or for each explicit marker. */
export class StepCounter {
  private open = new Map<string, number>(); // explicit steps that are open in each lane
  private last = new Map<string, { key: string; failed: boolean }>();
  private lanes = new Map<string, string>(); // call -> lane

  marker(lane: string, begins: boolean): void {
    this.open.set(lane, Math.max(0, (this.open.get(lane) ?? 0) + (begins ? 1 : -1)));
  }

  /** A decision starts: whether it opens a step, and whether it tries again what failed. */
  request(lane: string, call: string, key: string): { opens: boolean; again: boolean } {
    const before = this.last.get(lane),
      again = before !== undefined && before.failed && before.key === key;
    this.last.set(lane, { key, failed: false });
    this.lanes.set(call, lane);
    return { opens: !again && !this.open.get(lane), again };
  }

  response(call: string, failed: boolean): void {
    const lane = this.lanes.get(call),
      last = lane === undefined ? undefined : this.last.get(lane);
    this.lanes.delete(call);
    if (last) last.failed = failed;
  }
}

/** Whether a finished decision is one that clients retry. */
export function failedResponse(data: Json): boolean {
  return "error" in data || data.closed_by === "upstream" || (typeof data.status === "number" && data.status >= 400);
}

/** A call that a model asked for. */
export interface Asked {
  id: string;
  name: string;
  arguments: string;
  step: number;
  /** Its place among the step's calls. */
  place: number;
}

/** Calls that a model asked for and nobody answered yet. */
export class OpenCalls {
  private calls = new Set<Asked>();
  private byId = new Map<string, Asked>();
  private byName = new Map<string, Set<Asked>>();

  add(call: Asked): void {
    if (this.calls.size === OPEN_CALLS) this.close(this.calls.values().next().value as Asked);
    this.calls.add(call);
    this.byId.set(call.id, call);
    const named = this.byName.get(call.name);
    if (named) named.add(call);
    else this.byName.set(call.name, new Set([call]));
  }

  close(call: Asked): void {
    this.calls.delete(call);
    const named = this.byName.get(call.name);
    named?.delete(call);
    if (named?.size === 0) this.byName.delete(call.name);
    if (this.byId.get(call.id) === call) this.byId.delete(call.id);
  }

  askedAs(id: string): Asked | undefined {
    return this.byId.get(id);
  }

  /** Whether the arguments decide which call of this name a run answers. */
  needsArguments(name: string): boolean {
    return (this.byName.get(name)?.size ?? 0) > 1;
  }

  /** The call that a tool's run answers: with the same arguments, else the first of its name. */
  runAs(name: string, inputs: unknown): Asked | undefined {
    const named = [...(this.byName.get(name) ?? [])];
    if (named.length < 2) return named[0];
    const wanted = sorted(plain(inputs));
    return named.find((call) => sameArguments(call.arguments, wanted)) ?? named[0];
  }
}

function sameArguments(text: string, wanted: string): boolean {
  try {
    return sorted(JSON.parse(text)) === wanted;
  } catch {
    return false;
  }
}

/** JSON with sorted keys, so that equal values are equal texts. */
export function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
