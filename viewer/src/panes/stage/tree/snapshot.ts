/**
 * Aria snapshots: the text that browsers' drivers print of an accessibility tree, read into the same nodes as JSON
 * trees.
 *
 * A line a node, two spaces deeper than its parent: `- role "name" [state] [ref=e7]: value`. A line that is none of
 * that is kept as text, so nothing of what the agent saw gets lost.
 */
import { FIELDS, makeNode, NODES, readBox, type Tree, type TreeNode } from "./tree";

const LINE = /^(\s*)(?:-\s+)?(.*)$/;
const NODE =
  /^([a-zA-Z][\w-]*)(?:\s+("(?:[^"\\]|\\.)*"|\/(?:[^/\\]|\\.)+\/))?((?:\s*\[[^\]]*\])*)\s*(?::(?:\s+(.*))?)?$/;
const PROPERTY = /^\/([\w-]+):\s*(.*)$/;
const MARK = /\[([^\]]*)\]/g;
/** A role alone on its line would make any one-word line a node; these are the roles that drivers print. */
const ROLES = new Set(
  (
    "alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox " +
    "complementary contentinfo definition deletion dialog directory document emphasis feed figure form generic grid " +
    "gridcell group heading iframe img image insertion link list listbox listitem log main marquee math menu menubar " +
    "menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar " +
    "radio radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status " +
    "strong subscript superscript switch tab table tablist tabpanel term text textbox time timer toolbar tooltip tree " +
    "treegrid treeitem root RootWebArea WebArea StaticText"
  ).split(" "),
);

/** The tree that `text` prints. Always a tree: a text of any form has at least its lines. */
export function readSnapshot(text: string, limit = NODES): Tree {
  const tree: Tree = { roots: [], size: 0, cut: 0 };
  const open: { indent: number; node: TreeNode }[] = [];
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === "") continue;
    if (tree.size >= limit) {
      tree.cut += 1;
      continue;
    }
    const [, blank = "", rest = ""] = LINE.exec(line) ?? [];
    const indent = blank.replaceAll("\t", "  ").length;
    while (open.length > 0 && open.at(-1)!.indent >= indent) open.pop();
    const parent = open.at(-1)?.node ?? null;
    const property = PROPERTY.exec(unquoteKey(rest));
    if (property !== null && parent !== null) {
      parent.states.push(`${property[1]}: ${scalar(property[2] ?? "")}`);
      continue;
    }
    const node = readLine(unquoteKey(rest));
    (parent === null ? tree.roots : parent.children).push(node);
    open.push({ indent, node });
    tree.size += 1;
  }
  return tree;
}

function readLine(line: string): TreeNode {
  const match = NODE.exec(line);
  const role = match?.[1] ?? "";
  if (match === null || !(ROLES.has(role) || match[2] !== undefined || (match[3] ?? "") !== "")) {
    return makeNode("text", line);
  }
  const node = makeNode(role, match[2] === undefined ? "" : scalar(match[2]));
  for (const [, mark = ""] of (match[3] ?? "").matchAll(MARK)) {
    const [key, value] = split(mark);
    if (key === "ref" && value !== null) node.ref = value;
    else if (key === "box" && value !== null) node.box = readBox(value.split(",").map(Number));
    else if (mark.trim() !== "" && key !== "cursor") node.states.push(mark.trim());
  }
  const value = match[4] === undefined ? "" : scalar(match[4]);
  if (value === "") return node;
  // What stands behind the colon is a field's content; of everything else it is its text.
  if (FIELDS.has(role) || METERS.has(role)) node.value = value;
  else if (role === "text" || node.name === "") node.name = value;
  else node.children.push(makeNode("text", value));
  return node;
}

const METERS = new Set(["progressbar", "meter"]);

function split(mark: string): [string, string | null] {
  const at = mark.indexOf("=");
  return at < 0 ? [mark.trim(), null] : [mark.slice(0, at).trim(), mark.slice(at + 1).trim()];
}

/** `'heading "A: b" [level=1]': rest` is YAML's way to write a key with a colon inside. */
function unquoteKey(text: string): string {
  const match = /^'((?:[^']|'')*)'(:?.*)$/.exec(text);
  return match === null ? text : (match[1] ?? "").replaceAll("''", "'") + (match[2] ?? "");
}

/** A YAML scalar on one line, as text. */
function scalar(text: string): string {
  const plain = text.trim();
  if (plain.startsWith('"') && plain.endsWith('"') && plain.length > 1) {
    try {
      return String(JSON.parse(plain));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return plain.slice(1, -1);
    }
  }
  if (plain.startsWith("'") && plain.endsWith("'") && plain.length > 1) return plain.slice(1, -1).replaceAll("''", "'");
  return plain;
}
