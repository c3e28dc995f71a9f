/** What a step's action says of what it did, as two runs can be compared by it. */
import type { Outline } from "../../core/types";
import { settled } from "../../core/volatile";

/** Name and arguments, ids and dates aside. What an answer said differs between any two runs. */
export function tellingOf({ steps }: Outline, i: number): string {
  const name = steps.name(i);
  return name.startsWith("(") ? name : `${name} ${settled(steps.detail(i))}`;
}
