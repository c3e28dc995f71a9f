/**
 * The accessibility tree as the stage holds it, read from JSON that anybody may have written.
 *
 * Nothing of a recorded tree is believed: fields of another type are left out, words are made to texts, and no
 * recursion follows its depth. `size` counts every node; those past `limit` are left out and counted in `cut`.
 */
import { isObject } from "../../../core/fields";

export type Box = [x: number, y: number, width: number, height: number];

export interface TreeNode {
  role: string;
  name: string;
  ref: string | null;
  value: string | null;
  states: string[];
  box: Box | null;
  children: TreeNode[];
}

export interface Tree {
  roots: TreeNode[];
  /** Nodes that are there, and nodes that the recorded tree has beyond the limit. */
  size: number;
  cut: number;
}

/** What is parsed without asking; a page with more nodes is rare, and the user may ask for all of them. */
export const NODES = 50_000;

export function makeNode(role: string, name = ""): TreeNode {
  return { role, name, ref: null, value: null, states: [], box: null, children: [] };
}

/** A field as text: what is no text and no number says nothing. */
function words(value: unknown): string | null {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

export function readBox(value: unknown): Box | null {
  if (!Array.isArray(value) || value.length !== 4) return null;
  const numbers = value.filter((part): part is number => typeof part === "number" && Number.isFinite(part));
  return numbers.length === 4 && numbers[2]! >= 0 && numbers[3]! >= 0 ? (numbers as Box) : null;
}

/** Every field that `source` names, into `node`. A null takes the field away. Children are not looked at. */
export function readFields(node: TreeNode, source: Record<string, unknown>): void {
  if ("role" in source) node.role = words(source.role) ?? "generic";
  if ("name" in source) node.name = words(source.name) ?? "";
  if ("ref" in source) node.ref = words(source.ref);
  if ("value" in source) node.value = words(source.value);
  if ("states" in source) {
    const states = Array.isArray(source.states) ? source.states : [];
    node.states = states
      .map(words)
      .filter((state): state is string => state !== null)
      .slice(0, 32);
  }
  if ("box" in source) node.box = readBox(source.box);
}

/** The tree in `value`: a node, or a list of them. Null where it is neither. */
export function readTree(value: unknown, limit = NODES): Tree | null {
  const sources = Array.isArray(value) ? value : [value];
  if (!sources.some((source) => isObject(source) && ("role" in source || "children" in source))) return null;
  const tree: Tree = { roots: [], size: 0, cut: 0 };
  // Depth first and from the left, so that what is cut is the end of the page.
  const todo: [source: unknown, into: TreeNode[] | null][] = sources.map(
    (source) => [source, tree.roots] as [unknown, TreeNode[]],
  );
  todo.reverse();
  while (todo.length > 0) {
    const [source, into] = todo.pop()!;
    const plain = typeof source === "string" ? { role: "text", name: source } : source;
    if (!isObject(plain)) continue;
    let children: TreeNode[] | null = null;
    if (into === null || tree.size >= limit) {
      tree.cut += 1;
    } else {
      const node = makeNode("generic");
      readFields(node, plain);
      into.push(node);
      children = node.children;
      tree.size += 1;
    }
    if (Array.isArray(plain.children)) {
      for (let i = plain.children.length - 1; i >= 0; i -= 1) todo.push([plain.children[i], children]);
    }
  }
  return tree;
}

/** Every node with its depth and parent, in the order of the page. */
export function* walk(tree: Tree): Generator<{ node: TreeNode; depth: number; parent: TreeNode | null }> {
  const todo: { node: TreeNode; depth: number; parent: TreeNode | null }[] = [];
  for (let i = tree.roots.length - 1; i >= 0; i -= 1) todo.push({ node: tree.roots[i]!, depth: 0, parent: null });
  while (todo.length > 0) {
    const entry = todo.pop()!;
    yield entry;
    const { node, depth } = entry;
    for (let i = node.children.length - 1; i >= 0; i -= 1) {
      todo.push({ node: node.children[i]!, depth: depth + 1, parent: node });
    }
  }
}

/** Roles whose content somebody typed or chose: masked with all below, where browsers repeat it in a text. */
export const FIELDS: ReadonlySet<string> = new Set([
  "textbox",
  "searchbox",
  "combobox",
  "spinbutton",
  "slider",
  "TextField",
]);

/** Nodes inside a field: their names are what the field holds. */
export function typedNodes(tree: Tree): Set<TreeNode> {
  const typed = new Set<TreeNode>();
  for (const { node, parent } of walk(tree)) {
    if (parent !== null && (FIELDS.has(parent.role) || typed.has(parent)) && node.role !== "option") typed.add(node);
  }
  return typed;
}

/** A tree that shares nothing with `tree`, so that a delta can be applied to it. */
export function copyTree(tree: Tree): Tree {
  const twins = new Map<TreeNode, TreeNode>();
  const roots: TreeNode[] = [];
  for (const { node, parent } of walk(tree)) {
    const twin: TreeNode = { ...node, states: [...node.states], children: [] };
    twins.set(node, twin);
    (parent === null ? roots : twins.get(parent)!.children).push(twin);
  }
  return { roots, size: tree.size, cut: tree.cut };
}
