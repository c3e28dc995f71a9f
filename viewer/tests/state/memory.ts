/** A small recording in memory, for tests of state and panes: the refund agent of the design, denied and then failed. */
import {
  Mark,
  Status,
  type MarkCode,
  type Outline,
  type Recording,
  type Row,
  type StatusCode,
  type StepBody,
} from "../../src/core/types";
import type { Open } from "../../src/state/app";

export interface StepOf {
  name: string;
  detail?: string;
  status?: StatusCode;
  thought?: string;
  observed?: string;
  /** Milliseconds: begin, think, tool, environment. */
  at: number;
  took: [number, number, number];
  denied?: number;
  requested?: number;
}

const S = 1e6;

/** The outline of steps of ten rows each; step i begins at row 10 i. */
export function outlineOf(
  steps: readonly StepOf[],
  marks: readonly { t: number; seq: number; mark: MarkCode; sub: number; name: string }[] = [],
): Outline {
  const at = (i: number): StepOf => steps[i] ?? { name: "", at: 0, took: [0, 0, 0] };
  const end = (i: number): number => (at(i).at + at(i).took[0] + at(i).took[1] + at(i).took[2]) * S;
  const of = (seq: number): number => Math.min(Math.floor(seq / 10), steps.length - 1);
  return {
    version: 1,
    scanned: steps.length * 10,
    total: steps.length * 10,
    done: true,
    lanes: ["main"],
    text: () => "",
    span: [0, steps.length > 0 ? end(steps.length - 1) : 1],
    steps: {
      length: steps.length,
      seq: (i) => i * 10,
      end: (i) => i * 10 + 9,
      t0: (i) => at(i).at * S,
      t1: end,
      lane: () => 0,
      status: (i) => at(i).status ?? Status.ok,
      name: (i) => at(i).name,
      detail: (i) => at(i).detail ?? "",
      thought: (i) => at(i).thought ?? "",
      observed: (i) => at(i).observed ?? "",
      model: () => "gpt-5",
      tokensIn: () => 1204,
      tokensOut: () => 96,
      think: (i) => at(i).took[0] * S,
      tool: (i) => at(i).took[1] * S,
      environment: (i) => at(i).took[2] * S,
      denied: (i) => at(i).denied ?? 0,
      requested: (i) => at(i).requested ?? 0,
      consoleLines: () => 1,
      requests: () => 2,
      retries: () => 0,
      screenshot: () => -1,
      of,
    },
    spans: {
      length: steps.length,
      t0: (i) => (at(i).at + at(i).took[0]) * S,
      t1: end,
      seq: (i) => i * 10 + 3,
      step: (i) => i,
      track: () => "tool",
      status: (i) => at(i).status ?? Status.ok,
      name: (i) => at(i).name,
      code: () => 0,
    },
    marks: {
      length: marks.length,
      t: (i) => marks[i]?.t ?? 0,
      seq: (i) => marks[i]?.seq ?? 0,
      step: (i) => of(marks[i]?.seq ?? 0),
      mark: (i) => marks[i]?.mark ?? Mark.error,
      sub: (i) => marks[i]?.sub ?? 0,
      name: (i) => marks[i]?.name ?? "",
    },
  };
}

const QUIET: StepOf[] = Array.from({ length: 35 }, (_, i) => ({
  name: ["orders.list", "browser.click", "browser.fill", "orders.read"][i % 4] ?? "",
  detail: `customer 88, page ${i + 1}`,
  observed: `${5 + (i % 7)} rows`,
  at: i * 3000,
  took: [120 + (i % 5) * 300, 200 + (i % 3) * 400, 100],
  ...(i % 3 === 0 ? { thought: "I still need the order of the lamp, so I look at the next page." } : {}),
}));

