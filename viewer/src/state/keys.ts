/**
 * Every key of the panel, once: what is pressed, what it does. The help sheet is made from this table.
 */
import { signal } from "@preact/signals";
import { fit, panBy, showWhole, timeBeside, toggleFold, toggleNearestGap, zoomBy } from "../panes/timeline/camera";
import { leftOf, toParent } from "./ancestry";
import { drawer, filter, liveState, page, playing, run, stage, step, tab, type Stage, type Tab } from "./app";
import { copyLink, say } from "./link";
import { first, last, moveBy, seek, toLive, toPermission, toProblem } from "./moves";
import { nextTheme } from "./theme";

export interface Binding {
  /** `KeyboardEvent.key` in lower case, with "Alt+" or "Shift+" before it where they must be held. */
  keys: string[];
  /** As the help sheet shows them. */
  shown: string;
  does: string;
  group: "Move" | "Timeline" | "Look" | "Do";
  run: (key: string) => void;
}

/** What B and C need from the comparison: set by the shell, which knows how a second run is chosen. */
export const commands = signal<{ compare: () => void }>({ compare: () => undefined });

export const TABS: readonly Tab[] = ["decision", "snapshot", "state", "console", "network", "raw", "integrity"];
export const STAGES: readonly Stage[] = ["seen", "screen", "dom", "terminal", "video"];

const none = (found: boolean, what: string): void => {
  if (!found) say(`no ${what} that way`);
};

/** A part of what the timeline shows, so that a press is as far at every zoom. */
function seekBy(part: number): void {
  seek(timeBeside(part));
}

export const BINDINGS: readonly Binding[] = [
  { keys: ["j"], shown: "J", does: "next step", group: "Move", run: () => moveBy(1) },
  { keys: ["k"], shown: "K", does: "step before", group: "Move", run: stepBack },
  {
    keys: ["n"],
    shown: "N",
    does: "next problem: what failed or was denied",
    group: "Move",
    run: () => none(toProblem(1), "problem"),
  },
  { keys: ["p"], shown: "P", does: "problem before", group: "Move", run: () => none(toProblem(-1), "problem") },
  { keys: ["o"], shown: "O", does: "next permission", group: "Move", run: () => none(toPermission(1), "permission") },
  {
    keys: ["Shift+o"],
    shown: "Shift O",
    does: "permission before",
    group: "Move",
    run: () => none(toPermission(-1), "permission"),
  },
  { keys: ["arrowright"], shown: "→", does: "a little later", group: "Move", run: () => seekBy(0.01) },
  { keys: ["arrowleft"], shown: "←", does: "a little earlier", group: "Move", run: () => seekBy(-0.01) },
  { keys: ["Shift+arrowright"], shown: "Shift →", does: "later", group: "Move", run: () => seekBy(0.1) },
  { keys: ["Shift+arrowleft"], shown: "Shift ←", does: "earlier", group: "Move", run: () => seekBy(-0.1) },
  { keys: ["home"], shown: "Home", does: "first step", group: "Move", run: first },
  { keys: ["end"], shown: "End", does: "last step", group: "Move", run: last },
  { keys: [" "], shown: "Space", does: "play or pause", group: "Move", run: () => (playing.value = !playing.value) },
  {
    keys: ["u"],
    shown: "U",
    does: "up: the run that this one left, where it did",
    group: "Move",
    run: () => toParent(),
  },
  { keys: ["l"], shown: "L", does: "live: to the end, and along with it", group: "Move", run: live },

  { keys: ["w"], shown: "W", does: "zoom in", group: "Timeline", run: () => zoomBy(0.5) },
  { keys: ["s"], shown: "S", does: "zoom out", group: "Timeline", run: () => zoomBy(2) },
  { keys: ["a"], shown: "A", does: "move left", group: "Timeline", run: () => panBy(-0.2) },
  { keys: ["d"], shown: "D", does: "move right", group: "Timeline", run: () => panBy(0.2) },
  { keys: ["f"], shown: "F", does: "fit the step", group: "Timeline", run: fit },
  { keys: ["0"], shown: "0", does: "the whole run", group: "Timeline", run: showWhole },
  { keys: ["x"], shown: "X", does: "fold or unfold the gaps", group: "Timeline", run: toggleFold },
  { keys: ["Shift+x"], shown: "Shift X", does: "open the nearest gap", group: "Timeline", run: toggleNearestGap },

  {
    keys: ["1", "2", "3", "4", "5", "6", "7"],
    shown: "1–7",
    does: "tabs: decision, snapshot, state, console, network, raw, integrity",
    group: "Look",
    run: (key) => (tab.value = TABS[Number(key) - 1] ?? "decision"),
  },
  {
    keys: ["Alt+1", "Alt+2", "Alt+3", "Alt+4", "Alt+5"],
    shown: "Alt 1–5",
    does: "stage: what the agent saw, screen, DOM, terminal, video",
    group: "Look",
    run: (key) => (stage.value = STAGES[Number(key) - 1] ?? "seen"),
  },
  { keys: ["/"], shown: "/", does: "search", group: "Look", run: () => (drawer.value = "search") },
  { keys: ["t"], shown: "T", does: "light or dark", group: "Look", run: nextTheme },
  {
    keys: ["?"],
    shown: "?",
    does: "this help",
    group: "Look",
    run: () => (drawer.value = drawer.value === "help" ? "none" : "help"),
  },
  { keys: ["escape"], shown: "Esc", does: "close what is open; show all steps", group: "Look", run: back },

  { keys: ["m"], shown: "M", does: "write a note", group: "Do", run: () => (drawer.value = "note") },
  { keys: ["c"], shown: "C", does: "copy a link to here", group: "Do", run: () => void copyLink() },
  { keys: ["b"], shown: "B", does: "compare with another run", group: "Do", run: () => commands.value.compare() },
];

