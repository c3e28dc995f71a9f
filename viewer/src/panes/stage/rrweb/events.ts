/**
 * rrweb events from strangers: checked, sorted, and with everything taken out that could reach a network or hold a
 * script.
 *
 * The replayer's frame runs no scripts and the page's policy lets it load nothing; but a `<link rel=preconnect>` asks
 * no policy, and field values have to be masked before anybody draws them. No recursion follows the recorded depth.
 */
import { isObject } from "../../../core/fields";
import { quietStyles } from "../dom/document";
import { ADDRESSES } from "../addresses";

export interface RrwebEvent {
  type: number;
  timestamp: number;
  data: Record<string, unknown>;
}

const FULL = 2;
const INCREMENTAL = 3;
const MUTATION = 0;
const INPUT = 5;
const DROPPED = new Set([
  "script",
  "noscript",
  "meta",
  "base",
  "object",
  "embed",
  "applet",
  "frame",
  "frameset",
  "portal",
  "fencedframe",
]);
const MASK = "masked";

/**
 * Those of `values` that are events, in the order of their time. They are cleaned in place: whoever calls has just
 * parsed them for this, and a copy of a deep one would overflow the stack.
 */
export function cleanEvents(values: readonly unknown[], mask: boolean): RrwebEvent[] {
  const events: RrwebEvent[] = [];
  for (const value of values) {
    if (!isObject(value) || typeof value.type !== "number" || typeof value.timestamp !== "number") continue;
    if (!Number.isFinite(value.timestamp)) continue;
    events.push({
      ...value,
      type: value.type,
      timestamp: value.timestamp,
      data: isObject(value.data) ? value.data : {},
    });
  }
  for (const event of events) cleanEvent(event, mask);
  return events.sort((a, b) => a.timestamp - b.timestamp);
}

/** Whether a list has a full snapshot, which a replay can begin at. */
export function hasFull(values: readonly unknown[]): boolean {
  return values.some((value) => isObject(value) && value.type === FULL);
}

function cleanEvent(event: RrwebEvent, mask: boolean): void {
  const { data } = event;
  if (event.type === FULL) cleanNode(data.node, mask);
  if (event.type !== INCREMENTAL) return;
  if (data.source === MUTATION) {
    for (const added of list(data.adds)) if (isObject(added)) cleanNode(added.node, mask);
    for (const changed of list(data.attributes)) {
      if (isObject(changed) && isObject(changed.attributes)) cleanAttributes(changed.attributes, "", mask);
    }
  } else if (data.source === INPUT && mask && typeof data.text === "string" && data.text !== "") {
    data.text = MASK;
  }
}

function cleanNode(root: unknown, mask: boolean): void {
  const todo: unknown[] = [root];
  while (todo.length > 0) {
    const node = todo.pop();
    if (!isObject(node)) continue;
    const tag = typeof node.tagName === "string" ? node.tagName.toLowerCase() : "";
    const attributes = isObject(node.attributes) ? node.attributes : {};
    // The replayer needs every id that later events name, so a node is emptied in its place and not cut out.
    if (DROPPED.has(tag) || (tag === "link" && typeof attributes._cssText !== "string")) {
      node.tagName = "template";
      node.attributes = {};
      node.childNodes = [];
      continue;
    }
    if (tag !== "") cleanAttributes(attributes, tag, mask);
    if (tag === "style")
      for (const child of list(node.childNodes))
        if (isObject(child) && typeof child.textContent === "string")
          child.textContent = quietStyles(child.textContent);
    if (mask && tag === "textarea")
      for (const child of list(node.childNodes)) if (isObject(child)) child.textContent = MASK;
    for (const child of list(node.childNodes)) todo.push(child);
  }
}

function cleanAttributes(attributes: Record<string, unknown>, tag: string, mask: boolean): void {
  for (const [name, value] of Object.entries(attributes)) {
    const lower = name.toLowerCase();
    const inline = typeof value === "string" && /^data:image\/(?:png|jpeg|gif|webp|svg\+xml)[;,]/i.test(value.trim());
    if (lower.startsWith("on") || (ADDRESSES.has(lower) && !inline)) delete attributes[name];
    else if ((lower === "_csstext" || lower === "style") && typeof value === "string")
      attributes[name] = quietStyles(value);
    else if (
      mask &&
      lower === "value" &&
      tag !== "option" &&
      tag !== "li" &&
      !isButton(attributes) &&
      value !== "" &&
      value !== null
    ) {
      attributes[name] = MASK;
    }
  }
}

function isButton(attributes: Record<string, unknown>): boolean {
  return ["button", "submit", "reset", "checkbox", "radio"].includes(String(attributes.type).toLowerCase());
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
