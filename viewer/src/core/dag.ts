/**
 * The tree of a run and its forks, laid out as a graph of lines: one row a run, a run below the one it left.
 *
 * A run's subtree stands in rows of its own, right below it. Its last fork goes on in the same column, the others stand
 * one column further right: no line crosses a node, and a chain of forks stays straight.
 */

/** One run of the tree, as `GET r/<id>/tree` tells it. */
export interface TreeRun {
  run: string;
  parent: string | null;
  /** The step of the parent that it left at, and what was changed there, in words. */
  at: number | null;
  change: string;
  outcome: string;
  steps: number | null;
  started: string;
  live: boolean;
}

export interface TreeRow {
  run: TreeRun;
  row: number;
  column: number;
  /** Row and column of its parent; -1 for a root. */
  parentRow: number;
  parentColumn: number;
  /** Runs below it. */
  below: number;
}

export interface TreeLayout {
  rows: TreeRow[];
  columns: number;
}

/** Lays out the tree. A run whose parent is not there stands as a root; so does one of a ring. */
export function layTree(runs: readonly TreeRun[]): TreeLayout {
  const byId = new Map<string, TreeRun>();
  for (const run of runs) if (!byId.has(run.run)) byId.set(run.run, run);
  const children = new Map<string, TreeRun[]>();
  const roots: TreeRun[] = [];
  for (const run of byId.values()) {
    if (run.parent === null || !byId.has(run.parent) || run.parent === run.run) roots.push(run);
    else (children.get(run.parent) ?? children.set(run.parent, []).get(run.parent))?.push(run);
  }
  const rows: TreeRow[] = [];
  const placed = new Set<string>();
  const stack: { run: TreeRun; column: number; parent: TreeRow | null }[] = [];
  let columns = 0;
  const grow = (root: TreeRun): void => {
    stack.push({ run: root, column: 0, parent: null });
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const { run, column, parent } = next;
      if (placed.has(run.run)) continue;
      placed.add(run.run);
      const row: TreeRow = {
        run,
        row: rows.length,
        column,
        below: 0,
        parentRow: parent?.row ?? -1,
        parentColumn: parent?.column ?? -1,
      };
      rows.push(row);
      columns = Math.max(columns, column + 1);
      const forks = (children.get(run.run) ?? []).slice().sort(inOrder);
      for (let i = forks.length - 1; i >= 0; i--) {
        const fork = forks[i];
        if (fork) stack.push({ run: fork, column: i === forks.length - 1 ? column : column + 1, parent: row });
      }
    }
  };
  for (const root of roots.sort(inOrder)) grow(root);
  for (const run of byId.values()) if (!placed.has(run.run)) grow(run);
  for (let i = rows.length - 1; i >= 0; i--) {
    const row = rows[i];
    const parent = row && row.parentRow >= 0 ? rows[row.parentRow] : undefined;
    if (row && parent) parent.below += row.below + 1;
  }
  return { rows, columns };
}

/** Later forks first: what left the run near its end stands near the run. Then by their start. */
function inOrder(a: TreeRun, b: TreeRun): number {
  return (b.at ?? -1) - (a.at ?? -1) || (a.started < b.started ? -1 : a.started > b.started ? 1 : 0);
}

/** The rows of `run`, its ancestors first: the way from the root to it. */
export function lineage(layout: TreeLayout, run: string): TreeRow[] {
  const way: TreeRow[] = [];
  let row = layout.rows.find((found) => found.run.run === run);
  while (row) {
    way.unshift(row);
    row = row.parentRow < 0 ? undefined : layout.rows[row.parentRow];
  }
  return way;
}
