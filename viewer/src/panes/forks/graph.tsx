/**
 * The tree as a graph of lines beside its rows. A line leaves its parent where the parent's row is and ends at the row
 * of the fork; the sign on it says how the run ended.
 */
import type { JSX } from "preact";
import type { TreeLayout, TreeRow } from "../../core/dag";
import { lookOf } from "./outcome";

export const ROW = 46;
const COLUMN = 20;
const LEFT = 14;

export function railWidth(layout: TreeLayout): number {
  return LEFT * 2 + (layout.columns - 1) * COLUMN;
}

function x(column: number): number {
  return LEFT + column * COLUMN;
}

function y(row: number): number {
  return row * ROW + ROW / 2;
}

/** The lines and signs of all rows. `way` holds the rows from the root to the open run: their lines are drawn stronger. */
export function Rail({ layout, way }: { layout: TreeLayout; way: ReadonlySet<string> }): JSX.Element {
  return (
    <svg class="fork-rail" width={railWidth(layout)} height={layout.rows.length * ROW} aria-hidden="true">
      {layout.rows
        .filter((row) => row.parentRow >= 0)
        .map((row) => (
          <path key={row.run.run} d={edge(row)} class={way.has(row.run.run) ? "edge way" : "edge"} />
        ))}
      {layout.rows.map((row) => (
        <Node key={row.run.run} row={row} />
      ))}
    </svg>
  );
}

function edge(row: TreeRow): string {
  const x0 = x(row.parentColumn),
    y0 = y(row.parentRow),
    x1 = x(row.column),
    y1 = y(row.row);
  if (x0 === x1) return `M${x0} ${y0}V${y1}`;
  const bend = 14;
  return `M${x0} ${y0}V${y1 - bend}C${x0} ${y1 - 2} ${x1} ${y1 - bend} ${x1} ${y1}`;
}

/** A disc for success, a square with a cross for failure, a barred disc for denial, a ring for what still runs. */
function Node({ row }: { row: TreeRow }): JSX.Element {
  const look = lookOf(row.run.outcome, row.run.live);
  const at = `translate(${x(row.column)} ${y(row.row)})`;
  switch (look.class) {
    case "is-ok":
      return (
        <g transform={at} class="node is-ok">
          <circle r="7" />
          <path class="on" d="M-3 .2l2.2 2.2L3.2 -2.4" />
        </g>
      );
    case "is-failed":
      return (
        <g transform={at} class="node is-failed">
          <rect x="-6.5" y="-6.5" width="13" height="13" rx="2" />
          <path class="on" d="M-2.8 -2.8L2.8 2.8M2.8 -2.8L-2.8 2.8" />
        </g>
      );
    case "is-denied":
      return (
        <g transform={at} class="node is-denied">
          <circle r="7" />
          <path class="on" d="M-3.6 0H3.6" />
        </g>
      );
    case "is-running":
      return (
        <g transform={at} class="node is-running hollow">
          <circle r="6" />
          <circle r="2" class="dot" />
        </g>
      );
    default:
      return (
        <g transform={at} class={`node ${look.class}`}>
          <path d="M0 -7.5L7.5 0 0 7.5 -7.5 0z" />
        </g>
      );
  }
}
