/** Outlines made from plain lists, and a run of any length made from a seed: what the timeline's tests draw. */
import { Mark, type MarkCode, type Outline, PERMISSIONS, Status, type StatusCode } from "../../src/core/types";

export interface MadeStep {
  t0: number;
  t1: number;
  status?: StatusCode;
  name?: string;
  detail?: string;
  lane?: number;
  seq?: number;
}
export interface MadeSpan {
  t0: number;
  t1: number;
  track: "decision" | "tool" | "network";
  status?: StatusCode;
  name?: string;
  code?: number;
  seq?: number;
  step?: number;
}
export interface MadeMark {
  t: number;
  mark: MarkCode;
  sub?: number;
  name?: string;
  seq?: number;
  step?: number;
}

export function madeOutline(parts: {
  steps?: MadeStep[];
  spans?: MadeSpan[];
  marks?: MadeMark[];
  lanes?: string[];
  span?: [number, number];
}): Outline {
  const { steps = [], lanes = ["main"] } = parts;
  const spans = (parts.spans ?? []).slice().sort((a, b) => a.t0 - b.t0);
  const marks = (parts.marks ?? []).slice().sort((a, b) => a.t - b.t);
  const times = [
    ...steps.flatMap((s) => [s.t0, s.t1]),
    ...spans.flatMap((s) => [s.t0, s.t1]),
    ...marks.map((m) => m.t),
  ];
  const last = times.reduce((a, b) => Math.max(a, b), 0);
  const step = (i: number): MadeStep => steps[i] ?? { t0: 0, t1: 0 };
  const of = (seq: number): number => {
    let found = -1;
    for (let i = 0; i < steps.length; i++) if ((step(i).seq ?? i) <= seq) found = i;
    return found;
  };
  const zero = (): number => 0;
  return {
    version: 1,
    scanned: 1,
    total: 1,
    done: true,
    span: parts.span ?? [0, last],
    lanes,
    text: () => "",
    steps: {
      length: steps.length,
      seq: (i) => step(i).seq ?? i,
      end: (i) => step(i).seq ?? i,
      t0: (i) => step(i).t0,
      t1: (i) => step(i).t1,
      lane: (i) => step(i).lane ?? 0,
      status: (i) => step(i).status ?? Status.ok,
      name: (i) => step(i).name ?? "tool",
      detail: (i) => step(i).detail ?? "",
      thought: () => "",
      observed: () => "",
      model: () => "",
      tokensIn: zero,
      tokensOut: zero,
      think: zero,
      tool: zero,
      environment: zero,
      denied: zero,
      requested: zero,
      consoleLines: zero,
      requests: zero,
      retries: zero,
      screenshot: () => -1,
      of,
    },
    spans: {
      length: spans.length,
      t0: (i) => spans[i]?.t0 ?? 0,
      t1: (i) => spans[i]?.t1 ?? 0,
      seq: (i) => spans[i]?.seq ?? 0,
      step: (i) => spans[i]?.step ?? 0,
      track: (i) => spans[i]?.track ?? "tool",
      status: (i) => spans[i]?.status ?? Status.ok,
      name: (i) => spans[i]?.name ?? "",
      code: (i) => spans[i]?.code ?? 0,
    },
    marks: {
      length: marks.length,
      t: (i) => marks[i]?.t ?? 0,
      seq: (i) => marks[i]?.seq ?? 0,
      step: (i) => marks[i]?.step ?? 0,
      mark: (i) => marks[i]?.mark ?? Mark.error,
      sub: (i) => marks[i]?.sub ?? 0,
      name: (i) => marks[i]?.name ?? "",
    },
  };
}

/** Numbers from 0 to 1 that a seed decides. */
export function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const SECOND = 1e9;
const TOOLS = ["browser.goto", "browser.click", "browser.fill", "orders.read", "http.post", "shell.run", "file.read"];

/** A run of `count` steps: decisions, tools, requests, console, permissions, a long pause in the middle, a failure at its end. */
export function madeRun(count: number, seed = 7): Outline {
  const next = chance(seed);
  const steps: MadeStep[] = [],
    spans: MadeSpan[] = [],
    marks: MadeMark[] = [];
  const word = (name: (typeof PERMISSIONS)[number]): number => PERMISSIONS.indexOf(name);
  let t = 0,
    seq = 1;
  for (let i = 0; i < count; i++) {
    if (i === Math.floor(count * 0.45)) t += 11 * 3600 * SECOND;
    const begin = t,
      first = seq++;
    const think = (0.4 + next() * 3) * SECOND,
      work = (0.2 + next() * next() * 9) * SECOND;
    spans.push({ t0: t, t1: t + think, track: "decision", name: "gpt-5", seq: first, step: i });
    t += think;
    const name = TOOLS[Math.floor(next() * TOOLS.length)] ?? "tool";
    const asks = next() < 0.12,
      isDenied = i === count - 3 || next() < 0.01;
    if (asks || isDenied) {
      marks.push({ t, mark: Mark.permission, sub: word("requested"), name, seq: seq++, step: i });
      t += next() * SECOND;
      const answer = isDenied ? "denied" : next() < 0.3 ? "auto_approved" : next() < 0.1 ? "escalated" : "granted";
      marks.push({ t, mark: Mark.permission, sub: word(answer), name, seq: seq++, step: i });
    }
    const failed = i === count - 2 || next() < 0.02;
    spans.push({
      t0: t,
      t1: t + work,
      track: "tool",
      name,
      status: failed ? Status.failed : Status.ok,
      seq: seq++,
      step: i,
    });
    for (let r = 0, at = t; r < 1 + next() * 4 && at < t + work; r++) {
      const took = (0.05 + next() * 0.8) * SECOND;
      const odd = next();
      spans.push({
        t0: at,
        t1: at + took,
        track: "network",
        name: "GET /orders",
        code: odd < 0.03 ? 500 : odd < 0.09 ? 404 : 200,
        status: odd < 0.03 ? Status.failed : Status.ok,
        seq: seq++,
        step: i,
      });
      at += took + next() * 0.3 * SECOND;
    }
    if (next() < 0.3)
      marks.push({
        t: t + work / 2,
        mark: Mark.console,
        sub: next() < 0.1 ? 2 : next() < 0.3 ? 1 : 0,
        name: "a line",
        seq: seq++,
        step: i,
      });
    if (next() < 0.03) marks.push({ t: t + work / 3, mark: Mark.retry, name: "again", seq: seq++, step: i });
    if (i % 20 === 19) marks.push({ t: t + work, mark: Mark.checkpoint, name: "checkpoint", seq: seq++, step: i });
    if (failed) marks.push({ t: t + work, mark: Mark.error, name: "TimeoutError", seq: seq++, step: i });
    t += work;
    steps.push({
      t0: begin,
      t1: t,
      status: isDenied ? Status.denied : failed ? Status.failed : Status.ok,
      name,
      detail: `/orders/${i}`,
      seq: first,
    });
    t += next() * 0.4 * SECOND;
  }
  marks.push({ t, mark: Mark.outcome, name: "failed", seq: seq++, step: count - 1 });
  return madeOutline({ steps, spans, marks, span: [0, t] });
}
