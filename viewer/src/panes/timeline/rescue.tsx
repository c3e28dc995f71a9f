/** The card of a certified drop: what the step cost, what would have gone well, and a way to see it beside this run. */
import type { JSX } from "preact";
import { openBeside } from "../../state/open";
import { stepNumber } from "../../state/numbers";
import { Icon } from "../icons";
import { rescue, study } from "./study";

export function RescueCard(): JSX.Element | null {
  const open = rescue.value;
  const found = study.value;
  if (open === null || found === null) return null;
  const draw = found.rescued;
  return (
    <aside class="tl-rescue card" aria-label="Why it failed">
      <button
        type="button"
        class="button plain small square close"
        aria-label="Close"
        onClick={() => (rescue.value = null)}
      >
        <Icon name="close" />
      </button>
      <h3>
        Step {stepNumber(open.step)} cost <b>{open.drop.toFixed(2)}</b> of the chance to succeed
      </h3>
      <p class="muted">
        between {open.lo.toFixed(2)} and {open.hi.toFixed(2)}
        {found.verdict === "" ? "" : ` · ${found.verdict}`}
      </p>
      {draw === null ? (
        <p class="muted">No draw that went well was kept.</p>
      ) : (
        <>
          {draw.action ? (
            <p>
              A draw that went well did: <code>{draw.action}</code>
            </p>
          ) : null}
          {draw.rate !== undefined ? (
            <p class="muted">{Math.round(draw.rate * 100)} of 100 draws from here went well.</p>
          ) : null}
          {draw.run ? (
            <button type="button" class="button" onClick={() => void openBeside({ served: draw.run ?? "" })}>
              <Icon name="compare" /> See it beside this run
            </button>
          ) : null}
        </>
      )}
    </aside>
  );
}
