/** Terminal output becomes styled text and nothing else; casts stand at their place on the run's clock. */
import { describe, expect, it } from "vitest";
import { COLUMNS, paletteColour, parseAnsi, type Style } from "../../src/panes/stage/terminal/ansi";
import { castStart, readCast } from "../../src/panes/stage/terminal/cast";
import { dice } from "./dice";

const text = (output: string): string[] =>
  parseAnsi(output).lines.map((line) => line.map((span) => span.text).join(""));
const style = (output: string): Style => parseAnsi(output).lines[0]!.at(-1)!.style;

describe("SGR", () => {
  it("sets and takes away colours and weights", () => {
    expect(style("\x1b[31mred")).toMatchObject({ fg: 1, bold: false });
    expect(style("\x1b[1;3;4;7;9;97;104mall")).toMatchObject({
      bold: true,
      italic: true,
      underline: true,
      inverse: true,
      strike: true,
      fg: 15,
      bg: 12,
    });
    expect(style("\x1b[1;31m\x1b[22;39mnone")).toMatchObject({ bold: false, fg: null });
    expect(style("\x1b[1;31mx\x1b[my")).toMatchObject({ bold: false, fg: null });
    expect(style("\x1b[38;5;208mx")).toMatchObject({ fg: 208 });
    expect(style("\x1b[48;2;1;2;300mx")).toMatchObject({ bg: [1, 2, 255] });
    expect(style("\x1b[38:2::10:20:30mx")).toMatchObject({ fg: [10, 20, 30] });
    expect(style("\x1b[38;5;999;1mx")).toMatchObject({ fg: null, bold: true });
    expect(style("\x1b[4:3mx")).toMatchObject({ underline: true });
    expect(style("\x1b[4m\x1b[4:0mx")).toMatchObject({ underline: false });
  });

  it("goes on over lines, as a terminal does", () => {
    const { lines, style: end } = parseAnsi("\x1b[32mone\ntwo\x1b[0m\nthree");
    expect(lines.map((line) => line[0]!.style.fg)).toEqual([2, 2, null]);
    expect(end.fg).toBeNull();
  });

  it("has the fixed colours of the palette", () => {
    expect([16, 21, 231, 232, 255].map(paletteColour)).toEqual([
      [0, 0, 0],
      [0, 0, 255],
      [255, 255, 255],
      [8, 8, 8],
      [238, 238, 238],
    ]);
    expect(paletteColour(9)).toBeNull();
  });
});

describe("what a line says in the end", () => {
  it("is what overwrote it", () => {
    expect(text("10 %\r 50 %\r100 %\n")).toEqual(["100 %"]);
    expect(text("long line\rshort\x1b[K")).toEqual(["short"]);
    expect(text("typo\b\bped")).toEqual(["typed"]);
    expect(text("a\tb\r\nc")).toEqual(["a       b", "c"]);
  });

  it("has no title, link or cursor sequence in it", () => {
    expect(
      text(
        "\x1b]0;evil title\x07a\x1b]8;;https://evil.example/\x1b\\link\x1b]8;;\x1b\\b\x1b[2J\x1b[10;10H\x1b[?25lc\x1b(Bd\x1b=e\x1bPq#0\x1b\\f",
      ),
    ).toEqual(["alinkbcdef"]);
    expect(text("cut\x1b]0;never ends")).toEqual(["cut"]);
    expect(text("cut\x1b[12;")).toEqual(["cut"]);
    expect(text("odd\x1b[3é")).toEqual(["odd[3é"]);
  });

  it("shows what would reorder or hide text", () => {
    expect(text("a\u202eb\u2066c\x00\x7f\u009b")).toEqual(["a⟨U+202E⟩b⟨U+2066⟩c\u2400\u2421⟨U+009B⟩"]);
  });

  it("is bounded, whatever comes", () => {
    expect(text("x".repeat(100_000))[0]!.length).toBe(COLUMNS);
    const roll = dice(3);
    const pieces = [
      "\x1b",
      "[",
      "3",
      "1",
      "m",
      ";",
      ":",
      "]",
      "\x07",
      "\n",
      "\r",
      "\b",
      "K",
      "é",
      "\ud83d\ude00",
      "\ud83d",
      "38",
      "5",
      "P",
      "\\",
      " ",
      "\t",
    ];
    for (let round = 0; round < 300; round += 1) {
      const output = Array.from({ length: 60 }, () => roll.one(pieces)).join("");
      for (const line of parseAnsi(output).lines)
        for (const span of line) expect(span.text).not.toMatch(/[\x00-\x1f\x7f-\x9f]/);
    }
  });
});

describe("casts", () => {
  const v2 =
    '{"version":2,"width":100,"height":30,"timestamp":1700000000}\n[0.5,"o","a"]\n[1.5,"i","x"]\nnonsense\n[3,"o","b"]\n[2,"o","back"]\n';

  it("of version 2 and 1 are read, with what is damaged counted", () => {
    expect(readCast(v2)).toEqual({
      columns: 100,
      rows: 30,
      duration: 3,
      timestamp: 1_700_000_000,
      title: "",
      damaged: 1,
      events: [
        [0.5, "o", "a"],
        [3, "o", "b"],
        [3, "o", "back"],
      ],
    });
    expect(readCast('{"version":1,"width":80,"height":24,"stdout":[[0.5,"a"],[1,"b"],["x"]]}')).toMatchObject({
      duration: 1.5,
      damaged: 1,
      events: [
        [0.5, "o", "a"],
        [1.5, "o", "b"],
      ],
    });
  });

  it("are told from other text", () => {
    for (const none of ["", "$ ls\n", "{}", "[1,2]", '{"version":3}\n[0,"o","a"]', '{"version":2', "null"])
      expect(readCast(none)).toBeNull();
  });

  it("begin at their row's time less their length, or at their own timestamp", () => {
    const cast = readCast(v2)!;
    const t0 = 1_699_999_990e9;
    expect(castStart(cast, 13.4e9, t0)).toBeCloseTo(10.4e9, -3);
    expect(castStart(cast, 12e9, t0)).toBe(10e9);
    expect(castStart(cast, 60e9, t0), "a row that was written much later").toBe(11e9);
    expect(castStart({ ...cast, timestamp: 1_700_000_000.25 }, 60e9, t0) / 1e9).toBeCloseTo(10.25, 5);
    expect(castStart({ ...cast, timestamp: null }, 60e9, t0)).toBe(57e9);
  });
});
