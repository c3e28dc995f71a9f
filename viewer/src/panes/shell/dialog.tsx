/** A box above the page, with the browser's own rules for one: focus stays inside, Escape closes it. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "../icons";

export function Dialog(props: {
  title: string;
  class?: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Beside the title. */
  aside?: ComponentChildren;
}): JSX.Element {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null || element.open) return;
    const back = document.activeElement;
    element.showModal();
    element.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      element.close();
      if (back instanceof HTMLElement && back.isConnected) back.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={`dialog ${props.class ?? ""}`}
      aria-label={props.title}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => {
        // A click on the backdrop has the dialog itself as its target.
        if (event.target === box.current) props.onClose();
      }}
    >
      <div class="inside">
        <div class="head">
          <h2>{props.title}</h2>
          <span class="spacer" />
          {props.aside}
          <button type="button" class="button plain square" aria-label="Close" onClick={props.onClose}>
            <Icon name="close" />
          </button>
        </div>
        {props.children}
      </div>
    </dialog>
  );
}
