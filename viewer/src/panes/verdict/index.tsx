/** The verdict line: how the run ended, why, and what led there, in words that can be clicked. */
import type { JSX } from "preact";
import "../../style/verdict.css";
import { run, version } from "../../state/app";
import { goTo } from "../../state/moves";
import { Icon, type IconName } from "../icons";
import { verdictWords, type VerdictPart } from "./words";
import { stepNumber } from "../../state/numbers";

const LOOK: Record<string, { icon: IconName; class: string }> = {
  failed: { icon: "cross", class: "is-failed" },
  succeeded: { icon: "tick", class: "is-ok" },
  partial: { icon: "diamond", class: "is-warn" },
  running: { icon: "running", class: "is-running" },
  interrupted: { icon: "sealBroken", class: "is-warn" },
  unknown: { icon: "question", class: "is-unknown" },
};

export function Verdict(): JSX.Element | null {
  void version.value;
  const open = run.value;
  if (open === null) return null;
  const parts = verdictWords(open.verdict, open.outline.steps);
  const look = LOOK[open.verdict.outcome] ?? { icon: "question" as const, class: "is-unknown" };
  return (
    <div
      class={`verdict ${open.verdict.outcome} ${open.verdict.deniedAt >= 0 ? "denied" : ""}`}
      role="group"
      aria-label="Verdict"
      data-testid="verdict"
    >
      <Icon name={look.icon} class={look.class} />
      {parts.map((part, n) => (
        <Part key={n} part={part} tone={look.class} />
      ))}
    </div>
  );
}

function Part({ part, tone }: { part: VerdictPart; tone: string }): JSX.Element {
  const name = part.tone === "denied" ? "is-denied" : part.tone === "main" ? tone : "";
  const inside =
    part.tone === "denied" ? (
      <>
        <Icon name="noEntry" /> {part.text}
      </>
    ) : (
      part.text
    );
  const { step } = part;
  if (step === undefined)
    return (
      <span class={`part ${name} ${part.tone}`} title={part.text}>
        {inside}
      </span>
    );
  return (
    <button
      type="button"
      class={`part link ${name} ${part.tone}`}
      title={`Go to step ${stepNumber(step)}`}
      onClick={() => goTo(step)}
    >
      {inside}
    </button>
  );
}
