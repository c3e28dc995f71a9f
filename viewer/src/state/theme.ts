/**
 * Light, dark or the system's choice: kept for the next visit, said to the style sheet, and resolved for those who draw
 * on a canvas.
 */
import { computed, effect, signal } from "@preact/signals";
import { theme } from "./app";

const KEY = "worldline.theme";
const prefersDark = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;
const systemDark = signal(prefersDark?.matches ?? false);

/** What is drawn now. A canvas that reads it is drawn again when it changes. */
export const scheme = computed<"light" | "dark">(() => {
  if (theme.value !== "system") return theme.value;
  return systemDark.value ? "dark" : "light";
});

/** From here on the document follows the signal. Storage may be denied (a page from a file): then nothing is kept. */
export function startTheme(): () => void {
  const kept = stored();
  if (kept !== null) theme.value = kept;
  const listen = (event: MediaQueryListEvent): void => {
    systemDark.value = event.matches;
  };
  prefersDark?.addEventListener("change", listen);
  const stop = effect(() => {
    if (theme.value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
    keep(theme.value);
  });
  return () => {
    prefersDark?.removeEventListener("change", listen);
    stop();
  };
}

export function nextTheme(): void {
  theme.value =
    theme.value === "system" ? (systemDark.value ? "light" : "dark") : theme.value === "dark" ? "light" : "dark";
}

/** The colours of `style/tokens.css` as a canvas takes them, by their names without dashes ("acted-line"). */
export function colour(...names: string[]): string[] {
  const probe = document.createElement("span");
  document.body.append(probe);
  const style = getComputedStyle(probe);
  const found = names.map((name) => {
    probe.style.color = `var(--${name})`;
    return style.color;
  });
  probe.remove();
  return found;
}

function stored(): "system" | "light" | "dark" | null {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" || kept === "system" ? kept : null;
  } catch {
    return null;
  }
}

function keep(value: string): void {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    return;
  }
}
