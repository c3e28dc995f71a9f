/** Why it failed, where somebody measured it: what this step cost of the chance to succeed. Never guessed. */
import type { JSX } from "preact";
import { run, type Open } from "../../state/app";
import { goTo } from "../../state/moves";
import { stepNumber } from "../../state/numbers";
import { openBeside } from "../../state/open";
import { study } from "../timeline/study";
import { Heading } from "./masked";

export function WhyCard({ step, open }: { step: number; open: Open }): JSX.Element | null {
  const found = study.value;
  if (found === null || run.value !== open) return null;
  const worst = [...found.certified].sort((a, b) => b.drop - a.drop)[0];
  const own = found.certified.find((drop) => drop.step === step);
  const near = open.verdict.failedAt === step || open.verdict.deniedAt === step;
  const cause = own ?? (near ? worst : undefined);
  if (cause === undefined) return null;
  const { rescued } = found;
  return (
    <article class="card why" data-testid="why">
      <Heading aside="measured by rollouts">Why it failed</Heading>
      <p>
        Step{" "}
        <button type="button" class="link" onClick={() => goTo(cause.step)}>
          <b>{stepNumber(cause.step)}</b>
        </button>{" "}
        cost <b>{cause.drop.toFixed(2)}</b> of the chance to succeed{" "}
        <span class="muted">
          [{cause.lo.toFixed(2)}, {cause.hi.toFixed(2)}]
        </span>
        {found.verdict === "" ? null : (
          <>
            {" "}
            · <b>{found.verdict}</b>
          </>
        )}
      </p>
      {rescued === null ? null : (
        <p class="muted">
          Another draw went well
          {rescued.action ? (
            <>
              : <span class="mono">{rescued.action}</span>
            </>
          ) : null}
          .{" "}
          {rescued.run ? (
            <button type="button" class="link" onClick={() => void openBeside({ served: rescued.run ?? "" })}>
              See it beside this run →
            </button>
          ) : null}
        </p>
      )}
    </article>
  );
}
