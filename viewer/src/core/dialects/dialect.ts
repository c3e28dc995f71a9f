/** What a dialect must be able to do: one file each fills this in, `index.ts` chooses. */
import type { Message } from "../types";
import type { Assembly } from "./assembly";
import type { Body } from "./reading";

export interface ToolResult {
  id: string;
  text: string;
}

export interface Dialect {
  /** A request's messages as a person reads them. */
  messages(body: Body): Message[];
  /** The tool results that a request carries. */
  results(body: Body): ToolResult[];
  /** A whole JSON answer, and one event of a stream, into an assembly. */
  answer(assembly: Assembly, body: Body): void;
  event(assembly: Assembly, body: Body): void;
  /** The data of the event that ends a stream without being JSON. */
  end: string | null;
  /** The request's arrays that hold its messages. */
  arrays: string[];
  /** Whether an answer may be a JSON array of events. */
  listed?: boolean;
}
