/** A command for the terminal, and the button that copies it: what the page cannot do itself, or will not without a word. */
import type { JSX } from "preact";
import { copy } from "../state/link";
import { Icon } from "./icons";

export function Command({ children, wide = false }: { children: string; wide?: boolean }): JSX.Element {
  return (
    <p class="command">
      <code class="wrap">{children}</code>{" "}
      <button
        type="button"
        class={wide ? "button" : "button small"}
        onClick={() => void copy(children, "command copied")}
      >
        <Icon name="copy" /> copy
      </button>
    </p>
  );
}
