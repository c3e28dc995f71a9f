/** Something that is masked until it is revealed, and the small words that lead to a row. */
import type { ComponentChildren, JSX } from "preact";
import type { Missing } from "../../core/types";
import { run } from "../../state/app";
import { askReveal, masked } from "../../state/mask";
import { seekRow } from "../../state/moves";
import { clock, plural } from "../../state/words";
import { Icon } from "../icons";

/** `children` where the row `seq` may be seen, else hatched words and the way to reveal it. */
export function Masked(props: {
  seq: number;
  what: string;
  size?: number;
  children: () => ComponentChildren;
  shownIn?: number;
}): JSX.Element {
  if (!masked("field", props.seq, props.shownIn)) return <>{props.children()}</>;
  return (
    <span class="masked-field">
      <span class="hatched">
        <Icon name="masked" /> {props.what} masked
        {props.size === undefined ? "" : `, ${plural(props.size, "character")}`}
      </span>
      <button type="button" class="link" onClick={() => askReveal("field", props.seq)}>
        reveal…
      </button>
    </span>
  );
}

export function isMissing(value: unknown): value is Missing {
  return typeof value === "object" && value !== null && "missing" in value && "why" in value;
}

/** In place of what is not there. */
export function NotThere({ missing, what }: { missing: Missing; what: string }): JSX.Element {
  return (
    <span class="missing">
      {what}: {missing.missing}. {missing.why}
    </span>
  );
}

/** A row's place: a click moves the playhead to it. */
export function SeekTo({ seq, t, children }: { seq: number; t?: number; children?: ComponentChildren }): JSX.Element {
  const start = run.value?.outline.span[0] ?? 0;
  return (
    <button
      type="button"
      class="link seek"
      title={`Row ${seq}${t === undefined ? "" : `, ${clock(t - start)}`}: move the playhead here`}
      onClick={() => seekRow(seq, t)}
    >
      {children ?? `row ${seq}`}
    </button>
  );
}

export function Heading({ children, aside }: { children: ComponentChildren; aside?: ComponentChildren }): JSX.Element {
  return (
    <h2 class="heading">
      <span>{children}</span>
      {aside === undefined || aside === null ? null : <span class="aside">{aside}</span>}
    </h2>
  );
}
