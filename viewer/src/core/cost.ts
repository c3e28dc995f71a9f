/** What the agent said that the run cost, in dollars: `cost` among the facts of its outcome. Nothing here knows prices. */
import { isObject, type Json } from "./fields";
import { plain } from "./values";

/** Of a row `marker/outcome`, of `meta/end`, or of the result; null where it says none. */
export function costIn(data: Json): number | null {
  const facts = plain(data.facts),
    cost = isObject(facts) ? facts.cost : null;
  return typeof cost === "number" && Number.isFinite(cost) && cost >= 0 ? cost : null;
}
