/**
 * A tree as rows: role, name, states, ref; what changed is marked, the acted-on element is pink and in sight.
 */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { askReveal } from "../../state/mask";
import { WindowList } from "../steps/window-list";
import { visible } from "./visible";
import type { Changes } from "./tree/changes";
import { typedNodes, walk, type Tree, type TreeNode } from "./tree/tree";

export const ROW_HEIGHT = 21;
/** Deeper rows stand at this depth: a page of a thousand nested boxes must stay in the pane. */
const DEPTH = 24;
/** A name is cut here; the whole one is in the title. */
const NAME = 400;

interface Props {
  tree: Tree;
  changes: Changes | null;
  acted: TreeNode | null;
  /** Whether field values are hidden, and the row that a reveal is asked for. */
  hidden: boolean;
  seq: number;
}

export function TreeView({ tree, changes, acted, hidden, seq }: Props): JSX.Element {
  const rows = useMemo(() => [...walk(tree)], [tree]);
  const typed = useMemo(() => typedNodes(tree), [tree]);
  const target = useMemo(() => (acted === null ? -1 : rows.findIndex(({ node }) => node === acted)), [rows, acted]);
  const [picked, setPicked] = useState<{ tree: Tree; place: number } | null>(null);
  const active = picked?.tree === tree ? picked.place : target;
  return (
    <WindowList
      class="stage-tree mono"
      label={`Accessibility tree, ${tree.size} nodes`}
      length={rows.length}
      rowHeight={ROW_HEIGHT}
      active={active}
      onPick={(place) => setPicked({ tree, place })}
      rowClass={(place) => rowClass(rows[place]!.node, acted, changes)}
      onOpen={(place) => {
        const { node } = rows[place]!;
        if (hidden && (node.value !== null || typed.has(node))) askReveal("field", seq);
      }}
      row={(place) => (
        <Row
          {...rows[place]!}
          acted={rows[place]!.node === acted}
          typed={typed.has(rows[place]!.node)}
          hidden={hidden}
          seq={seq}
        />
      )}
      empty="The tree has no nodes."
    />
  );
}

function rowClass(node: TreeNode, acted: TreeNode | null, changes: Changes | null): string {
  const mark = changes?.marks.get(node);
  return `${node === acted ? "acted" : ""} ${mark ?? ""}`;
}

function Row({
  node,
  depth,
  acted,
  typed,
  hidden,
  seq,
}: {
  node: TreeNode;
  depth: number;
  acted: boolean;
  typed: boolean;
  hidden: boolean;
  seq: number;
}): JSX.Element {
  return (
    <span class="stage-node" style={{ paddingLeft: `${10 + Math.min(depth, DEPTH) * 14}px` }}>
      <span class="unseen">{acted ? `acted on, level ${depth + 1}, ` : `level ${depth + 1}, `}</span>
      <span class="stage-role">{clean(node.role, 40)}</span>
      {node.name === "" ? null : typed && hidden ? (
        <Value value={node.name} hidden seq={seq} />
      ) : (
        <span class="stage-name" title={node.name.length > 60 ? node.name.slice(0, 4_000) : undefined}>
          {node.role === "text" ? clean(node.name, NAME) : `"${clean(node.name, NAME)}"`}
        </span>
      )}
      {node.value === null ? null : <Value value={node.value} hidden={hidden} seq={seq} />}
      {node.states
        .filter((state) => !(hidden && chosen(node, state)))
        .map((state) => (
          <span key={state} class={acted ? "stage-state acted-word" : "stage-state"}>
            {clean(state, 60)}
          </span>
        ))}
      {node.ref === null ? null : <span class="stage-ref">{clean(node.ref, 40)}</span>}
    </span>
  );
}

/** What a field holds. Masked, a click on it asks to reveal, as Enter does on its row: an option may hold no button. */
function Value({ value, hidden, seq }: { value: string; hidden: boolean; seq: number }): JSX.Element {
  if (!hidden) return <span class="stage-value">{clean(value, NAME)}</span>;
  return (
    <span
      class="hatched stage-masked"
      title="Masked: click here, or press Enter on the row, to reveal it"
      onClick={() => askReveal("field", seq)}
    >
      masked
    </span>
  );
}

/** What is chosen in a list is what a field holds. */
export function chosen(node: TreeNode, state: string): boolean {
  return node.role === "option" && state === "selected";
}

/** On one line, with what controls or reorders text made visible. */
export function clean(text: string, most: number): string {
  const cut = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  // Nearly every name is plain, and then there is nothing to do.
  if (/^[\x20-\x7e\u00a1-\u1fff\u3000-\ud7ff]*$/.test(cut)) return cut;
  let out = "";
  for (const character of cut) {
    const code = character.codePointAt(0)!;
    out += code === 0x0a || code === 0x0d || code === 0x09 ? " " : visible(code);
  }
  return out;
}
