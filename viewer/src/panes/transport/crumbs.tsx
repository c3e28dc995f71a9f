/** Where the timeline's window lies: whole run > the stretch around > the steps that are seen. */
import { computed } from "@preact/signals";
import type { JSX } from "preact";
import { outline, version } from "../../state/app";
import { stepAt } from "../../state/moves";
import { clock } from "../../state/words";
import { axis, isWhole, projection, show, showWhole, shown } from "../timeline/camera";
import { clamp, toT } from "../../core/axis";
import { stepNumber } from "../../state/numbers";

/** The stretch around is so many times as wide as what is seen. */
const AROUND = 6;

const around = computed<[number, number] | null>(() => {
  const now = projection.value,
    all = axis.value;
  if (now === null || all === null || isWhole.value) return null;
  const more = (now.width * (AROUND - 1)) / 2;
  const [from, to] = clamp(all, toT(now, -more), toT(now, now.width + more));
  return from <= all.start && to >= all.end ? null : [from, to];
});

export function Crumbs(): JSX.Element | null {
  const now = outline.value;
  void version.value;
  if (now === null) return null;
  const [from, to] = shown.value;
  const wide = around.value;
  const first = stepAt(now, from),
    last = stepAt(now, to);
  return (
    <nav class="crumbs" aria-label="Zoom">
      {isWhole.value ? (
        <b aria-current="true">whole run</b>
      ) : (
        <>
          <button type="button" class="crumb" onClick={showWhole} title="The whole run ( 0 )">
            whole run
          </button>
          {wide ? (
            <>
              <i aria-hidden="true">›</i>
              <button type="button" class="crumb" onClick={() => show(...wide)} title="Zoom out to the stretch around">
                {range(wide[0], wide[1])}
              </button>
            </>
          ) : null}
          <i aria-hidden="true">›</i>
          <b aria-current="true" title={`${clock(from)} to ${clock(to)}`}>
            {now.steps.length === 0
              ? range(from, to)
              : first === last
                ? `step ${stepNumber(first)}`
                : `steps ${stepNumber(first)}–${stepNumber(last)}`}
          </b>
        </>
      )}
    </nav>
  );
}

/** "02:10–02:31" of hours and minutes, or with seconds where the minutes are the same. */
function range(from: number, to: number): string {
  const a = clock(from, 0),
    b = clock(to, 0);
  const short = (text: string): string =>
    to - from >= 120e9 ? text.slice(0, -3) : text.startsWith("00:") && b.startsWith("00:") ? text.slice(3) : text;
  return `${short(a)}–${short(b)}`;
}
