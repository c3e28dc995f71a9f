/**
 * In place of a picture, a tree or a text: hatched, with the reason and what may be done about it.
 */
import type { ComponentChildren, JSX } from "preact";
import type { Missing } from "../../core/types";
import { askReveal } from "../../state/mask";
import { Icon } from "../icons";

export const REASONS: Record<Missing["missing"], { title: string; todo: string }> = {
  redacted: { title: "Redacted", todo: "It was taken out when this copy was made. The original has it." },
  expired: { title: "Expired", todo: "Its retention ended and it was deleted. What it was is still sealed." },
  withheld: {
    title: "Withheld",
    todo: "It is restricted and was left out of this bundle. Pack one with its restricted contents to see it.",
  },
  "not-captured": { title: "Not captured", todo: "Nothing of this kind was recorded here." },
  lost: { title: "Lost", todo: "The recording names it, and it is not there. worldline verify lists all that is." },
  corrupt: {
    title: "Damaged",
    todo: "Its bytes are not those that were recorded, or no such file. worldline verify says which.",
  },
};

export function MissingBox({ missing, what }: { missing: Missing; what: string }): JSX.Element {
  const { title, todo } = REASONS[missing.missing];
  return (
    <div class="stage-missing missing" role="note" data-missing={missing.missing}>
      <p class="stage-missing-title">
        {title}: {what}
      </p>
      <p>{missing.why}</p>
      <p>{todo}</p>
    </div>
  );
}

/** Hidden by the mask. It stands where the thing would stand, with the way to reveal it. */
export function MaskedBox({
  what,
  seq,
  children,
}: {
  what: string;
  seq: number;
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="stage-missing hatched" role="note" data-testid="stage-masked">
      <p class="stage-missing-title">
        <Icon name="masked" /> Masked: {what}
      </p>
      {children}
      <button type="button" class="button small" onClick={() => askReveal("field", seq)}>
        reveal…
      </button>
    </div>
  );
}

/** Something so large that the user is asked before the work: numbers, then the choice. */
export function ChoiceBox({
  title,
  numbers,
  choice,
  onChoose,
}: {
  title: string;
  numbers: string;
  choice: string | null;
  onChoose: () => void;
}): JSX.Element {
  return (
    <div class="stage-missing" role="note" data-testid="stage-choice">
      <p class="stage-missing-title">{title}</p>
      <p>{numbers}</p>
      {choice === null ? null : (
        <button type="button" class="button small" onClick={onChoose}>
          {choice}
        </button>
      )}
    </div>
  );
}
