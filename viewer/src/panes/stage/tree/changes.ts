/**
 * What is different between two trees of one stream: nodes that came, went, or say something else.
 *
 * A node is known again by its ref; without refs by its place (role, name and number among equals below its parent).
 * Of a subtree that came or went, its top counts, not everything below.
 */
import { typedNodes, walk, type Tree, type TreeNode } from "./tree";

export interface Line {
  kind: "added" | "removed" | "changed";
  text: string;
  node: TreeNode;
  /** The text is what stands in a field; masked with it. */
  typed: boolean;
}

export interface Changes {
  /** Nodes of the newer tree, all below an added one too. */
  marks: Map<TreeNode, "added" | "changed">;
  /** One line a change, newest words first: for the chips below the tree. */
  lines: Line[];
}

export function treeChanges(before: Tree, after: Tree): Changes {
  const typed = new Set([...typedNodes(before), ...typedNodes(after)]);
  const old = keyed(before);
  const fresh = keyed(after);
  const changes: Changes = { marks: new Map(), lines: [] };
  for (const [key, { node, parent }] of fresh) {
    const was = old.get(key)?.node;
    if (was === undefined) {
      changes.marks.set(node, "added");
      if (parent === null || changes.marks.get(parent) !== "added") {
        changes.lines.push({ kind: "added", text: label(node), node, typed: typed.has(node) });
      }
      continue;
    }
    const said = fieldChanges(was, node);
    if (said.length === 0) continue;
    changes.marks.set(node, "changed");
    for (const line of said) changes.lines.push({ ...line, node, typed: typed.has(node) });
  }
  const gone = new Set<TreeNode>();
  for (const [key, { node, parent }] of old) {
    if (fresh.has(key)) continue;
    gone.add(node);
    if (parent === null || !gone.has(parent))
      changes.lines.push({ kind: "removed", text: label(node), node, typed: typed.has(node) });
  }
  return changes;
}

function keyed(tree: Tree): Map<string, { node: TreeNode; parent: TreeNode | null }> {
  const keys = new Map<string, { node: TreeNode; parent: TreeNode | null }>();
  const own = new Map<TreeNode, string>();
  for (const { node, parent } of walk(tree)) {
    const place = `${parent === null ? "" : own.get(parent)}/${node.role}`;
    let key = node.ref === null ? `${place} ${node.name}` : `#${node.ref}`;
    for (let n = 2; keys.has(key); n += 1) key = `${place} ${node.name} ${n}`;
    // A long path says no more than a short one as long as both trees make it alike.
    own.set(node, key.length > 200 ? `~${hash(key)}` : key);
    keys.set(key, { node, parent });
  }
  return keys;
}

/** FNV-1a: only to keep keys of deep trees short. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return `${value.toString(36)}.${text.length}`;
}

function fieldChanges(was: TreeNode, is: TreeNode): { kind: "added" | "removed" | "changed"; text: string }[] {
  const lines: { kind: "added" | "removed" | "changed"; text: string }[] = [];
  const who = is.ref ?? is.role;
  for (const state of is.states)
    if (!was.states.includes(state)) lines.push({ kind: "added", text: `${state} ${who}` });
  for (const state of was.states)
    if (!is.states.includes(state)) lines.push({ kind: "removed", text: `${state} ${who}` });
  if (was.name !== is.name || was.role !== is.role) lines.push({ kind: "changed", text: label(is) });
  // The value itself is masked where values are; that it changed is not.
  if (was.value !== is.value) lines.push({ kind: "changed", text: `value ${who}` });
  return lines;
}

export function label(node: TreeNode): string {
  const name = node.name.length > 40 ? `${node.name.slice(0, 39)}…` : node.name;
  return [node.role, name === "" ? "" : `“${name}”`, node.ref ?? ""].filter((part) => part !== "").join(" ");
}