/** From here on keys do what the table says, but not while something is being written. */
export function listen(target: Pick<EventTarget, "addEventListener" | "removeEventListener"> = window): () => void {
  const onKey = (event: Event): void => {
    if (event instanceof KeyboardEvent) press(event);
  };
  target.addEventListener("keydown", onKey);
  return () => target.removeEventListener("keydown", onKey);
}

/** True where the key was one of ours. */
export function press(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || writes(event.target)) return false;
  if (page.value !== "run" && page.value !== "compare") return false;
  // A dialog has its own keys; only the help sheet closes with the key that opened it.
  if (event.target instanceof Element && event.target.closest("dialog") && event.key !== "?") return false;
  // A button keeps the keys that press it.
  if (
    (event.key === " " || event.key === "Enter") &&
    event.target instanceof Element &&
    event.target.closest("button, a, summary, select")
  )
    return false;
  const key = nameOf(event);
  const binding = BINDINGS.find(({ keys }) => keys.includes(key));
  if (!binding) return false;
  event.preventDefault();
  binding.run(key.replace(/^(Alt|Shift)\+/, ""));
  return true;
}

/** The key as the table writes it. With Alt the digit comes from the key's place, since Alt makes other characters. */
export function nameOf(event: Pick<KeyboardEvent, "key" | "code" | "altKey" | "shiftKey">): string {
  if (event.altKey) return `Alt+${/^Digit(\d)$/.exec(event.code)?.[1] ?? event.key.toLowerCase()}`;
  const key = event.key.toLowerCase();
  const letter = key.length > 1 || /^[a-z]$/.test(key);
  return event.shiftKey && letter ? `Shift+${key}` : key;
}

function writes(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

function back(): void {
  if (drawer.value !== "none") drawer.value = "none";
  else filter.value = "all";
}

function stepBack(): void {
  const left = leftOf(run.value);
  if (left !== null && left.step > 0 && step.value === 0 && filter.value === "all")
    return say(`step ${left.step - 1} is one of run ${left.run.slice(-4)}: U goes there`);
  moveBy(-1);
}

function live(): void {
  if (liveState.value === "off" || run.value === null) say("this run does not go on");
  else toLive();
}
