/** Differences as they are drawn: values by their place, texts in parts. What only moved between runs stands apart. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { grouped, plural } from "../../state/words";
import { pretty } from "../inspector/json-text";
import { type ValueChange, shortened, textParts, valueChanges } from "./differences";

const PAGE = 40;

export function ValueDiff({ left, right }: { left: unknown; right: unknown }): JSX.Element {
  const all = useMemo(() => valueChanges(left, right), [left, right]);
  const [pages, setPages] = useState(1);
  const counted = all.filter((one) => one.rule === null),
    moved = all.filter((one) => one.rule !== null);
  return (
    <div class="value-diff">
      {counted.length === 0 ? (
        <p class="muted">
          {moved.length === 0 ? "The same on both sides." : "The same on both sides, ids and dates aside."}
        </p>
      ) : (
        <ul>
          {counted.slice(0, PAGE * pages).map((one, n) => (
            <li key={n}>
              <Change one={one} />
            </li>
          ))}
        </ul>
      )}
      {counted.length > PAGE * pages ? (
        <button type="button" class="button small" onClick={() => setPages(pages + 1)}>
          {plural(counted.length - PAGE * pages, "more difference")}
        </button>
      ) : null}
      {moved.length === 0 ? null : (
        <details class="volatile">
          <summary>
            {plural(moved.length, "value")} that {moved.length === 1 ? "differs" : "differ"} between any two runs (
            {[...new Set(moved.map((one) => one.rule?.name ?? ""))].join(", ")})
          </summary>
          <ul>
            {moved.slice(0, PAGE).map((one, n) => (
              <li key={n}>
                <Change one={one} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function Change({ one }: { one: ValueChange }): JSX.Element {
  const { was, is, kind, rule } = one;
  const long = typeof was === "string" && typeof is === "string" && was.length + is.length > 120;
  return (
    <div class={`change${rule ? " rule" : ""}`}>
      {one.path === "" ? null : <code class="path wrap">{one.path}</code>}
      {rule ? (
        <span class="pill" title={rule.says}>
          {rule.name}
        </span>
      ) : null}
      {long ? (
        <TextDiff left={was} right={is} />
      ) : (
        <span class="mono">
          {kind === "added" ? null : (
            <del class="wrap">
              <span class="unseen">left </span>
              {short(was)}
            </del>
          )}{" "}
          {kind === "removed" ? null : (
            <ins class="wrap">
              <span class="unseen">right </span>
              {short(is)}
            </ins>
          )}
        </span>
      )}
    </div>
  );
}

export function TextDiff({ left, right }: { left: string; right: string }): JSX.Element {
  const parts = useMemo(() => textParts(left, right), [left, right]);
  if (parts === null) {
    return (
      <div class="text-both">
        <p class="muted">Too different to be said in parts.</p>
        <pre class="wrap">
          <del>{short(left, 2000)}</del>
        </pre>
        <pre class="wrap">
          <ins>{short(right, 2000)}</ins>
        </pre>
      </div>
    );
  }
  return (
    <pre class="text-diff wrap">
      {shortened(parts).map((part, n) => {
        if (part.left !== undefined)
          return (
            <span key={n} class="muted">
              {" "}
              … {grouped(part.left)} characters the same …{" "}
            </span>
          );
        return part.side === "left" ? (
          <del key={n}>{part.text}</del>
        ) : part.side === "right" ? (
          <ins key={n}>{part.text}</ins>
        ) : (
          <span key={n}>{part.text}</span>
        );
      })}
    </pre>
  );
}

function short(value: unknown, most = 400): string {
  const text = typeof value === "string" ? value : pretty(value).replace(/\n\s*/g, " ");
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
