/**
 * Terminal output as lines of styled text: colours and weights (SGR), and what overwrites within a line (CR,
 * backspace, tab, erase to the end). No screen is emulated; sequences that move the cursor elsewhere are left out.
 *
 * The output is a stranger's: control characters and characters that reorder text become visible, never active.
 */

import { visible } from "../visible";

/** A colour as the palette's number (0-15 are the theme's), or red, green, blue. Null is the terminal's own. */
export type Colour = number | readonly [number, number, number] | null;

export interface Style {
  fg: Colour;
  bg: Colour;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
  strike: boolean;
  hidden: boolean;
}

export interface Span {
  text: string;
  style: Style;
}

export type Line = Span[];

export const PLAIN: Style = Object.freeze({
  fg: null,
  bg: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
  strike: false,
  hidden: false,
});

/** No line is longer: a megabyte without a newline would be one element. */
export const COLUMNS = 2_000;

// CSI; OSC, DCS, APC, PM and SOS up to their end; charset choices; other escapes. A broken one ends with the text.
const ESCAPE = /\x1b(?:\[([0-?]*)[ -/]*([@-~]|$)|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]+[0-~]?|[0-OQ-WYZ\\`-~])/y;

export function parseAnsi(text: string, start: Style = PLAIN): { lines: Line[]; style: Style } {
  const screen = new Lines(start);
  let at = 0;
  while (at < text.length) {
    const code = text.codePointAt(at)!;
    if (code === 0x1b) {
      ESCAPE.lastIndex = at;
      const match = ESCAPE.exec(text);
      if (match === null) {
        // An escape that the text cuts off, or one of no known form.
        at += 1;
        continue;
      }
      if (match[2] === "m") screen.style = sgr(screen.style, match[1] ?? "");
      else if (match[2] === "K") screen.erase(match[1] ?? "");
      at = ESCAPE.lastIndex;
      continue;
    }
    screen.put(code);
    at += code > 0xffff ? 2 : 1;
  }
  return { lines: screen.done(), style: screen.style };
}

class Lines {
  private readonly lines: Line[] = [];
  private cells: { text: string; style: Style }[] = [];
  private column = 0;

  constructor(public style: Style) {}

  put(code: number): void {
    if (code === 0x0a) {
      this.lines.push(spans(this.cells));
      this.cells = [];
      this.column = 0;
    } else if (code === 0x0d) {
      this.column = 0;
    } else if (code === 0x08) {
      this.column = Math.max(0, this.column - 1);
    } else if (code === 0x09) {
      const stop = (Math.floor(this.column / 8) + 1) * 8;
      while (this.column < stop && this.column < COLUMNS) this.write(" ");
    } else {
      this.write(visible(code));
    }
  }

  erase(argument: string): void {
    if (argument === "" || argument === "0") this.cells.length = Math.min(this.cells.length, this.column);
    else if (argument === "2") this.cells = [];
  }

  done(): Line[] {
    if (this.cells.length > 0) this.lines.push(spans(this.cells));
    return this.lines;
  }

  private write(text: string): void {
    if (this.column >= COLUMNS) return;
    while (this.cells.length < this.column) this.cells.push({ text: " ", style: PLAIN });
    this.cells[this.column] = { text, style: this.style };
    this.column += 1;
  }
}

function spans(cells: readonly { text: string; style: Style }[]): Line {
  const line: Line = [];
  for (const { text, style } of cells) {
    const last = line.at(-1);
    // Styles are made anew only when they change, so the same object means the same style.
    if (last !== undefined && last.style === style) last.text += text;
    else line.push({ text, style });
  }
  return line;
}

const ON: Record<number, Partial<Style>> = {
  0: PLAIN,
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  8: { hidden: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  28: { hidden: false },
  29: { strike: false },
  39: { fg: null },
  49: { bg: null },
};

/** Select Graphic Rendition (ECMA-48 8.3.117, with the 256-colour and direct-colour forms of ISO 8613-6). */
function sgr(style: Style, parameters: string): Style {
  const next: Style = { ...style };
  const codes = (parameters === "" ? "0" : parameters).split(";");
  for (let i = 0; i < codes.length; i += 1) {
    const [head = 0, ...rest] = codes[i]!.split(":").map((part) => (part === "" ? 0 : Number(part)));
    if (head === 38 || head === 48) {
      const numbers = rest.length > 0 ? rest : codes.slice(i + 1, i + 5).map(Number);
      const [colour, used] = direct(numbers, rest.length > 0);
      if (rest.length === 0) i += used;
      if (colour !== undefined) next[head === 38 ? "fg" : "bg"] = colour;
    } else if (head === 4 && rest[0] === 0) {
      next.underline = false;
    } else if (head >= 30 && head <= 37) {
      next.fg = head - 30;
    } else if (head >= 40 && head <= 47) {
      next.bg = head - 40;
    } else if (head >= 90 && head <= 97) {
      next.fg = head - 82;
    } else if (head >= 100 && head <= 107) {
      next.bg = head - 92;
    } else {
      Object.assign(next, ON[head] ?? {});
    }
  }
  return next;
}

/** What stands behind 38 or 48, and how many parameters it took. */
function direct(numbers: number[], colons: boolean): [Colour | undefined, number] {
  if (numbers[0] === 5) {
    const index = numbers[1] ?? -1;
    return [Number.isInteger(index) && index >= 0 && index <= 255 ? index : undefined, 2];
  }
  if (numbers[0] !== 2) return [undefined, 0];
  // With colons a colour space may stand before the three.
  const [r, g, b] = colons && numbers.length > 4 ? numbers.slice(2, 5) : numbers.slice(1, 4);
  const channel = (value: number | undefined): number => Math.min(255, Math.max(0, Math.trunc(value ?? 0) || 0));
  return [[channel(r), channel(g), channel(b)], 4];
}

/** One of the 240 fixed colours of the palette: a cube of six levels, then greys. Null for the theme's sixteen. */
export function paletteColour(index: number): readonly [number, number, number] | null {
  if (index < 16) return null;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return [grey, grey, grey];
  }
  const level = (n: number): number => (n === 0 ? 0 : 55 + n * 40);
  const cube = index - 16;
  return [level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)];
}
