/** The inspector's place: the right column, and on a narrow screen a sheet that comes up from the lower edge. */
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { Icon } from "../icons";

const up = signal(false);

export function Sheet({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <div class={`sheet ${up.value ? "up" : ""}`}>
      <button type="button" class="grip" aria-expanded={up.value} onClick={() => (up.value = !up.value)}>
        <Icon name={up.value ? "down" : "chevron"} /> Inspector
      </button>
      {children}
    </div>
  );
}
