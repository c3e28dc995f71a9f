/** A tree after its deltas is the tree that was full at the end, whatever they were; what does not fit is said. */
import { describe, expect, it } from "vitest";
import { applyDeltas } from "../../src/panes/stage/tree/apply";
import { treeChanges } from "../../src/panes/stage/tree/changes";
import { findActedOn } from "../../src/panes/stage/tree/find";
import { readTree, walk, type Tree } from "../../src/panes/stage/tree/tree";
import { dice, type Dice } from "./dice";

interface Plain {
  role: string;
  name: string;
  ref: string;
  value?: string;
  states: string[];
  children: Plain[];
}

/** A page of random nodes, and after it what a recorder would write as it changes: the delta and the new page. */
function page(roll: Dice, size: number): { root: Plain; next: () => number } {
  let refs = 0;
  const next = (): number => (refs += 1);
  const make = (): Plain => ({
    role: roll.one(["button", "link", "row", "textbox"]),
    name: roll.word(),
    ref: `e${next()}`,
    states: [],
    children: [],
  });
  const root = make();
  const all = [root];
  while (all.length < size) {
    const node = make();
    const siblings = roll.one(all).children;
    siblings.splice(roll.upTo(siblings.length), 0, node);
    all.push(node);
  }
  return { root, next };
}

function nodes(root: Plain): { node: Plain; parent: Plain | null }[] {
  return [
    { node: root, parent: null },
    ...root.children.flatMap((child) => nodes(child).map(({ node, parent }) => ({ node, parent: parent ?? root }))),
  ];
}

function change(root: Plain, roll: Dice, next: () => number): unknown {
  const delta = { removed: [] as string[], changed: [] as unknown[], added: [] as unknown[] };
  for (let k = roll.upTo(3); k > 0; k -= 1) {
    const { node, parent } = roll.one(nodes(root));
    if (parent === null) continue;
    parent.children.splice(parent.children.indexOf(node), 1);
    delta.removed.push(node.ref);
  }
  for (let k = roll.upTo(3); k > 0; k -= 1) {
    const { node } = roll.one(nodes(root));
    const entry: Record<string, unknown> = { ref: node.ref };
    if (roll.upTo(1) === 1) entry.name = node.name = roll.word();
    if (roll.upTo(1) === 1) entry.states = node.states = [roll.one(["disabled", "checked", "focused"])];
    if (roll.upTo(1) === 1) {
      entry.value = roll.upTo(1) === 1 ? roll.word() : null;
      if (entry.value === null) delete node.value;
      else node.value = entry.value as string;
    }
    delta.changed.push(structuredClone(entry));
  }
  for (let k = roll.upTo(3); k > 0; k -= 1) {
    const { node: parent } = roll.one(nodes(root));
    const node: Plain = {
      role: "row",
      name: roll.word(),
      ref: `e${next()}`,
      states: [],
      children: [{ role: "cell", name: roll.word(), ref: `e${next()}`, states: [], children: [] }],
    };
    const index = roll.upTo(parent.children.length);
    parent.children.splice(index, 0, node);
    delta.added.push({ parent: parent.ref, index, node: structuredClone(node) });
  }
  return delta;
}

const shape = (tree: Tree): unknown =>
  [...walk(tree)].map(({ node: { children: _, ...rest }, depth }) => ({ ...rest, depth }));

describe("deltas", () => {
  it("give the full tree that was there in the end", () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const roll = dice(seed);
      const { root, next } = page(roll, 2 + roll.upTo(60));
      const begin = readTree(structuredClone(root))!;
      const before = shape(begin);
      const deltas = Array.from({ length: roll.upTo(8) }, () => change(root, roll, next));
      const { tree, misfits } = applyDeltas(begin, deltas);
      expect(misfits).toEqual([]);
      expect(shape(tree), `seed ${seed}`).toEqual(shape(readTree(root)!));
      expect(tree.size).toBe(nodes(root).length);
      expect(shape(begin), "the tree before stays as it was").toEqual(before);
    }
  });

  it("are the same in one go and one by one", () => {
    const roll = dice(7);
    const { root, next } = page(roll, 40);
    const begin = readTree(structuredClone(root))!;
    const deltas = Array.from({ length: 12 }, () => change(root, roll, next));
    const stepwise = deltas.reduce<Tree>((tree, delta) => applyDeltas(tree, [delta]).tree, begin);
    expect(shape(stepwise)).toEqual(shape(applyDeltas(begin, deltas).tree));
  });

  it("leave out what does not fit, say it, and apply the rest", () => {
    const begin = readTree({ role: "main", ref: "e1", children: [{ role: "button", ref: "e2", name: "Save" }] })!;
    const { tree, misfits } = applyDeltas(begin, [
      {
        removed: ["e9"],
        changed: [{ ref: "e8", name: "x" }, 5, { ref: "e2", name: "Send" }],
        added: [{ parent: "e7", node: { role: "row" } }, { parent: "e1" }],
      },
      "nonsense",
      null,
    ]);
    expect(misfits).toHaveLength(7);
    expect(tree.roots[0]!.children[0]!.name).toBe("Send");
    expect(tree.size).toBe(2);
  });

  it("know no ref of what was removed with its parent", () => {
    const begin = readTree({
      role: "main",
      ref: "e1",
      children: [{ role: "list", ref: "e2", children: [{ role: "listitem", ref: "e3" }] }],
    })!;
    const { tree, misfits } = applyDeltas(begin, [{ removed: ["e2"], changed: [{ ref: "e3", name: "gone" }] }]);
    expect(misfits).toEqual(["changed: no node e3"]);
    expect(tree.size).toBe(1);
  });
});