export const STORY: readonly StepOf[] = [
  ...QUIET,
  {
    name: "browser.goto",
    detail: "/orders?customer=88",
    observed: "list of 20 orders",
    at: 39_800_000,
    took: [120, 300, 500],
    requested: 1,
  },
  { name: "browser.fill", detail: "“4471” into Search", observed: "1 result", at: 39_803_000, took: [200, 100, 100] },
  {
    name: "browser.click",
    detail: "“10-4471”",
    observed: "order page, 21 nodes",
    at: 39_806_000,
    took: [300, 200, 300],
  },
  {
    name: "plan",
    detail: "refund the whole order",
    status: Status.note,
    thought: "The customer asked for the lamp only; refund all to be safe.",
    at: 39_810_000,
    took: [3100, 0, 0],
  },
  {
    name: "orders.read",
    detail: "10-4471",
    observed: "Lamp 2 × $32.00, Shade $18.50",
    at: 39_816_000,
    took: [200, 300, 100],
  },
  {
    name: "http.post",
    detail: "/refund $64.00",
    status: Status.denied,
    thought: "Now I can refund it.",
    observed: "denied by money-over-50",
    at: 39_820_000,
    took: [300, 0, 400],
    denied: 1,
    requested: 1,
  },
  {
    name: "browser.click",
    detail: "“Issue refund” e21",
    status: Status.failed,
    thought: "The refund was denied, but the button is still on the page. I will press it directly.",
    observed: "TimeoutError: element is disabled, 30 s",
    at: 39_824_000,
    took: [150, 30_000, 100],
  },
  { name: "(answer)", detail: "I could not issue the refund.", status: Status.ok, at: 39_857_000, took: [200, 0, 0] },
];

export const DENIED = 40;
export const FAILED = 41;

export function story(): Open {
  const steps = STORY;
  const t = (i: number, ms: number): number => ((steps[i]?.at ?? 0) + ms) * S;
  const outline = outlineOf(steps, [
    { t: t(35, 130), seq: 352, mark: Mark.permission, sub: 1, name: "browser" },
    { t: t(40, 310), seq: 402, mark: Mark.permission, sub: 0, name: "http.post /refund" },
    { t: t(40, 340), seq: 403, mark: Mark.permission, sub: 2, name: "http.post /refund" },
    { t: t(41, 30_150), seq: 415, mark: Mark.error, sub: 0, name: "TimeoutError" },
  ]);
  return {
    outline,
    recording: recordingOf(steps, outline),
    server: null,
    annotations: [{ id: "note_1", seq: 385, at: "step:38", text: "This is where it went wrong.", tag: "cause" }],
    verdict: {
      outcome: "failed",
      reason: "TimeoutError",
      failedAt: FAILED,
      deniedAt: DENIED,
      openAt: DENIED,
      openBecause: "denied before failure",
    },
    integrity: {
      verdict: "sealed",
      signed: false,
      checked: ["container", "window 262144 rows 0..420"],
      problems: [],
      seal: "c3".repeat(32),
    },
  };
}

export function recordingOf(steps: readonly StepOf[], outline: Outline): Recording {
  const header: Row = {
    seq: 0,
    t: 0,
    kind: "meta",
    src: "header",
    lane: "main",
    data: { format: "worldline/1", run: "run_01m8n3mk88csy38cdcfnpe7f3a", agent: { name: "refund-agent" } },
  };
  const row = (seq: number): Row => ({
    seq,
    t: outline.steps.t0(Math.floor(seq / 10)) + (seq % 10),
    kind: "observation",
    src: "tool_result",
    lane: "main",
    data: { name: steps[Math.floor(seq / 10)]?.name ?? "", result: steps[Math.floor(seq / 10)]?.observed ?? "" },
  });
  return {
    kind: "bundle",
    label: "refund.skn",
    manifest: null,
    header,
    index: {
      format: "worldline-index/1",
      rows: steps.length * 10,
      raw: 0,
      span: outline.span,
      blocks: { seq: [0], t: [0], raw: [0], stored: [0] },
      marks: { total: 0, seq: [], t: [], kind: [], call: [] },
      kinds: { name: [], rows: [], others: 0 },
      lanes: { name: ["main"], rows: [], others: 0 },
      trouble: null,
      result: "",
    },
    rows: async () => Array.from({ length: steps.length * 10 }, (_, seq) => row(seq)),
    row: async (seq) => row(seq),
    content: async () => ({ missing: "not-captured", why: "a recording in memory has no contents" }),
    thumb: async () => null,
    media: async () => [],
    annotations: async () => [],
  };
}

