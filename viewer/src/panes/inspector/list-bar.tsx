/** What stands above a list and a row of it in full: how much there is, whether it is masked and what reveals it, copy. */
import type { JSX } from "preact";
import { askReveal } from "../../state/mask";
import { Icon } from "../icons";

export function ListBar(props: {
  what: string;
  hidden: boolean;
  onReveal: () => void;
  onCopy: () => void;
}): JSX.Element {
  return (
    <div class="list-bar">
      <span class="muted">{props.what}</span>
      {props.hidden ? (
        <>
          <span class="hatched">
            <Icon name="masked" /> masked
          </span>
          <button type="button" class="link" onClick={props.onReveal}>
            reveal…
          </button>
        </>
      ) : null}
      <span class="spacer" />
      <button
        type="button"
        class="button plain small"
        onClick={props.onCopy}
        title={props.hidden ? "What is masked is copied masked" : undefined}
      >
        <Icon name="copy" /> copy
      </button>
    </div>
  );
}

/** In place of a row's own words, below the list. */
export function Hidden({ seq, what }: { seq: number; what: string }): JSX.Element {
  return (
    <p>
      <span class="hatched">
        <Icon name="masked" /> {what} masked
      </span>{" "}
      <button type="button" class="link" onClick={() => askReveal("field", seq)}>
        reveal…
      </button>
    </p>
  );
}
