/** What is masked, what is open and for how long, and the ways to change it. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { run, step } from "../../state/app";
import { askReveal, auditTrail, maskAgain, revealed, type Reveal } from "../../state/mask";
import { plural } from "../../state/words";
import { Icon } from "../icons";
import { stepNumber } from "../../state/numbers";

export function MaskPanel({ close }: { close: () => void }): JSX.Element {
  const open = revealed();
  return (
    <div class="mask-menu">
      <p>Observations, console and network are masked on this screen, in searches and in what is copied.</p>
      {open.length > 0 ? (
        <ul>
          {open.map((entry, n) => (
            <li key={n}>
              <Open entry={entry} />
            </li>
          ))}
        </ul>
      ) : null}
      <div class="buttons">
        <button
          type="button"
          class="button"
          onClick={() => {
            close();
            askReveal("step");
          }}
        >
          reveal step {stepNumber(step.value)}…
        </button>
        <button
          type="button"
          class="button"
          onClick={() => {
            close();
            askReveal("session");
          }}
        >
          reveal all…
        </button>
        {open.length > 0 ? (
          <button
            type="button"
            class="button"
            onClick={() => {
              maskAgain();
              close();
            }}
          >
            mask again
          </button>
        ) : null}
      </div>
      {run.value?.server == null && auditTrail.value.length > 0 ? (
        <p class="muted">
          {plural(auditTrail.value.length, "reveal")} in this page. No server stands behind it, so nobody else is told.
        </p>
      ) : null}
      <p class="muted">This hides from eyes that pass by. It is no secrecy: whoever has the file has the text.</p>
    </div>
  );
}

function Open({ entry }: { entry: Reveal }): JSX.Element {
  const [left, setLeft] = useState(() => entry.until - Date.now());
  useEffect(() => {
    const clock = setInterval(() => setLeft(entry.until - Date.now()), 1000);
    return () => clearInterval(clock);
  }, [entry]);
  const seconds = Math.max(0, Math.ceil(left / 1000));
  const what =
    entry.scope === "session"
      ? "everything"
      : entry.scope === "step"
        ? `step ${stepNumber(entry.step)}`
        : `row ${entry.seq}`;
  return (
    <>
      <Icon name="revealed" /> <b>{what}</b> for {Math.floor(seconds / 60)}:{String(seconds % 60).padStart(2, "0")} more
      <span class="muted"> “{entry.reason}”</span>
    </>
  );
}
