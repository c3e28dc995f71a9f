/** The colours of the style sheet as the canvas needs them, resolved for the theme that is shown now. */
import { colour } from "../../state/theme";

const NAMES = {
  bg: "bg",
  panel: "panel",
  raise: "raise",
  well: "well",
  select: "select",
  hair: "hair",
  edge: "edge",
  text: "text",
  muted: "muted",
  accent: "accent",
  ok: "ok",
  warn: "warn",
  fail: "fail",
  deny: "deny",
  mind: "mind",
  event: "event",
  onSolid: "on-solid",
} as const;

export type Palette = Record<keyof typeof NAMES, string> & {
  font: string;
  /** Shapes alone must do: the system's colours are few. */
  forced: boolean;
};

export function readPalette(): Palette {
  const keys = Object.keys(NAMES) as (keyof typeof NAMES)[];
  const found = colour(...keys.map((key) => NAMES[key]));
  const colours = Object.fromEntries(keys.map((key, i) => [key, found[i] ?? "#888"])) as Record<
    keyof typeof NAMES,
    string
  >;
  const forced = typeof matchMedia === "function" && matchMedia("(forced-colors: active)").matches;
  return { ...colours, font: getComputedStyle(document.body).fontFamily || "sans-serif", forced };
}
