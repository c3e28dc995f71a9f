/** The question before something masked is shown: how much, and why. The answer is written down. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { drawer, run } from "../../state/app";
import { reveal, revealing, REVEAL_MS, type Scope } from "../../state/mask";
import { Dialog } from "./dialog";
import { stepNumber } from "../../state/numbers";

export function RevealDialog(): JSX.Element {
  const asked = revealing.value;
  const [scope, setScope] = useState<Scope>(asked.scope);
  const [reason, setReason] = useState("");
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const close = (): void => {
    drawer.value = "none";
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setWrong("");
    try {
      await reveal(scope, asked.seq, reason, asked.step);
      close();
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  const choices: { key: Scope; text: string }[] = [
    { key: "field", text: `only this: row ${asked.seq}` },
    { key: "step", text: `all of step ${stepNumber(asked.step)}` },
    { key: "session", text: "the whole run" },
  ];
  const server = run.value?.server ?? null;
  return (
    <Dialog title="Reveal what is masked" class="narrow" onClose={close}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <fieldset class="choices">
          <legend>How much</legend>
          {choices
            .filter(({ key }) => asked.scope === "field" || key !== "field")
            .map(({ key, text }) => (
              <label key={key}>
                <input type="radio" name="scope" value={key} checked={scope === key} onChange={() => setScope(key)} />{" "}
                {text}
              </label>
            ))}
        </fieldset>
        <label class="labelled">
          Why
          <input
            class="field"
            value={reason}
            maxLength={300}
            data-first
            required
            placeholder="what you need to see it for"
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        {wrong === "" ? null : (
          <p class="is-failed" role="alert">
            {wrong}
          </p>
        )}
        <p class="muted">
          {server !== null
            ? "The server writes who looked, at what and why into audit.jsonl beside the recording, before anything is shown."
            : "No server stands behind this page: the reason is kept in it until you close it, and is sent nowhere."}{" "}
          It is masked again after {REVEAL_MS / 60_000} minutes.
        </p>
        <div class="buttons end">
          <button type="button" class="button" onClick={close}>
            cancel
          </button>
          <button type="submit" class="button main" disabled={busy || reason.trim() === ""}>
            reveal
          </button>
        </div>
      </form>
    </Dialog>
  );
}
