/** The spine as a list: the left run's step, how the two belong together, the right run's step. */
import type { JSX } from "preact";
import type { Outline } from "../../core/types";
import { other, outline } from "../../state/app";
import { plural } from "../../state/words";
import { Icon, StatusIcon } from "../icons";
import { WindowList } from "../steps/window-list";
import { Relation, type RelationCode } from "./spine";
import { goToRow, opened, place, shown, spine, ties } from "./state";
import { stepNumber } from "../../state/numbers";

const ROW = 30;

export const LOOK: Record<RelationCode, { sign: string; word: string; class: string }> = {
  [Relation.same]: { sign: "=", word: "same", class: "r-same" },
  [Relation.changed]: { sign: "≠", word: "changed", class: "r-changed" },
  [Relation.left]: { sign: "‹", word: "only left", class: "r-left" },
  [Relation.right]: { sign: "›", word: "only right", class: "r-right" },
};

export function SpineList(): JSX.Element {
  const now = spine.value;
  const list = shown.value;
  const left = outline.value,
    right = other.value?.outline ?? null;
  return (
    <WindowList
      class="spine-list"
      label="Aligned steps"
      length={list.length}
      rowHeight={ROW}
      active={place.value}
      rowKey={(at) => {
        const one = list[at];
        return one === undefined ? at : "row" in one ? one.row : `f${one.from}`;
      }}
      rowClass={(at) => {
        const one = list[at];
        if (one === undefined || now === null) return "";
        if (!("row" in one)) return "fold";
        return `${LOOK[(now.relation[one.row] ?? 0) as RelationCode].class}${one.row === now.first ? " first-divergence" : ""}`;
      }}
      onPick={(at) => {
        const one = list[at];
        if (one !== undefined) goToRow("row" in one ? one.row : at > place.value ? one.from : one.to - 1);
      }}
      onOpen={(at) => {
        const one = list[at];
        if (one !== undefined && !("row" in one)) opened.value = new Set([...opened.value, one.key]);
      }}
      row={(at) => {
        const one = list[at];
        if (one === undefined || now === null || left === null || right === null) return null;
        if (!("row" in one)) {
          return (
            <span
              class="fold-line"
              onClick={(event) => {
                event.stopPropagation();
                opened.value = new Set([...opened.value, one.key]);
              }}
            >
              {plural(one.to - one.from, "step")} the same on both sides · show
            </span>
          );
        }
        const look = LOOK[(now.relation[one.row] ?? 0) as RelationCode];
        return (
          <div class="spine-row">
            <Cell of={left} step={now.left[one.row] ?? -1} side="left" look={look} />
            <Between row={one.row} first={one.row === now.first} look={look} />
            <Cell of={right} step={now.right[one.row] ?? -1} side="right" look={look} />
          </div>
        );
      }}
      empty="Neither run has a step."
    />
  );
}

/** How the two belong together; with a small sign where a permission or a screen was the same on both sides. */
function Between({
  row: at,
  first,
  look,
}: {
  row: number;
  first: boolean;
  look: (typeof LOOK)[RelationCode];
}): JSX.Element {
  const tie = ties.value.get(at);
  const words = `${first ? "first divergence: " : ""}${look.word}${tie === undefined ? "" : `, the same ${tie}`}`;
  return (
    <span class={`relation ${look.class}`} title={words}>
      <span aria-hidden="true">{look.sign}</span>
      <span class="unseen"> {words} </span>
      {tie === undefined ? null : <Icon name={tie === "permission" ? "key" : "file"} class="tie" />}
    </span>
  );
}

function Cell({
  of,
  step,
  side,
  look,
}: {
  of: Outline;
  step: number;
  side: string;
  look: (typeof LOOK)[RelationCode];
}): JSX.Element {
  if (step < 0 && look === LOOK[Relation.same]) return <span class="cell muted">served from that run</span>;
  if (step < 0) return <span class="cell absent" aria-hidden="true" />;
  const { steps } = of;
  return (
    <span class="cell">
      <span class="unseen">{side} step </span>
      <span class="number muted">{stepNumber(step, of)}</span>
      {steps.denied(step) > 0 ? (
        <Icon name="noEntry" class="is-denied" label="denied" />
      ) : (
        <StatusIcon status={steps.status(step)} />
      )}
      <span class="clip">
        <b>{steps.name(step)}</b> <span class="muted">{steps.detail(step)}</span>
      </span>
    </span>
  );
}
