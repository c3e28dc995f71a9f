/**
 * The agent stands still and asks: what it wants, how long it waits, and the two answers. It lies above the
 * page until it is answered; no key answers it, so that nobody grants anything by accident.
 */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import "../../style/asked.css";
import { liveState, outline, run } from "../../state/app";
import { seekRow } from "../../state/moves";
import { ServerError, post } from "../../state/server";
import { duration, plural } from "../../state/words";
import { Icon } from "../icons";
import { type Waiting, waiting, watchWaiting } from "./waiting";

export function Asked(): JSX.Element | null {
  useEffect(watchWaiting, []);
  const open = waiting.value;
  const first = open[0];
  if (first === undefined || run.value === null) return null;
  return (
    <section class="asked" aria-label="Permission asked" data-testid="asked">
      <p class="unseen" role="alert">
        The agent asks for permission: {first.capability}
      </p>
      <Question key={first.seq} asked={first} />
      {open.length > 1 ? (
        <p class="muted more">
          {plural(open.length - 1, "further request")} {open.length === 2 ? "waits" : "wait"} behind it.
        </p>
      ) : null}
    </section>
  );
}

function Question({ asked }: { asked: Waiting }): JSX.Element {
  const reason = useSignal("");
  const state = useSignal<"open" | "sending" | "sent">("open");
  const trouble = useSignal("");
  const decide = async (decision: "granted" | "denied"): Promise<void> => {
    const server = run.peek()?.server;
    if (server == null) return;
    state.value = "sending";
    trouble.value = "";
    try {
      await post(`${server}permission`, { seq: asked.seq, decision, reason: reason.value.trim() });
      // It goes when its row has come: the record says how it was decided, not this page.
      state.value = "sent";
    } catch (failure) {
      state.value = "open";
      trouble.value = failure instanceof ServerError ? failure.message : String(failure);
    }
  };
  const facts = Object.entries(asked.facts);
  return (
    <form class="question" onSubmit={(event) => event.preventDefault()}>
      <header>
        <Icon name="requested" class="is-denied" />{" "}
        <h2>
          The agent waits for you: <code class="wrap">{asked.capability}</code>
        </h2>
        <button type="button" class="link" onClick={() => seekRow(asked.seq, asked.t)}>
          row {asked.seq}
        </button>
      </header>
      {facts.length > 0 ? (
        <dl>
          {facts.slice(0, 12).map(([key, value]) => (
            <div key={key}>
              <dt>{key}</dt>
              <dd class="wrap">{typeof value === "string" ? value : JSON.stringify(value)}</dd>
            </div>
          ))}
        </dl>
      ) : null}
      <Since asked={asked} />
      {liveState.value === "stalled" ? (
        <p class="is-warn">
          <Icon name="warning" /> Its recorder is silent. It may not take an answer any more.
        </p>
      ) : null}
      <label class="why">
        <span>Reason, for the record</span>
        <input
          class="field"
          maxLength={2000}
          value={reason.value}
          disabled={state.value !== "open"}
          onInput={(event) => (reason.value = event.currentTarget.value)}
        />
      </label>
      {trouble.value === "" ? null : (
        <p class="is-failed wrap" role="alert">
          {trouble.value}
        </p>
      )}
      <div class="answers">
        <button
          type="button"
          class="button deny"
          disabled={state.value !== "open"}
          onClick={() => void decide("denied")}
        >
          <Icon name="noEntry" /> Deny
        </button>
        <button
          type="button"
          class="button grant"
          disabled={state.value !== "open"}
          onClick={() => void decide("granted")}
        >
          <Icon name="granted" /> Grant
        </button>
        {state.value === "sent" ? <span class="muted">answered; the agent is told</span> : null}
      </div>
    </form>
  );
}

/** How long it waits, by this page's clock: the run's own stands still while nothing comes. */
function Since({ asked }: { asked: Waiting }): JSX.Element {
  const [shown] = useState(() => ({
    at: performance.now(),
    since: Math.max(0, (outline.peek()?.span[1] ?? asked.t) - asked.t),
  }));
  const [now, tick] = useState(() => performance.now());
  useEffect(() => {
    const timer = setInterval(() => tick(performance.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const waited = shown.since + (now - shown.at) * 1e6;
  const left = asked.timeout === null ? null : asked.timeout * 1e9 - waited;
  return (
    <p class="muted">
      waits {duration(Math.round(waited / 1e9) * 1e9)}
      {asked.escalated ? " · was passed on" : ""}
      {left === null
        ? " · as long as it takes"
        : ` · ${asked.fallback} ${left > 0 ? `in ${duration(Math.max(1e9, Math.round(left / 1e9) * 1e9))}` : "any moment"} if nobody answers`}
    </p>
  );
}
