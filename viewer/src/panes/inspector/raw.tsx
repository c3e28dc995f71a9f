/** The rows of the step as they were written, one chosen, its JSON in lines of which only those in sight are drawn. */
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Row, StepBody } from "../../core/types";
import { run } from "../../state/app";
import { copy } from "../../state/link";
import { askReveal, masked, sensitive, shown } from "../../state/mask";
import { seekRow } from "../../state/moves";
import { bytes, clock } from "../../state/words";
import { WindowList } from "../steps/window-list";
import { pretty, tokens, wrapped, type Token } from "./json-text";
import { Line } from "./json-view";
import { ListBar } from "./list-bar";

const LINE_HEIGHT = 17;

export function RawTab({ body }: { body: StepBody }): JSX.Element {
  const { rows } = body;
  const [at, setAt] = useState(0);
  const place = Math.min(at, Math.max(0, rows.length - 1));
  const start = run.value?.outline.span[0] ?? 0;
  const chosen = rows[place];
  return (
    <>
      <div class="raw-rows" style={{ "--rows": Math.min(rows.length, 9) }}>
        <WindowList
          label="Rows of the step"
          length={rows.length}
          rowHeight={24}
          active={rows.length > 0 ? place : -1}
          empty="No row."
          onPick={(next) => {
            setAt(next);
            const row = rows[next];
            if (row) seekRow(row.seq, row.t);
          }}
          row={(n) => {
            const row = rows[n];
            return row ? (
              <div class="raw-row">
                <span class="mono muted number">{row.seq}</span>
                <span class="mono clip">
                  <b>{row.kind}</b>/{row.src}
                </span>
                <span class="mono muted">{row.call ?? ""}</span>
                <span class="mono muted number">{clock(row.t - start)}</span>
              </div>
            ) : null;
          }}
        />
      </div>
      {chosen ? <Json key={chosen.seq} row={chosen} at={body.index} /> : null}
    </>
  );
}

function Json({ row, at }: { row: Row; at: number }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [columns, setColumns] = useState(56);
  const safe = shown(row, at);
  const hidden = sensitive(row) && masked("field", row.seq, at);
  const text = useMemo(() => pretty(withoutRaw(safe)), [row, hidden]);
  const lines = useMemo(() => {
    const all: Token[][] = [];
    for (const line of text.split("\n"))
      all.push(
        ...(line.length > 2000 ? wrapped([{ text: line, kind: "string" }], columns) : wrapped(tokens(line), columns)),
      );
    return all;
  }, [text, columns]);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || typeof ResizeObserver === "undefined") return;
    const watcher = new ResizeObserver(() => {
      // The font has one width: a line of it says how many characters fit.
      const sample = element.querySelector(".sample");
      const one = (sample?.getBoundingClientRect().width ?? 0) / 10;
      if (one > 0) setColumns(Math.max(20, Math.floor((element.clientWidth - 30) / one)));
    });
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return (
    <div class="raw-json" ref={box}>
      <ListBar
        what={`row ${row.seq}, ${bytes(text.length)}`}
        hidden={hidden}
        onReveal={() => askReveal("field", row.seq)}
        onCopy={() => void copy(text, hidden ? "row copied, contents masked" : "row copied")}
      />
      <span class="sample mono" aria-hidden="true">
        0123456789
      </span>
      <WindowList
        label="Row as JSON"
        plain
        length={lines.length}
        rowHeight={LINE_HEIGHT}
        active={-1}
        onPick={() => undefined}
        class="lines-of-json"
        row={(n) => <code class="json">{lines[n] ? <Line tokens={lines[n]} /> : null}</code>}
      />
    </div>
  );
}

/** A reader may keep the row's own line beside its fields; here the fields are enough. */
function withoutRaw(row: Row): Record<string, unknown> {
  const { raw: _line, ...fields } = row;
  return fields;
}
