/**
 * Deltas on an accessibility tree: `removed`, then `changed`, then `added`, as docs/format/kinds.md orders them.
 *
 * A pure function: the tree that goes in is not touched. An entry that does not fit (a ref that the tree does not
 * hold, another shape) is left out alone and said in `misfits`; nobody may take a tree with misfits for the whole
 * truth.
 */
import { isObject } from "../../../core/fields";
import { copyTree, makeNode, readFields, readTree, walk, type Tree, type TreeNode } from "./tree";

export interface Applied {
  tree: Tree;
  misfits: string[];
}

interface Place {
  node: TreeNode;
  parent: TreeNode | null;
}

const SAID = 20;

/** `deltas` in their order on `tree`. */
export function applyDeltas(tree: Tree, deltas: readonly unknown[]): Applied {
  const work = new Work(copyTree(tree));
  for (const delta of deltas) work.apply(delta);
  return { tree: work.tree, misfits: work.misfits };
}

class Work {
  readonly misfits: string[] = [];
  private readonly places = new Map<string, Place>();

  constructor(readonly tree: Tree) {
    for (const { node, parent } of walk(tree)) this.remember(node, parent);
  }

  apply(delta: unknown): void {
    if (typeof delta !== "object" || delta === null || Array.isArray(delta)) {
      this.misfit("a delta that is no object");
      return;
    }
    const { removed, changed, added } = delta as Record<string, unknown>;
    for (const ref of entries(removed)) this.remove(ref);
    for (const entry of entries(changed)) this.change(entry);
    for (const entry of entries(added)) this.add(entry);
  }

  private remove(ref: unknown): void {
    const place = this.place(ref, "removed");
    if (place === null) return;
    const siblings = place.parent === null ? this.tree.roots : place.parent.children;
    siblings.splice(siblings.indexOf(place.node), 1);
    this.forget(place.node);
  }

  private change(entry: unknown): void {
    if (!isObject(entry)) return this.misfit("a change that is no object");
    const place = this.place(entry.ref, "changed");
    if (place === null) return;
    readFields(place.node, entry);
    if (!("children" in entry)) return;
    const kept = { ...place.node };
    this.forget(place.node);
    const fresh = readTree({ role: kept.role, children: entry.children ?? [] });
    Object.assign(place.node, kept, { children: fresh?.roots[0]?.children ?? [] });
    this.adopt(place.node, place.parent);
  }

  private add(entry: unknown): void {
    if (!isObject(entry)) return this.misfit("an addition that is no object");
    const parent = entry.parent === null || entry.parent === undefined ? null : this.place(entry.parent, "added below");
    if (entry.parent !== null && entry.parent !== undefined && parent === null) return;
    const node = readTree(entry.node)?.roots[0];
    if (node === undefined) return this.misfit("an addition without a node");
    const siblings = parent === null ? this.tree.roots : parent.node.children;
    const index = typeof entry.index === "number" && entry.index >= 0 ? Math.floor(entry.index) : siblings.length;
    siblings.splice(Math.min(index, siblings.length), 0, node);
    this.adopt(node, parent?.node ?? null);
  }

  private place(ref: unknown, what: string): Place | null {
    const place = this.places.get(String(ref));
    if (place === undefined) this.misfit(`${what}: no node ${String(ref).slice(0, 40)}`);
    return place ?? null;
  }

  private adopt(node: TreeNode, parent: TreeNode | null): void {
    for (const entry of walk({ roots: [node], size: 0, cut: 0 })) {
      this.remember(entry.node, entry.parent ?? parent);
      this.tree.size += 1;
    }
  }

  private forget(node: TreeNode): void {
    for (const entry of walk({ roots: [node], size: 0, cut: 0 })) {
      if (entry.node.ref !== null && this.places.get(entry.node.ref)?.node === entry.node) {
        this.places.delete(entry.node.ref);
      }
      this.tree.size -= 1;
    }
  }

  /** The first node with a ref keeps it: a second one with the same was written wrongly. */
  private remember(node: TreeNode, parent: TreeNode | null): void {
    if (node.ref !== null && !this.places.has(node.ref)) this.places.set(node.ref, { node, parent });
  }

  private misfit(what: string): void {
    if (this.misfits.length < SAID) this.misfits.push(what);
  }
}

function entries(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A root for what is no tree yet, so that a caller can add to it. */
export function emptyTree(): Tree {
  return { roots: [makeNode("document")], size: 1, cut: 0 };
}
