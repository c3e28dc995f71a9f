/** What the page under the agent wrote to its console during the step. A line moves the playhead to its time. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ConsoleLine, StepBody } from "../../core/types";
import { run, step } from "../../state/app";
import { copy } from "../../state/link";
import { askReveal, masked, seen } from "../../state/mask";
import { seekRow } from "../../state/moves";
import { clock, plural } from "../../state/words";
import { Icon, type IconName } from "../icons";
import { Hidden, ListBar } from "./list-bar";
import { WindowList } from "../steps/window-list";
import { stepNumber } from "../../state/numbers";

const LOOK: Record<ConsoleLine["level"], { icon: IconName | null; class: string }> = {
  error: { icon: "cross", class: "is-failed" },
  warning: { icon: "warning", class: "is-warn" },
  info: { icon: null, class: "" },
  log: { icon: null, class: "" },
  debug: { icon: null, class: "muted" },
};

export function ConsoleTab({ body }: { body: StepBody }): JSX.Element {
  const lines = body.console;
  const [at, setAt] = useState(-1);
  const start = run.value?.outline.span[0] ?? 0;
  const chosen = lines[at];
  const hidden = lines.length > 0 && masked("step", lines[0]?.seq ?? 0, body.index);
  return (
    <>
      <ListBar
        what={plural(lines.length, "line")}
        hidden={hidden}
        onReveal={() => askReveal("step", lines[0]?.seq ?? 0)}
        onCopy={() =>
          void copy(
            lines
              .map((line) => `${clock(line.t - start)} ${line.level} ${seen(line.text, "field", line.seq, body.index)}`)
              .join("\n"),
            "console copied",
          )
        }
      />
      <WindowList
        label="Console"
        length={lines.length}
        rowHeight={24}
        active={at}
        empty="Nothing was written to the console in this step."
        onPick={(place) => {
          setAt(place);
          const line = lines[place];
          if (line) seekRow(line.seq, line.t);
        }}
        row={(place) => (lines[place] ? <Line line={lines[place]} start={start} shownIn={body.index} /> : null)}
      />
      {chosen ? (
        <div class="below scroll" tabIndex={0} role="group" aria-label="The line in full">
          {masked("field", chosen.seq, body.index) ? (
            <Hidden seq={chosen.seq} what="text" />
          ) : (
            <pre class="wrap">{chosen.text}</pre>
          )}
          <p class="muted">
            {chosen.level}
            {chosen.where === "" ? "" : ` at ${seen(chosen.where, "field", chosen.seq, body.index)}`} · row {chosen.seq}{" "}
            · {clock(chosen.t - start)} · step {stepNumber(step.value)}
          </p>
        </div>
      ) : null}
    </>
  );
}

function Line({ line, start, shownIn }: { line: ConsoleLine; start: number; shownIn: number }): JSX.Element {
  const look = LOOK[line.level];
  return (
    <div class={`console-line ${look.class}`}>
      <span class="mono muted">{clock(line.t - start)}</span>
      {look.icon ? <Icon name={look.icon} label={line.level} /> : <span class="level" title={line.level} />}
      {masked("field", line.seq, shownIn) ? (
        <span class="hatched bar-only" style={{ width: `${Math.min(260, 20 + line.text.length * 3)}px` }}>
          <span class="unseen">masked</span>
        </span>
      ) : (
        <span class="mono clip">{line.text}</span>
      )}
    </div>
  );
}
