/** Aria snapshots give the same nodes as JSON trees, and no line of them is lost. */
import { expect, it } from "vitest";
import { readSnapshot } from "../../src/panes/stage/tree/snapshot";
import { walk } from "../../src/panes/stage/tree/tree";

const lines = (text: string): unknown[] =>
  [...walk(readSnapshot(text))].map(({ node, depth }) => [
    depth,
    node.role,
    node.name,
    node.ref,
    node.value,
    node.states,
  ]);

it("reads roles, names, refs, states, values and depth", () => {
  expect(
    lines(`- main "Order":
  - heading "Order 10-4471" [level=1] [ref=e3]
  - textbox "Reason" [ref=e18]: broken glass
  - button "Issue \\"refund\\"" [disabled] [ref=e21] [cursor=pointer]
  - list:
    - listitem: Lamp
  - 'link "Terms: all" [ref=e24]':
    - /url: /terms
  - text: "two: words"
`),
  ).toEqual([
    [0, "main", "Order", null, null, []],
    [1, "heading", "Order 10-4471", "e3", null, ["level=1"]],
    [1, "textbox", "Reason", "e18", "broken glass", []],
    [1, "button", 'Issue "refund"', "e21", null, ["disabled"]],
    [1, "list", "", null, null, []],
    [2, "listitem", "Lamp", null, null, []],
    [1, "link", "Terms: all", "e24", null, ["url: /terms"]],
    [1, "text", "two: words", null, null, []],
  ]);
});

it("keeps a line that is no node as text", () => {
  expect(
    lines("Just words, [and brackets\n\n   deeper words: here\n[12] button Save").map((line) =>
      (line as unknown[]).slice(0, 3),
    ),
  ).toEqual([
    [0, "text", "Just words, [and brackets"],
    [1, "text", "deeper words: here"],
    [0, "text", "[12] button Save"],
  ]);
});

it("cuts a huge one with a number", () => {
  const tree = readSnapshot('- row "x"\n'.repeat(1_000), 100);
  expect([tree.size, tree.cut]).toEqual([100, 900]);
});