/** The bodies of the step that failed. */
export function failedBody(open: Open): StepBody {
  const { steps } = open.outline;
  const t = steps.t0(FAILED);
  const rows: Row[] = [
    {
      seq: 410,
      t,
      kind: "decision",
      src: "request",
      lane: "main",
      call: "c40",
      data: { name: "openai.chat", body: { $context: "…" }, "gen_ai.request.model": "gpt-5" },
    },
    {
      seq: 411,
      t: t + 150 * S,
      kind: "decision",
      src: "response",
      lane: "main",
      call: "c40",
      data: { status: 200, tool_uses: [{ id: "call_9", name: "browser.click" }] },
    },
    {
      seq: 412,
      t: t + 151 * S,
      kind: "action",
      src: "tool_call",
      lane: "main",
      call: "c41",
      data: { name: "browser.click", arguments: { ref: "e21" } },
    },
    {
      seq: 415,
      t: t + 30_150 * S,
      kind: "observation",
      src: "tool_result",
      lane: "main",
      call: "c41",
      data: { name: "browser.click", error: { type: "TimeoutError", message: "element is disabled" } },
    },
  ];
  return {
    index: FAILED,
    rows,
    decision: {
      seq: 410,
      end: 411,
      route: "openai.chat",
      model: "gpt-5",
      seed: 41,
      temperature: 0.2,
      tokensIn: 1204,
      tokensOut: 96,
      ms: 150,
      text: "",
      reasoning: "The refund was denied, but the button is still on the page. I will press it directly.",
      finish: ["tool_calls"],
      error: null,
      calls: [
        { id: "call_9", name: "browser.click", arguments: '{"ref":"e21","role":"button","name":"Issue refund"}' },
      ],
      alternatives: [
        { text: "browser.click e21", p: 0.71, chosen: true },
        { text: "ask_user", p: 0.19, chosen: false },
        { text: "orders.note", p: 0.1, chosen: false },
      ],
      messages: [
        { role: "system", text: "You handle refunds. Refunds over $50 need an approval.", calls: [] },
        { role: "user", text: "Please refund the lamp of order 10-4471.", calls: [] },
        {
          role: "assistant",
          text: "",
          calls: [{ id: "call_8", name: "http.post", arguments: '{"path":"/refund","amount":64}' }],
        },
        { role: "tool", text: "", calls: [], result: { id: "call_8", text: "denied by money-over-50" } },
      ],
      kept: 2,
    },
    calls: [
      {
        seq: 412,
        end: 415,
        id: "call_9",
        name: "browser.click",
        arguments: { ref: "e21", role: "button", name: "Issue refund" },
        result: null,
        error: "TimeoutError: element is disabled",
        effect: "irreversible",
        ms: 30_000,
        ran: "recorded",
      },
    ],
    permissions: [
      {
        seq: 402,
        answer: 403,
        word: "denied",
        capability: "http.post /refund $64.00",
        facts: { policy: "v3", rule: "money-over-50", by: "policy", reason: "amounts over $50 need an approval" },
        askedMs: 30_100,
      },
    ],
    console: [
      { seq: 413, t: t + 200 * S, level: "warning", text: "button is disabled", where: "orders.js:214" },
      {
        seq: 414,
        t: t + 30_000 * S,
        level: "error",
        text: "Uncaught TimeoutError: element is disabled",
        where: "agent.js:12",
      },
    ],
    network: [
      {
        seq: 416,
        t: t + 160 * S,
        method: "GET",
        url: "https://desk.example/orders/10-4471",
        status: 200,
        ms: 80,
        size: 5_120,
        type: "text/html",
        call: "c41",
        error: null,
      },
      {
        seq: 417,
        t: t + 260 * S,
        method: "GET",
        url: "https://desk.example/api/approvals?order=10-4471",
        status: 404,
        ms: 120,
        size: 88,
        type: "application/json",
        call: "c41",
        error: null,
      },
      {
        seq: 418,
        t: t + 500 * S,
        method: "POST",
        url: "https://desk.example/api/heartbeat",
        status: 503,
        ms: 12_400,
        size: 0,
        type: "",
        call: "c41",
        error: null,
      },
    ],
    screens: { before: null, after: null },
    seen: {
      before: {
        seq: 399,
        t: t - 10 * S,
        step: 40,
        src: "window",
        name: null,
        value: { url: "https://desk.example/orders/10-4471", title: "Order 10-4471", width: 1280, height: 800 },
        ref: null,
      },
      after: null,
    },
    dom: { before: null, after: null },
    terminal: [],
    rrweb: [],
    state: {
      before: {
        budget: 312.4,
        plan: ["read", "refund", { status: "open", what: "tell the customer" }],
        notes: "one\ntwo\nthree",
      },
      after: {
        budget: 312.39,
        plan: ["read", "refund", { status: "blocked", what: "tell the customer" }],
        notes: "one\ntwo and a half\nthree",
      },
    },
    acted: { verb: "click", ref: "e21", role: "button", name: "Issue refund", selector: null, box: null, point: null },
  };
}
