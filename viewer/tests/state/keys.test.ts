/** Every key that the design names is bound once, does what it says, and stays out of the way where something is written. */
// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { drawer, filter, page, playing, run, stage, step, tab } from "../../src/state/app";
import { BINDINGS, commands, listen, nameOf, press } from "../../src/state/keys";
import { goTo } from "../../src/state/moves";
import { DENIED, FAILED, story } from "./memory";

/** The line "Keys:" of the design, as keys. */
const DESIGNED = [
  "j",
  "k",
  "arrowleft",
  "arrowright",
  " ",
  "n",
  "p",
  "o",
  "w",
  "a",
  "s",
  "d",
  "f",
  "0",
  "/",
  "1",
  "2",
  "3",
  "4",
  "5",
  "6",
  "Alt+1",
  "Alt+2",
  "Alt+3",
  "Alt+4",
  "Alt+5",
  "m",
  "c",
  "b",
  "l",
  "x",
  "?",
];

const key = (name: string, more: Partial<KeyboardEventInit> = {}): KeyboardEvent =>
  new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more });

let stop: () => void;

beforeEach(() => {
  run.value = story();
  page.value = "run";
  drawer.value = "none";
  filter.value = "all";
  goTo(0);
  stop = listen(window);
});

afterEach(() => stop());

describe("the table of keys", () => {
  it("holds every key of the design, each once", () => {
    const bound = BINDINGS.flatMap(({ keys }) => keys);
    for (const name of DESIGNED) expect(bound, name).toContain(name);
    expect(new Set(bound).size).toBe(bound.length);
  });

  it("says in words what each does", () => {
    for (const { shown, does, group } of BINDINGS) {
      expect(shown).not.toBe("");
      expect(does.length).toBeGreaterThan(3);
      expect(["Move", "Timeline", "Look", "Do"]).toContain(group);
    }
  });
});

describe("a key", () => {
  it("moves, looks and does", () => {
    document.body.dispatchEvent(key("j"));
    expect(step.value).toBe(1);
    document.body.dispatchEvent(key("n"));
    expect(step.value).toBe(DENIED);
    document.body.dispatchEvent(key("n"));
    expect(step.value).toBe(FAILED);
    document.body.dispatchEvent(key("5"));
    expect(tab.value).toBe("network");
    document.body.dispatchEvent(key("¡", { altKey: true, code: "Digit3" }));
    expect(stage.value).toBe("dom");
    document.body.dispatchEvent(key(" "));
    expect(playing.value).toBe(true);
    document.body.dispatchEvent(key(" "));
    let compared = 0;
    commands.value = { compare: () => compared++ };
    document.body.dispatchEvent(key("b"));
    expect(compared).toBe(1);
    document.body.dispatchEvent(key("/"));
    expect(drawer.value).toBe("search");
    document.body.dispatchEvent(key("Escape"));
    expect(drawer.value).toBe("none");
  });

  it("is left alone in a text field, with Ctrl, in a dialog, and where a button takes it", () => {
    const field = document.createElement("input");
    const button = document.createElement("button");
    document.body.append(field, button);
    for (const [target, event] of [
      [field, key("j")],
      [document.body, key("j", { ctrlKey: true })],
      [button, key(" ")],
    ] as const) {
      target.dispatchEvent(event);
      expect(event.defaultPrevented).toBe(false);
    }
    expect([step.value, playing.value]).toEqual([0, false]);
    field.remove();
    button.remove();
  });

  it("does nothing on a page without a run", () => {
    page.value = "empty";
    expect(press(key("j"))).toBe(false);
  });

  it("has one name, whatever the keyboard makes of Alt and Shift", () => {
    expect(nameOf({ key: "?", code: "Slash", altKey: false, shiftKey: true })).toBe("?");
    expect(nameOf({ key: "O", code: "KeyO", altKey: false, shiftKey: true })).toBe("Shift+o");
    expect(nameOf({ key: "O", code: "KeyO", altKey: false, shiftKey: false })).toBe("o");
    expect(nameOf({ key: "ArrowLeft", code: "ArrowLeft", altKey: false, shiftKey: true })).toBe("Shift+arrowleft");
  });
});
