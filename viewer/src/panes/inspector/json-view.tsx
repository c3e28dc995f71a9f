/** A value as coloured JSON: short ones as they are, long ones cut, with the whole in the Raw tab. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { pretty, tokens, type Token } from "./json-text";

/** Lines and characters that stand in a card. */
const LINES = 14;
const CHARACTERS = 1600;

export function JsonView({ value, lines = LINES }: { value: unknown; lines?: number }): JSX.Element {
  const [shown, cut] = useMemo(() => {
    const all = typeof value === "string" ? value : compact(value);
    const some = all.slice(0, CHARACTERS).split("\n").slice(0, lines);
    return [some, some.join("\n").length < all.length];
  }, [value, lines]);
  const text = typeof value === "string";
  return (
    <pre class="json wrap">
      {shown.map((line, n) => (
        <span key={n} class="line">
          {text ? line : <Line tokens={tokens(line)} />}
          {"\n"}
        </span>
      ))}
      {cut ? <span class="muted">… the rest is in Raw</span> : null}
    </pre>
  );
}

export function Line({ tokens: all }: { tokens: readonly Token[] }): JSX.Element {
  return (
    <>
      {all.map((token, n) =>
        token.kind === "" ? (
          token.text
        ) : (
          <span key={n} class={`json-${token.kind}`}>
            {token.text}
          </span>
        ),
      )}
    </>
  );
}

/** One line where it fits, else one line a field. */
function compact(value: unknown): string {
  const long = pretty(value);
  if (long.length > 90) return long;
  const one = long.replace(/\n\s*/g, " ");
  return one.length <= 64 ? one : long;
}
