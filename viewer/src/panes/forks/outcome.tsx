/** How a run ended, as a sign: each outcome has a shape of its own beside its colour. */
import type { JSX } from "preact";
import { Icon, type IconName } from "../icons";

export interface OutcomeLook {
  icon: IconName;
  word: string;
  class: string;
}

/** The word of a run's outcome may be the agent's own: then it is shown as it is, with a neutral sign. */
export function lookOf(outcome: string, live: boolean): OutcomeLook {
  if (live) return { icon: "live", word: "running", class: "is-running" };
  switch (outcome) {
    case "succeeded":
    case "success":
      return { icon: "tick", word: "succeeded", class: "is-ok" };
    case "failed":
    case "failure":
      return { icon: "cross", word: "failed", class: "is-failed" };
    case "denied":
      return { icon: "noEntry", word: "denied", class: "is-denied" };
    case "complete":
      return { icon: "end", word: "complete", class: "is-unknown" };
    case "partial":
    case "sanitized-partial":
      return { icon: "diamond", word: "partial", class: "is-note" };
    case "running":
      return { icon: "live", word: "running", class: "is-running" };
    case "interrupted":
    case "damaged":
    case "contained":
    case "missing":
      return { icon: "loss", word: outcome, class: "is-warn" };
    case "":
    case "unknown":
      return { icon: "question", word: "end unknown", class: "is-unknown" };
    default:
      return { icon: "diamond", word: outcome, class: "is-note" };
  }
}

export function Outcome({
  outcome,
  live = false,
  words = false,
}: {
  outcome: string;
  live?: boolean;
  words?: boolean;
}): JSX.Element {
  const look = lookOf(outcome, live);
  return (
    <span class={`outcome ${look.class}`}>
      <Icon name={look.icon} label={words ? undefined : look.word} />
      {words ? ` ${look.word}` : ""}
    </span>
  );
}
