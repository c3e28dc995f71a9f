/** The page without a run: where to drop one, what to type for one, what went wrong with the last. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import "../../style/empty.css";
import { page, trouble } from "../../state/app";
import { said } from "../../state/link";
import { dragging, opening, openRun } from "../../state/open";
import { bytes } from "../../state/words";
import { Command } from "../command";
import { Icon } from "../icons";

const COMMAND = "worldline view";

export function Empty(): JSX.Element {
  const picker = useRef<HTMLInputElement>(null);
  const [address, setAddress] = useState("");
  if (page.value === "opening") return <Opening />;
  return (
    <main class="empty-page" id="main" data-testid="empty">
      {page.value === "error" && trouble.value ? <Trouble /> : null}
      <section class={`drop-zone ${dragging.value ? "over" : ""}`} aria-label="Open a recording">
        <Icon name="drop" class="large" />
        <h1>Drop a recording here</h1>
        <p class="muted">
          a <code>.skn</code> file, or two of them to compare
        </p>
        <button type="button" class="button main" onClick={() => picker.current?.click()}>
          choose a file…
        </button>
        <input
          ref={picker}
          type="file"
          accept=".skn"
          multiple
          class="unseen"
          tabIndex={-1}
          aria-label="Recordings"
          onChange={(event) => void openRun([...(event.currentTarget.files ?? [])].map((file) => ({ file })))}
        />
      </section>
      <div class="ways">
        <section>
          <h2>From the terminal</h2>
          <p class="muted">All runs of the store, live ones too.</p>
          <Command>{COMMAND}</Command>
        </section>
        <section>
          <h2>From an address</h2>
          <p class="muted">Read in parts: its server must allow ranges.</p>
          <form
            class="command"
            onSubmit={(event) => {
              event.preventDefault();
              void openRun([{ url: address.trim() }]);
            }}
          >
            <input
              class="field"
              type="url"
              required
              placeholder="https://…/run.skn"
              aria-label="Address of a recording"
              value={address}
              onInput={(event) => setAddress(event.currentTarget.value)}
            />
            <button type="submit" class="button">
              open
            </button>
          </form>
        </section>
      </div>
      <p class="promise">
        <Icon name="lock" /> Nothing leaves this page. The file is read here, in your browser, and sent nowhere.
      </p>
      <p class="unseen" role="status">
        {said.value}
      </p>
    </main>
  );
}

function Opening(): JSX.Element {
  const now = opening.value;
  return (
    <main class="empty-page" id="main" aria-busy="true">
      <p class="opening" role="status">
        Opening {now?.label ?? "the recording"}
        {now?.size ? ` (${bytes(now.size)})` : ""}…
      </p>
    </main>
  );
}

function Trouble(): JSX.Element | null {
  const wrong = trouble.value;
  if (wrong === null) return null;
  return (
    <section class="trouble" role="alert">
      <h1>
        <Icon name="cross" class="is-failed" /> {wrong.title}
      </h1>
      <p class="wrap">{wrong.what}</p>
      <p class="wrap">
        <b>What to do:</b> {wrong.todo}
      </p>
    </section>
  );
}