describe("a tree from strangers", () => {
  it("is read at any depth, and cut where it is too large, with numbers", () => {
    let deep: Record<string, unknown> = { role: "leaf" };
    for (let i = 0; i < 50_000; i += 1) deep = { role: "group", children: [deep] };
    expect(readTree(deep, 60_000)!.size).toBe(50_001);
    const cut = readTree(deep, 10)!;
    expect([cut.size, cut.cut]).toEqual([10, 49_991]);
  });

  it("takes fields of other types for none", () => {
    const tree = readTree({
      role: 5,
      name: {},
      ref: ["x"],
      value: null,
      states: "disabled",
      box: [1, 2, -3, NaN],
      children: [null, 7, "bare", { role: "x", states: [1, {}, "y"] }],
    })!;
    expect(tree.roots[0]).toMatchObject({ role: "5", name: "", ref: null, value: null, states: [], box: null });
    expect(tree.roots[0]!.children.map(({ role, name, states }) => [role, name, states])).toEqual([
      ["text", "bare", []],
      ["x", "", ["1", "y"]],
    ]);
    for (const none of [null, 5, "text", [], {}, [1, 2]]) expect(readTree(none)).toBeNull();
  });
});

describe("changes", () => {
  const before = readTree({
    role: "main",
    ref: "e1",
    children: [
      { role: "button", ref: "e2", name: "Pay", states: ["focused"] },
      { role: "list", ref: "e4", children: [{ role: "listitem", ref: "e5" }] },
    ],
  })!;
  const after = readTree({
    role: "main",
    ref: "e1",
    children: [
      { role: "button", ref: "e2", name: "Pay", states: ["disabled"] },
      { role: "alert", ref: "e3", name: "No", children: [{ role: "text", name: "No" }] },
    ],
  })!;

  it("name states that came and went, and of a subtree its top", () => {
    expect(treeChanges(before, after).lines.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      "added disabled e2",
      "removed focused e2",
      "added alert “No” e3",
      "removed list e4",
    ]);
    expect(treeChanges(after, after).lines).toEqual([]);
  });

  it("know a node without a ref by its place", () => {
    const one = readTree({
      role: "main",
      children: [
        { role: "row", name: "a" },
        { role: "row", name: "a" },
        { role: "row", name: "b" },
      ],
    })!;
    const two = readTree({
      role: "main",
      children: [
        { role: "row", name: "a" },
        { role: "row", name: "b" },
        { role: "row", name: "c" },
      ],
    })!;
    expect(treeChanges(one, two).lines.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      "added row “c”",
      "removed row “a”",
    ]);
  });
});

describe("the acted-on element", () => {
  const tree = readTree({
    role: "main",
    box: [0, 0, 100, 100],
    children: [
      { role: "button", name: "Go", ref: "e1", box: [10, 10, 50, 50] },
      { role: "link", name: "Go", ref: "e2", box: [20, 20, 10, 10] },
      { role: "button", name: "Stop", ref: "e3" },
    ],
  })!;
  const aim = { ref: null, role: null, name: null, point: null };
  const found = (extra: Partial<Parameters<typeof findActedOn>[1]>): string | null =>
    findActedOn(tree, { ...aim, ...extra })?.ref ?? null;

  it("is found by ref first, then by role and name, by place last", () => {
    expect(found({ ref: "e3", role: "link", name: "Go", point: [25, 25] })).toBe("e3");
    expect(found({ ref: "e99", role: "link", name: "Go" })).toBe("e2");
    expect(found({ name: "Go" })).toBe("e1");
    expect(found({ role: "button", name: "Nothing", point: [25, 25] })).toBe("e2");
    expect(found({ point: [15, 15] })).toBe("e1");
    expect(found({})).toBeNull();
    expect(found({ point: [500, 500] })).toBeNull();
  });
});
