/** Terminal output drawn: one element a line, one a style, every character as text. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { paletteColour, parseAnsi, type Colour, type Line, type Style } from "./ansi";

export function AnsiText({ text, wrap = false }: { text: string; wrap?: boolean }): JSX.Element {
  const lines = useMemo(() => parseAnsi(text).lines, [text]);
  return (
    <pre class={wrap ? "ansi wrap" : "ansi"} dir="ltr">
      {lines.map((line, i) => (
        <div key={i}>
          <AnsiLine line={line} />
        </div>
      ))}
    </pre>
  );
}

export function AnsiLine({ line }: { line: Line }): JSX.Element {
  if (line.length === 0) return <>{"\u00a0"}</>;
  return (
    <>
      {line.map((span, i) => (
        <span key={i} class={classes(span.style)} style={colours(span.style)}>
          {span.text}
        </span>
      ))}
    </>
  );
}

/** The theme's sixteen are classes, so that both themes have colours that can be read. */
function classes(style: Style): string | undefined {
  const names: string[] = [];
  const [fg, bg] = style.inverse ? [style.bg, style.fg] : [style.fg, style.bg];
  if (typeof fg === "number" && fg < 16) names.push(`fg-${fg}`);
  if (typeof bg === "number" && bg < 16) names.push(`bg-${bg}`);
  if (style.inverse && fg === null) names.push("fg-inverse");
  if (style.inverse && bg === null) names.push("bg-inverse");
  for (const word of ["bold", "dim", "italic", "underline", "strike", "hidden"] as const)
    if (style[word]) names.push(`is-${word}`);
  return names.length === 0 ? undefined : names.join(" ");
}

function colours(style: Style): Record<string, string> | undefined {
  const [fg, bg] = style.inverse ? [style.bg, style.fg] : [style.fg, style.bg];
  const color = rgb(fg);
  const background = rgb(bg);
  if (color === null && background === null) return undefined;
  return { ...(color === null ? {} : { color }), ...(background === null ? {} : { background }) };
}

function rgb(colour: Colour): string | null {
  if (colour === null) return null;
  const parts = typeof colour === "number" ? paletteColour(colour) : colour;
  return parts === null ? null : `rgb(${parts.join(" ")})`;
}
