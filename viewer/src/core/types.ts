/**
 * The words that the panel's rooms share: what a recording gives, what is kept of all its rows, and what one step is.
 *
 * `core` reads and folds (no DOM), `state` holds what the user is looking at, `panes` draw. Times are nanoseconds since
 * the run began (`t` of a row; exact in a double for 104 days), durations too, unless a name says ms.
 */

/** Bytes that can be read anywhere: a dropped file, a URL with ranges, the chunks inside a one-file page. */
export interface Bytes {
  readonly size: number;
  /** Exactly `length` bytes from `offset`; rejects with `Unreadable` where they are not there. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** A row of the log as it was read. `raw` is its line without LF. */
export interface Row {
  seq: number;
  t: number;
  kind: string;
  src: string;
  lane: string;
  call?: string;
  data: Record<string, unknown>;
  [key: string]: unknown;
}

/** `{"$blob": {...}}`: a content in a file of its own. */
export interface BlobRef {
  name: string;
  size: number;
  type: string;
  tier: "ordinary" | "restricted";
}

/** Why something cannot be shown. Drawn hatched, with this reason. */
export type Missing = {
  missing: "withheld" | "expired" | "lost" | "corrupt" | "redacted" | "not-captured";
  why: string;
};

/** `worldline-index/1`, see docs/format/bundle.md. */
export interface Index {
  format: string;
  rows: number;
  raw: number;
  span: [number, number];
  blocks: { seq: number[]; t: number[]; raw: number[]; stored: number[] };
  marks: { total: number; seq: number[]; t: number[]; kind: string[]; call: (string | null)[] };
  kinds: { name: string[]; rows: number[]; others: number };
  lanes: { name: string[]; rows: number[]; others: number };
  trouble: { seq: number; t: number | null; kind: string | null } | null;
  result: string;
}

/** What the page found out about the record itself. Shown in the verdict line and the Integrity tab. */
export interface Integrity {
  /**
   * `checking` until the structure has been looked at; `unread` where it holds, and the rows were not fetched for their
   * chain; `changed` names what; `newer` opens what is understood.
   */
  verdict: "checking" | "sealed" | "unread" | "changed" | "unsealed" | "live" | "truncated" | "newer";
  signed: boolean;
  /** What was checked here: "container", "window 262144 rows 0..1203", "chain to the seal" ... */
  checked: string[];
  /** What was not looked at, since it would have to be fetched for that: "the rows", "12 contents". */
  left?: string[];
  problems: { what: string; seq?: number; offset?: number }[];
  seal?: string;
  /** Contents that were removed behind their retention (`expiry.jsonl`), where that is known. */
  expired?: number;
}

/** One line of annotations.jsonl. */
export interface Annotation {
  id: string;
  seq: number;
  at: string;
  text: string;
  who?: string;
  tag?: string;
  removed?: boolean;
}

/** One opened recording, wherever it lies. All panes read through this. */
export interface Recording {
  readonly kind: "bundle" | "directory" | "live";
  readonly label: string;
  readonly manifest: Record<string, unknown> | null;
  readonly header: Row;
  readonly index: Index;
  /** The rows of block `n` (see `index.blocks`), parsed; cached by bytes. Damaged lines are left out and counted. */
  rows(block: number): Promise<Row[]>;
  /** The row `seq`, without reading the blocks before. */
  row(seq: number): Promise<Row | null>;
  content(ref: BlobRef): Promise<Blob | Missing>;
  /** A small picture of a content, where the bundle has one. */
  thumb(name: string): Promise<Blob | null>;
  /** Media of the bundle: tracks with their key frames (`[{t, seq, at_ms}]`). */
  media(): Promise<{ track: string; blob: () => Promise<Blob>; frames: { t: number; seq: number; ms: number }[] }[]>;
  annotations(): Promise<Annotation[]>;
  /** Watch a recording that still grows. Called with the new rows, and once with "ended" or "stalled". */
  follow?(on: (rows: Row[], state: "live" | "stalled" | "ended") => void): () => void;
}

/** How a step, call or span ended. Each has a shape of its own; denied is not failed. */
export const Status = { running: 0, ok: 1, failed: 2, denied: 3, unknown: 4, note: 5 } as const;
export type StatusCode = (typeof Status)[keyof typeof Status];

/** What happened at an instant: the marks of the timeline's lanes. */
export const Mark = {
  decision: 0,
  tool: 1,
  permission: 2,
  console: 3,
  network: 4,
  screenshot: 5,
  checkpoint: 6,
  error: 7,
  retry: 8,
  loss: 9,
  observation: 10,
  outcome: 11,
} as const;
export type MarkCode = (typeof Mark)[keyof typeof Mark];

/** permission/<word> as a number, in this order: the glyph of a permission mark. */
export const PERMISSIONS = ["requested", "granted", "denied", "auto_approved", "escalated", "revoked"] as const;

/**
 * Everything that can be drawn without a body: columns of numbers and a table of texts, folded once over all rows.
 *
 * A row of the step list, a span of the timeline and a facet come from here alone. It grows while it is scanned (and
 * while a run is live); `version` counts the changes.
 */
export interface Outline {
  version: number;
  /** Rows folded so far, of `total`; `done` when all of a finished recording are. */
  scanned: number;
  total: number;
  done: boolean;
  /** The number that the first step is shown with: the steps of a branch go on from where it left its parent. 0 where missing. */
  base?: number;
  span: [number, number];
  lanes: string[];
  steps: Steps;
  spans: Spans;
  marks: Marks;
  /** Numbers of the text table; `text(0)` is "". */
  text(n: number): string;
}

/** One entry a step. `end` and `t1` are those of its last row. Three durations split the whisker: think, tool, environment. */
export interface Steps {
  length: number;
  seq(i: number): number;
  end(i: number): number;
  t0(i: number): number;
  t1(i: number): number;
  lane(i: number): number;
  status(i: number): StatusCode;
  /** The action in words: tool and its telling arguments, "(answer)", or the marker's name. */
  name(i: number): string;
  detail(i: number): string;
  /** First line of what the model thought or said; of what came back. "" where nothing; `masked` panes hide them. */
  thought(i: number): string;
  observed(i: number): string;
  model(i: number): string;
  tokensIn(i: number): number;
  tokensOut(i: number): number;
  think(i: number): number;
  tool(i: number): number;
  environment(i: number): number;
  denied(i: number): number;
  requested(i: number): number;
  consoleLines(i: number): number;
  requests(i: number): number;
  retries(i: number): number;
  /** The screenshot that was current at its end: seq of the observation row, -1 for none. */
  screenshot(i: number): number;
  /** The step that row `seq` belongs to: the last of its lane that began at or before it; -1 before the first. */
  of(seq: number, lane?: number): number;
}

/** What lasts: tool calls, model calls, HTTP exchanges of the environment. Sorted by t0. */
export interface Spans {
  length: number;
  t0(i: number): number;
  t1(i: number): number;
  seq(i: number): number;
  step(i: number): number;
  track(i: number): "decision" | "tool" | "network";
  status(i: number): StatusCode;
  name(i: number): string;
  code(i: number): number;
}

/**
 * What is an instant. Sorted by t and by row. `sub` is the permission's number, or the console's level (0 log, 1 warning,
 * 2 error). `name` is the capability, the line, of an observation its source, of a screenshot the name of its content.
 */
export interface Marks {
  length: number;
  t(i: number): number;
  seq(i: number): number;
  step(i: number): number;
  mark(i: number): MarkCode;
  sub(i: number): number;
  name(i: number): string;
}

/** A message of a request, or of an answer, as a person reads it. */
export interface Message {
  role: string;
  text: string;
  calls: { id: string | null; name: string; arguments: string }[];
  result?: { id: string; text: string };
  pictures?: Picture[];
}

/** A picture that stands in a request or a result itself. */
export interface Picture {
  type: string;
  base64: string;
}

/** What one step is, in full. Loaded when the playhead settles on it. */
export interface StepBody {
  index: number;
  rows: Row[];
  decision: Decision | null;
  calls: ToolCall[];
  permissions: PermissionCard[];
  console: ConsoleLine[];
  network: Exchange[];
  /** The newest of each observation source at or before the step's end, and what the step itself brought. */
  screens: { before: Observation | null; after: Observation | null };
  seen: { before: Observation | null; after: Observation | null };
  dom: { before: Observation | null; after: Observation | null };
  terminal: Observation[];
  rrweb: Observation[];
  /** Agent state at its end and at the end of the step before: checkpoints' agent_state, and observation/state rows. */
  state: { before: unknown; after: unknown } | null;
  acted: ActedOn | null;
}

export interface Decision {
  seq: number;
  end: number;
  route: string;
  model: string;
  seed: number | null;
  temperature: number | null;
  tokensIn: number | null;
  tokensOut: number | null;
  ms: number | null;
  text: string;
  reasoning: string;
  finish: string[];
  error: string | null;
  calls: { id: string | null; name: string; arguments: string }[];
  /** Only where the provider gave probabilities (or rollouts measured them): chosen first. */
  alternatives: { text: string; p: number; chosen: boolean }[];
  /** The request's messages, and how many of them the request before had. */
  messages: Message[] | Missing;
  kept: number;
}

export interface ToolCall {
  seq: number;
  end: number | null;
  id: string | null;
  name: string;
  arguments: unknown;
  result: unknown | Missing;
  error: string | null;
  effect: string | null;
  ms: number | null;
  ran: "recorded" | "outside" | "unknown" | "unanswered";
}

export interface PermissionCard {
  seq: number;
  /** The row that answered it, where one did. */
  answer: number | null;
  word: (typeof PERMISSIONS)[number];
  capability: string;
  facts: Record<string, unknown>;
  askedMs: number | null;
}

export interface ConsoleLine {
  seq: number;
  t: number;
  level: "log" | "info" | "warning" | "error" | "debug";
  text: string;
  where: string;
}
export interface Exchange {
  seq: number;
  t: number;
  method: string;
  url: string;
  status: number;
  ms: number;
  size: number;
  type: string;
  call: string | null;
  error: string | null;
}

/** An observation with its value: JSON as it was given, or a reference to a content. */
export interface Observation {
  seq: number;
  t: number;
  step: number;
  src: string;
  name: string | null;
  value: unknown;
  ref: BlobRef | null;
}

/** The element that the step's action was aimed at: by reference first, by place last. */
export interface ActedOn {
  verb: string;
  ref: string | null;
  role: string | null;
  name: string | null;
  selector: string | null;
  /** In CSS pixels of the screen, where known. */
  box: [number, number, number, number] | null;
  point: [number, number] | null;
}

/** The outcome in words for the verdict line, and where the panel opens. */
export interface Verdict {
  outcome: "failed" | "succeeded" | "partial" | "running" | "interrupted" | "unknown";
  /** "TimeoutError", "exit 1", "" */
  reason: string;
  /** The step it failed at, the denial that led there, the step to open on; -1 where none. */
  failedAt: number;
  deniedAt: number;
  openAt: number;
  /** What the agent said that it cost, in dollars; missing where it did not. */
  cost?: number;
  openBecause: "denied before failure" | "first failure" | "first denial" | "first divergence" | "start";
}
