/** The agent's own state at the step, against the step before: what came, what went, what changed. */
import { diffLines } from "diff";
import microdiff, { type Difference } from "microdiff";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { StepBody } from "../../core/types";
import { askReveal, masked } from "../../state/mask";
import { plural } from "../../state/words";
import { Icon } from "../icons";
import { pretty } from "./json-text";
import { JsonView } from "./json-view";
import { Heading } from "./masked";
import { stepNumber } from "../../state/numbers";
import { isBox, pathOf } from "../../state/paths";

/** Changes that are drawn at once. */
const PAGE = 60;

export interface Change {
  path: string;
  was: unknown;
  is: unknown;
  kind: "CREATE" | "REMOVE" | "CHANGE";
}

/** The changes from `before` to `after`. Values that are no objects are compared as a whole. */
export function changes(before: unknown, after: unknown): Change[] {
  if (!isBox(before) || !isBox(after)) {
    return pretty(before) === pretty(after)
      ? []
      : [
          {
            path: "",
            was: before,
            is: after,
            kind: before === null || before === undefined ? "CREATE" : "CHANGE",
          },
        ];
  }
  return microdiff(before, after).map((one: Difference) => ({
    path: pathOf(one.path),
    was: "oldValue" in one ? one.oldValue : undefined,
    is: "value" in one ? one.value : undefined,
    kind: one.type,
  }));
}

export function StateTab({ body }: { body: StepBody }): JSX.Element {
  const state = body.state;
  const [whole, setWhole] = useState(false);
  const [pages, setPages] = useState(1);
  const all = useMemo(() => (state === null ? [] : changes(state.before, state.after)), [state]);
  if (state === null) {
    return (
      <p class="empty-line">
        This agent said nothing of its own state. With <code>wl.observe(value, src="state")</code> or a checkpoint it
        does.
      </p>
    );
  }
  // A scratchpad quotes what the agent saw: it is as masked as that.
  const seq = body.rows.findLast((row) => row.src === "state")?.seq ?? body.rows[0]?.seq ?? 0;
  if (masked("step", seq, body.index)) {
    return (
      <article class="card alone">
        <Heading aside={plural(all.length, "change")}>
          State since step {stepNumber(Math.max(0, body.index - 1))}
        </Heading>
        <p class="masked-field">
          <span class="hatched">
            <Icon name="masked" /> the agent's own state is masked
          </span>
          <button type="button" class="link" onClick={() => askReveal("step", seq)}>
            reveal…
          </button>
        </p>
      </article>
    );
  }
  return (
    <div class="scroll cards" tabIndex={0} role="group" aria-label="State">
      <article class="card">
        <Heading aside={plural(all.length, "change")}>
          State since step {stepNumber(Math.max(0, body.index - 1))}
        </Heading>
        {all.length === 0 ? (
          <p class="muted">Nothing changed.</p>
        ) : (
          <ul class="changes">
            {all.slice(0, PAGE * pages).map((change, n) => (
              <li key={n}>
                <ChangeView change={change} />
              </li>
            ))}
          </ul>
        )}
        {all.length > PAGE * pages ? (
          <button type="button" class="button small" onClick={() => setPages(pages + 1)}>
            {plural(all.length - PAGE * pages, "more change")}
          </button>
        ) : null}
      </article>
      <article class="card">
        <Heading
          aside={
            <button type="button" class="link" aria-expanded={whole} onClick={() => setWhole(!whole)}>
              {whole ? "less" : "all of it"}
            </button>
          }
        >
          State at step {stepNumber(body.index)}
        </Heading>
        <JsonView value={state.after} lines={whole ? 400 : 14} />
      </article>
    </div>
  );
}

function ChangeView({ change }: { change: Change }): JSX.Element {
  const { was, is, kind } = change;
  const sign = { CREATE: "+", REMOVE: "−", CHANGE: "±" }[kind];
  const word = { CREATE: "added", REMOVE: "removed", CHANGE: "changed" }[kind];
  const texts =
    typeof was === "string" &&
    typeof is === "string" &&
    (was.includes("\n") || is.includes("\n") || was.length + is.length > 120);
  return (
    <>
      <span class="mono path wrap">
        <b class={`sign ${kind.toLowerCase()}`} title={word}>
          {sign}
        </b>{" "}
        {change.path === "" ? "state" : change.path}
      </span>
      {texts ? (
        <TextDiff was={was} is={is} />
      ) : (
        <span class="mono values">
          {kind === "CREATE" ? null : <del class="wrap">{short(was)}</del>}{" "}
          {kind === "REMOVE" ? null : <ins class="wrap">{short(is)}</ins>}
        </span>
      )}
    </>
  );
}

/** Lines of two texts. Far from a change only their number is said. */
function TextDiff({ was, is }: { was: string; is: string }): JSX.Element {
  const parts = useMemo(() => diffLines(was, is, { timeout: 200 }), [was, is]);
  if (parts === undefined) return <span class="muted">too different to show line by line</span>;
  return (
    <pre class="text-diff wrap">
      {parts.map((part, n) => {
        if (part.added) return <ins key={n}>{part.value}</ins>;
        if (part.removed) return <del key={n}>{part.value}</del>;
        const lines = part.value.split("\n");
        return (
          <span key={n} class="muted">
            {lines.length > 5
              ? `${lines[0]}\n… ${plural(lines.length - 3, "line")} the same\n${lines.at(-2)}\n`
              : part.value}
          </span>
        );
      })}
    </pre>
  );
}

function short(value: unknown): string {
  const text = typeof value === "string" ? value : pretty(value).replace(/\n\s*/g, " ");
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
