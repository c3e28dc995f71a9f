/** What went over the network during the step: one line an exchange, its place in the step as a bar, its facts below. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Exchange, StepBody } from "../../core/types";
import { run, type Open } from "../../state/app";
import { copy } from "../../state/link";
import { askReveal, MASKED, masked } from "../../state/mask";
import { seekRow } from "../../state/moves";
import { bytes, clock, duration, plural } from "../../state/words";
import { Icon } from "../icons";
import { WindowList } from "../steps/window-list";
import { Hidden, ListBar } from "./list-bar";

const MS = 1e6;

export function NetworkTab({ body, open }: { body: StepBody; open: Open }): JSX.Element {
  const rows = body.network;
  const [at, setAt] = useState(-1);
  const start = run.value?.outline.span[0] ?? 0;
  const { steps } = open.outline;
  const from = Math.min(steps.t0(body.index), ...rows.slice(0, 2000).map((row) => row.t));
  const to = Math.max(steps.t1(body.index), from + 1, ...rows.slice(0, 2000).map((row) => row.t + row.ms * MS));
  const chosen = rows[at];
  const hidden = rows.length > 0 && masked("step", rows[0]?.seq ?? 0, body.index);
  return (
    <>
      <ListBar
        what={`${plural(rows.length, "exchange")}, ${bytes(rows.reduce((sum, row) => sum + Math.max(0, row.size), 0))}`}
        hidden={hidden}
        onReveal={() => askReveal("step", rows[0]?.seq ?? 0)}
        onCopy={() =>
          void copy(
            JSON.stringify(
              {
                log: {
                  version: "1.2",
                  creator: { name: "worldline", version: "1" },
                  entries: rows.map((row) => harEntry(row, body.index)),
                },
              },
              null,
              1,
            ),
            "copied as HAR",
          )
        }
      />
      <WindowList
        label="Network"
        length={rows.length}
        rowHeight={26}
        active={at}
        empty="Nothing went over the network in this step, as far as it was recorded."
        onPick={(place) => {
          setAt(place);
          const row = rows[place];
          if (row) seekRow(row.seq, row.t);
        }}
        row={(place) => (rows[place] ? <Row row={rows[place]} from={from} to={to} shownIn={body.index} /> : null)}
      />
      {chosen ? <Facts row={chosen} start={start} shownIn={body.index} /> : null}
    </>
  );
}

/** 2xx plain, 3xx an arrow, 4xx hatched, 5xx and none a cross: never by colour alone. */
export function gradeOf(row: Pick<Exchange, "status" | "error">): "plain" | "moved" | "refused" | "failed" {
  if (row.error !== null || row.status === 0 || row.status >= 500) return "failed";
  if (row.status >= 400) return "refused";
  return row.status >= 300 ? "moved" : "plain";
}

/** Host and path of an address; while masked only the host. */
export function placeOf(url: string, hidden: boolean): string {
  try {
    const parsed = new URL(url);
    return hidden ? `${parsed.host}/…` : `${parsed.host}${parsed.pathname}${parsed.search}`;
  } catch {
    return hidden ? MASKED : url;
  }
}

function Row({ row, from, to, shownIn }: { row: Exchange; from: number; to: number; shownIn: number }): JSX.Element {
  const grade = gradeOf(row);
  const left = (100 * (row.t - from)) / (to - from);
  const width = Math.max(1.5, (100 * row.ms * MS) / (to - from));
  return (
    <div class={`exchange ${grade}`}>
      <span class="mono method">{row.method}</span>
      <span class="mono status">
        {grade === "failed" ? <Icon name="cross" label="failed" /> : null}
        {row.status === 0 ? "—" : row.status}
      </span>
      <span class="clip place">{placeOf(row.url, masked("field", row.seq, shownIn))}</span>
      <span class="muted number">{row.size > 0 ? bytes(row.size) : ""}</span>
      <span class="fall" title={duration(row.ms * MS)}>
        <i style={{ left: `${Math.min(left, 98)}%`, width: `${Math.min(width, 100 - Math.min(left, 98))}%` }} />
      </span>
      <span class="muted number">{duration(row.ms * MS)}</span>
    </div>
  );
}

function Facts({ row, start, shownIn }: { row: Exchange; start: number; shownIn: number }): JSX.Element {
  return (
    <div class="below scroll" tabIndex={0} role="group" aria-label="The exchange in full">
      <div class="kv">
        <span>address</span>
        {masked("field", row.seq, shownIn) ? (
          <Hidden seq={row.seq} what="address" />
        ) : (
          <span class="mono wrap">{row.url}</span>
        )}
        <span>status</span>
        <span>
          {row.status === 0 ? "no answer" : row.status}
          {row.error === null ? "" : `, ${row.error}`}
        </span>
        <span>type</span>
        <span>{row.type || "not said"}</span>
        <span>size</span>
        <span>{row.size > 0 ? bytes(row.size) : "not said"}</span>
        <span>time</span>
        <span>
          {clock(row.t - start)}, took {duration(row.ms * MS)}
        </span>
        <span>row</span>
        <span>
          {row.seq}
          {row.call ? `, of tool call ${row.call}` : ""}
        </span>
      </div>
    </div>
  );
}

function harEntry(row: Exchange, shownIn: number): Record<string, unknown> {
  const url = masked("field", row.seq, shownIn) ? placeOf(row.url, true) : row.url;
  return {
    startedDateTime: wall(row.t),
    time: row.ms,
    request: {
      method: row.method,
      url,
      httpVersion: "",
      headers: [],
      queryString: [],
      cookies: [],
      headersSize: -1,
      bodySize: -1,
    },
    response: {
      status: row.status,
      statusText: row.error ?? "",
      httpVersion: "",
      headers: [],
      cookies: [],
      content: { size: row.size, mimeType: row.type },
      redirectURL: "",
      headersSize: -1,
      bodySize: row.size,
    },
    cache: {},
    timings: { send: 0, wait: row.ms, receive: 0 },
    _seq: row.seq,
  };
}

/** The wall clock at `t`, from the run's header. */
function wall(t: number): string {
  const t0 = run.value?.recording.header.data["t0_wall"];
  const ms = typeof t0 === "string" && /^\d+$/.test(t0) ? Number(BigInt(t0) / 1_000_000n) : 0;
  return new Date(ms + t / MS).toISOString();
}
