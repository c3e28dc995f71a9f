/** What the comparison shows: the spine of the two open runs, the row under the playhead, and what is folded. */
import { batch, computed, effect, signal } from "@preact/signals";
import { align } from "../../core/align";
import { leftOf } from "../../state/ancestry";
import { other, page, run, step, version, type Open } from "../../state/app";
import { runId } from "../../state/link";
import { goTo } from "../../state/moves";
import { type Shown, type Spine, folded, makeSpine, nextDifference, placeOf, stepAt } from "./spine";
import { tellingOf } from "./telling";

export const spine = signal<Spine | null>(null);
export const spineTrouble = signal("");
/** Rows in which both sides were asked and answered the same, or saw the same screen: they tie the runs together. */
export const ties = signal<ReadonlyMap<number, "permission" | "screen">>(new Map());
/** The row under the playhead. A step of the left run has one; rows of the right run alone have none of its steps. */
export const row = signal(0);
export const foldSame = signal(true);
export const opened = signal<ReadonlySet<number>>(new Set());

export const shown = computed<Shown[]>(() => {
  const now = spine.value;
  if (now === null) return [];
  if (!foldSame.value) return Array.from({ length: now.length }, (_, at) => ({ row: at }));
  return folded(now, opened.value, row.value);
});
export const place = computed(() => placeOf(shown.value, row.value));

/** The steps of the pair: -1 where a side has none in this row. */
export const pairSteps = computed<{ left: number; right: number }>(() => {
  const now = spine.value;
  return now === null
    ? { left: -1, right: -1 }
    : { left: now.left[row.value] ?? -1, right: now.right[row.value] ?? -1 };
});

/** Moves the playhead to a row: the left run goes to its step there, or to the last one before. */
export function goToRow(to: number): void {
  const now = spine.peek();
  if (now === null || now.length === 0) return;
  const at = Math.min(Math.max(to, 0), now.length - 1);
  batch(() => {
    row.value = at;
    const left = stepAt(now.left, at);
    if (left >= 0) goTo(left);
  });
}

/** To the next or previous row that is not the same. False where there is none. */
export function toDifference(direction: 1 | -1): boolean {
  const now = spine.peek();
  const at = now === null ? -1 : nextDifference(now, row.peek(), direction);
  if (at >= 0) goToRow(at);
  return at >= 0;
}

/** How many steps of `parent` `branch` was served from it, where it left it. */
function takenOver(parent: Open | null, branch: Open | null): number {
  const left = leftOf(branch);
  if (parent === null || left?.run !== runId(parent.recording.header.data)) return 0;
  return Math.min(Math.max(left.step - (parent.outline.base ?? 0), 0), parent.outline.steps.length);
}

/** Aligns the two runs, anew while one of them is still read or goes on, and keeps the row with the step. */
export function watchRuns(): () => void {
  let turn = 0;
  let of: unknown[] = [];
  let busy = false;
  let entered = false;
  const again = signal(0);
  const stopAlign = effect(() => {
    const left = run.value?.outline,
      right = other.value?.outline;
    void [version.value, again.value];
    if (!left || !right) {
      spine.value = null;
      of = [];
      return;
    }
    const wanted = [left, right, left.version, right.version];
    if (busy || wanted.every((one, i) => one === of[i])) return;
    if (of[0] !== left || of[1] !== right) {
      entered = false;
      opened.value = new Set();
    }
    of = wanted;
    busy = true;
    const mine = ++turn;
    const shared: [number, number] = [takenOver(run.peek(), other.peek()), takenOver(other.peek(), run.peek())];
    align(left, right, shared)
      .then(
        (pairs) => {
          if (mine !== turn) return;
          const made = makeSpine(
            pairs,
            left.steps.length,
            right.steps.length,
            (a, b) =>
              tellingOf(left, a) !== tellingOf(right, b) ||
              left.steps.status(a) !== right.steps.status(b) ||
              left.steps.denied(a) > 0 !== right.steps.denied(b) > 0,
            Math.max(...shared),
          );
          batch(() => {
            spine.value = made;
            ties.value = new Map(pairs.anchors.map(({ row: at, what }) => [at, what]));
            spineTrouble.value = "";
            if (!entered && made.first >= 0) goToRow(made.first);
            if (left.done && right.done) entered = true;
          });
        },
        (reason: unknown) => {
          spineTrouble.value = reason instanceof Error ? reason.message : String(reason);
        },
      )
      .finally(() => {
        busy = false;
        again.value += 1;
      });
  });
  const stopRow = effect(() => {
    const now = spine.value;
    const at = step.value;
    if (now === null || page.value !== "compare") return;
    if (stepAt(now.left, row.peek()) !== at) row.value = now.rowOfLeft[at] ?? 0;
  });
  return () => {
    turn += 1;
    stopAlign();
    stopRow();
  };
}
