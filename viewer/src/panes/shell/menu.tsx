/** A button that opens a small panel below itself. Escape, a click elsewhere or a move of the focus closes it. */
import type { ComponentChildren, JSX } from "preact";
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export function Menu(props: {
  label: string;
  button: ComponentChildren;
  class?: string;
  /** Where others than the button may open it. */
  shown?: Signal<boolean>;
  children: (close: () => void) => ComponentChildren;
}): JSX.Element {
  const own = useSignal(false);
  const state = props.shown ?? own;
  const open = state.value;
  const setOpen = (to: boolean): void => {
    state.value = to;
  };
  const box = useRef<HTMLDivElement>(null);
  const close = (): void => {
    setOpen(false);
    box.current?.querySelector("button")?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event): void => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, [open]);
  return (
    <div
      class="menu"
      ref={box}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        event.stopPropagation();
        close();
      }}
    >
      <button
        type="button"
        class={`button ${props.class ?? ""}`}
        aria-label={props.label}
        title={props.label}
        aria-haspopup="dialog"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {props.button}
      </button>
      {open ? (
        <div class="menu-panel" role="dialog" aria-label={props.label}>
          {props.children(close)}
        </div>
      ) : null}
    </div>
  );
}
