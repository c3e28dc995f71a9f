/** How a second run comes beside this one: a file, or one of the store. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { page } from "../../state/app";
import { openBeside, session } from "../../state/open";
import { Icon } from "../icons";

export function ComparePanel({ close }: { close: () => void }): JSX.Element {
  const picker = useRef<HTMLInputElement>(null);
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), []);
  const store = (session.value?.runs.length ?? 0) > 1 || session.value?.mode === "runs";
  return (
    <div class="compare-menu">
      <p>Put a second run beside this one. The first place where they differ is found for you.</p>
      <div class="buttons">
        <button ref={first} type="button" class="button" onClick={() => picker.current?.click()}>
          <Icon name="file" /> open a file…
        </button>
        {store ? (
          <button
            type="button"
            class="button"
            onClick={() => {
              close();
              page.value = "runs";
            }}
          >
            choose from the store…
          </button>
        ) : null}
      </div>
      <p class="muted">Or drop a second .skn file on this page with Shift held down.</p>
      <input
        ref={picker}
        type="file"
        accept=".skn"
        class="unseen"
        tabIndex={-1}
        aria-label="A second recording"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (file) void openBeside({ file });
          close();
        }}
      />
    </div>
  );
}
