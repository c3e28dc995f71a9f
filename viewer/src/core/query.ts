/** What a search is asked, and what it answers. */
export interface Query {
  text: string;
  regex: boolean;
  matchCase: boolean;
  /** Whether observations and requests are masked, but for the rows in `revealed` (pairs of first and last). */
  masked: boolean;
  revealed: [number, number][];
}

export interface Hit {
  seq: number;
  t: number;
  lane: string;
  /** `action/tool_call`, and where in it: `arguments.text`. */
  kind: string;
  where: string;
  before: string;
  match: string;
  after: string;
}

export interface Found {
  /** Those that came since the last time. */
  hits: Hit[];
  rows: number;
  done: boolean;
  /** More than anybody reads: the search stopped there. */
  full: boolean;
  /** What was not looked into. */
  left: { masked: number; contents: number };
}

/** The expression of a query. Throws a `SyntaxError` for one that is none. */
export function expressionOf({ text, regex, matchCase }: Query): RegExp {
  return new RegExp(regex ? text : text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), `gu${matchCase ? "" : "i"}`);
}

/** Whether a row holds what is masked: what came back from the world, and the requests that carry it on. */
export function sensitive(row: { kind: string; src: string }): boolean {
  return row.kind === "observation" ? row.src !== "sample" : row.kind === "decision" && row.src === "request";
}
