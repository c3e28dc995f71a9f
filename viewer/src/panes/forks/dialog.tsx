/**
 * "Fork from here": which step, what to change there, the command that does it, and, where the server may, its start.
 *
 * Nothing is started by opening this. The command is shown first; starting it is a second, deliberate press.
 */
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { drawer, liveState, outline, run, step } from "../../state/app";
import { runId } from "../../state/link";
import { openServed, session } from "../../state/open";
import { post } from "../../state/server";
import { plural } from "../../state/words";
import { Command } from "../command";
import { Icon } from "../icons";
import { Dialog } from "../shell/dialog";
import { agentWords, forkCommand } from "./command";
import { awaitNew, tree } from "./tree";
import { stepNumber } from "../../state/numbers";

/** What the server says of a start: the branch; or why it does not start it; or how it ended at once. */
interface Started {
  run?: string | null;
  why?: string;
  exit?: number | null;
  said?: string;
}

const KEYS = ["model", "temperature", "seed", "top_p", "max_tokens"] as const;
/** Typing is over after this long. */
const REST_MS = 250;

export function ForkDialog(): JSX.Element | null {
  const open = run.value;
  const now = outline.value;
  const at = useSignal(step.peek());
  const changes = useSignal<{ key: string; value: string }[]>([{ key: "model", value: "" }]);
  const trouble = useSignal("");
  const starting = useSignal(false);
  const told = useSignal<{ asked: string; command: string } | null>(null);
  const set = useComputed<Record<string, string>>(() =>
    Object.fromEntries(
      changes.value
        .filter(({ key, value }) => key.trim() !== "" && value !== "")
        .map(({ key, value }) => [key.trim(), value]),
    ),
  );
  const asked = useComputed(() => JSON.stringify({ at: `step:${stepNumber(at.value)}`, set: set.value }));
  const server = open?.server ?? null;
  const mayStart = server !== null && session.value?.features.fork === true;

  // The server knows the command better: it knows the store and how the agent was started.
  useSignalEffect(() => {
    const body = asked.value;
    if (!mayStart || server === null) return undefined;
    const timer = setTimeout(() => {
      post<{ command?: string }>(`${server}fork`, JSON.parse(body) as unknown).then(
        (answer) => {
          if (typeof answer?.command === "string") told.value = { asked: body, command: answer.command };
          trouble.value = "";
        },
        (reason: unknown) => (trouble.value = reason instanceof Error ? reason.message : String(reason)),
      );
    }, REST_MS);
    return () => clearTimeout(timer);
  });

  if (open === null || now === null) return null;
  const header = open.recording.header.data;
  const own = forkCommand(runId(header) || open.recording.label, stepNumber(at.value), set.value, agentWords(header));
  const command = told.value?.asked === asked.value ? told.value.command : own;
  const ready = !mayStart || told.value?.asked === asked.value;
  const close = (): void => {
    drawer.value = "none";
  };
  const start = async (): Promise<void> => {
    if (server === null) return;
    starting.value = true;
    trouble.value = "";
    const known = new Set((tree.value ?? []).map((one) => one.run));
    try {
      const answer = await post<Started>(`${server}fork`, {
        at: `step:${stepNumber(at.value)}`,
        set: set.value,
        confirm: true,
      });
      if (answer.why !== undefined) {
        trouble.value = answer.why;
        return;
      }
      const ended = answer.exit !== undefined && answer.exit !== null;
      const branch = answer.run ?? (ended ? null : await awaitNew(server, known));
      if (branch === null) {
        trouble.value = ended
          ? `It ended at once, with exit code ${answer.exit}${answer.said ? `: ${answer.said}` : "."}`
          : "It was started, but no run of it has appeared yet. It will stand among the forks when it has.";
        return;
      }
      await openServed(branch, {});
    } catch (reason) {
      trouble.value = reason instanceof Error ? reason.message : String(reason);
    } finally {
      starting.value = false;
    }
  };
  const steps = now.steps.length;
  return (
    <Dialog title="Fork from here" class="fork-dialog" onClose={close}>
      <div class="fork-form">
        <p>
          Steps before step {stepNumber(at.value)} are taken from the record. From step {stepNumber(at.value)} on it is
          live: the model is asked anew and tools run again, with what they do outside.
        </p>
        <label class="line">
          <span>at step</span>
          <input
            class="field"
            type="number"
            min={stepNumber(0)}
            max={stepNumber(Math.max(steps - 1, 0))}
            value={stepNumber(at.value)}
            onInput={(event) =>
              (at.value = Math.min(
                Math.max((Math.trunc(Number(event.currentTarget.value)) || 0) - stepNumber(0), 0),
                Math.max(steps - 1, 0),
              ))
            }
          />
          <span class="muted clip">{steps > 0 ? now.steps.name(at.value) : ""}</span>
        </label>
        <fieldset>
          <legend>changed there</legend>
          {changes.value.map((change, i) => (
            <div class="line" key={i}>
              <input
                class="field key"
                list="fork-keys"
                aria-label={`What is changed, ${i + 1}`}
                value={change.key}
                onInput={(event) =>
                  (changes.value = changes.value.map((one, k) =>
                    k === i ? { ...one, key: event.currentTarget.value } : one,
                  ))
                }
              />
              <span>=</span>
              <input
                class="field"
                aria-label={`New value, ${i + 1}`}
                placeholder="as recorded"
                value={change.value}
                onInput={(event) =>
                  (changes.value = changes.value.map((one, k) =>
                    k === i ? { ...one, value: event.currentTarget.value } : one,
                  ))
                }
              />
              <button
                type="button"
                class="button plain square"
                aria-label={`Leave out change ${i + 1}`}
                onClick={() => (changes.value = changes.value.filter((_, k) => k !== i))}
              >
                <Icon name="close" />
              </button>
            </div>
          ))}
          <datalist id="fork-keys">
            {KEYS.map((key) => (
              <option key={key} value={key} />
            ))}
          </datalist>
          <button
            type="button"
            class="button plain small"
            onClick={() => (changes.value = [...changes.value, { key: "", value: "" }])}
          >
            + another change
          </button>
          {Object.keys(set.value).length === 0 ? (
            <p class="muted">Nothing is changed: the step is drawn again as it was.</p>
          ) : null}
        </fieldset>
        <Command wide>{command}</Command>
        {trouble.value === "" ? null : (
          <p class="is-failed" role="alert">
            {trouble.value}
          </p>
        )}
        <footer>
          {mayStart ? (
            <>
              <span class="muted">
                {plural(at.value, "step")} served, then live
                {liveState.value === "live" ? "; this run goes on beside it" : ""}
              </span>
              <span class="spacer" />
              <button type="button" class="button" onClick={close}>
                Cancel
              </button>
              <button
                type="button"
                class="button main"
                disabled={starting.value || !ready}
                onClick={() => void start()}
              >
                <Icon name="fork" /> {starting.value ? "starting…" : "Start this fork"}
              </button>
            </>
          ) : (
            <span class="muted">
              {server === null
                ? "No server stands behind this page, so it starts nothing: run the command where the agent is."
                : "This server starts no forks: run the command where the agent is."}
            </span>
          )}
        </footer>
      </div>
    </Dialog>
  );
}
