/** What was there at the step: the window, what was seen before and after, what the agent acted on, what the machine was. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Mark, type Observation, type Outline, type Recording, type Row, type StepBody } from "../../core/types";
import { plain } from "../../core/values";
import { moment, type Open } from "../../state/app";
import { masked } from "../../state/mask";
import { bytes, clock } from "../../state/words";
import { Icon } from "../icons";
import { JsonView } from "./json-view";
import { Heading, Masked, SeekTo } from "./masked";
import { stepNumber } from "../../state/numbers";

export function SnapshotTab({ body, open }: { body: StepBody; open: Open }): JSX.Element {
  const screen = useWindow(open, body);
  const observed = body.rows.filter(
    (row) => row.kind === "observation" && row.src !== "tool_result" && row.src !== "sample",
  );
  const checkpoints = body.rows.filter((row) => row.kind === "snapshot_ref");
  const { acted } = body;
  return (
    <div class="scroll cards" tabIndex={0} role="group" aria-label="Snapshot">
      <article class="card">
        <Heading aside={screen ? <SeekTo seq={screen.seq} /> : null}>Window</Heading>
        {screen === null ? (
          <p class="muted">No window was recorded at or before this step.</p>
        ) : (
          <WindowFacts row={screen} step={body.index} />
        )}
      </article>
      {acted === null ? null : (
        <article class="card acted">
          <Heading aside={acted.verb}>Acted on</Heading>
          <div class="kv">
            {acted.role === null && acted.name === null ? null : (
              <>
                <span>element</span>
                <span class="wrap">
                  <b>{acted.role}</b> {acted.name === null ? "" : `“${acted.name}”`}
                </span>
              </>
            )}
            {acted.ref === null ? null : (
              <>
                <span>reference</span>
                <span class="mono">{acted.ref}</span>
              </>
            )}
            {acted.selector === null ? null : (
              <>
                <span>selector</span>
                <span class="mono wrap">{acted.selector}</span>
              </>
            )}
            {acted.point === null ? null : (
              <>
                <span>point</span>
                <span class="mono">{acted.point.join(", ")}</span>
              </>
            )}
            {acted.box === null ? null : (
              <>
                <span>box</span>
                <span class="mono">{acted.box.map((n) => Math.round(n)).join(", ")}</span>
              </>
            )}
          </div>
        </article>
      )}
      <article class="card">
        <Heading>Before and after</Heading>
        <table class="facts-table">
          <thead>
            <tr>
              <th scope="col">layer</th>
              <th scope="col">before</th>
              <th scope="col">after</th>
            </tr>
          </thead>
          <tbody>
            <Layer word="what it saw" pair={body.seen} />
            <Layer word="screen" pair={body.screens} />
            <Layer word="DOM" pair={body.dom} />
          </tbody>
        </table>
      </article>
      {observed.length === 0 ? null : (
        <article class="card">
          <Heading>Observed in this step</Heading>
          <ul class="lines">
            {observed.slice(0, 60).map((row) => (
              <li key={row.seq}>
                <SeekTo seq={row.seq} t={row.t}>
                  {row.seq}
                </SeekTo>{" "}
                <b>{row.src}</b> <span class="muted">{clock(row.t - open.outline.span[0])}</span>
              </li>
            ))}
          </ul>
        </article>
      )}
      {checkpoints.map((row) => (
        <article class="card" key={row.seq}>
          <Heading aside={<SeekTo seq={row.seq} />}>Checkpoint</Heading>
          <JsonView value={plain(row.data)} />
        </article>
      ))}
      <Machine open={open} />
    </div>
  );
}

function Layer({
  word,
  pair,
}: {
  word: string;
  pair: { before: Observation | null; after: Observation | null };
}): JSX.Element {
  const cell = (found: Observation | null, when: "before" | "after"): JSX.Element => (
    <td>
      {found === null ? (
        <span class="muted">none</span>
      ) : (
        <>
          <button type="button" class="link" onClick={() => (moment.value = when)} title="Show it on the stage">
            {found.src}
          </button>{" "}
          <span class="muted">
            step {stepNumber(Math.max(0, found.step))}
            {found.ref ? `, ${bytes(found.ref.size)}` : ""}
          </span>
        </>
      )}
    </td>
  );
  return (
    <tr>
      <th scope="row">{word}</th>
      {cell(pair.before, "before")}
      {cell(pair.after, "after")}
    </tr>
  );
}

function WindowFacts({ row, step }: { row: Row; step: number }): JSX.Element {
  const said = plain(row.data["value"]);
  const value = typeof said === "object" && said !== null ? (said as Record<string, unknown>) : {};
  const text = (key: string): string =>
    typeof value[key] === "string" || typeof value[key] === "number" ? String(value[key]) : "";
  const size =
    text("width") === ""
      ? ""
      : `${text("width")} × ${text("height")}${text("scale") === "" ? "" : `, scale ${text("scale")}`}`;
  return (
    <div class="kv">
      <span>address</span>
      <Masked seq={row.seq} what="address" shownIn={step}>
        {() => <span class="mono wrap">{text("url") || "none"}</span>}
      </Masked>
      <span>title</span>
      <Masked seq={row.seq} what="title" shownIn={step}>
        {() => <span class="wrap">{text("title") || "none"}</span>}
      </Masked>
      {size === "" ? null : (
        <>
          <span>size</span>
          <span>{size}</span>
        </>
      )}
    </div>
  );
}

function Machine({ open }: { open: Open }): JSX.Element {
  const { data } = open.recording.header;
  return (
    <article class="card">
      <Heading>Where it ran</Heading>
      <div class="kv">
        {["platform", "environment", "agent", "writer", "capture"].map((key) =>
          data[key] === undefined || data[key] === null ? null : (
            <Pair
              key={key}
              name={key}
              value={data[key]}
              seq={open.recording.header.seq}
              hide={key === "environment" && masked("session", 0)}
            />
          ),
        )}
      </div>
    </article>
  );
}

function Pair({ name, value, hide }: { name: string; value: unknown; seq: number; hide: boolean }): JSX.Element {
  return (
    <>
      <span>{name}</span>
      {hide ? (
        <span class="hatched">
          <Icon name="masked" /> masked with the run
        </span>
      ) : (
        <JsonView value={value} lines={8} />
      )}
    </>
  );
}

/** The newest window row at or before the step's end: among its own rows, else by the marks, which need one read. */
function useWindow(open: Open, body: StepBody): Row | null {
  const own = body.rows.findLast((row) => row.kind === "observation" && row.src === "window") ?? null;
  const [before, setBefore] = useState<Row | null>(null);
  useEffect(() => {
    if (own !== null) return;
    let wanted = true;
    void windowBefore(open.recording, open.outline, body.index).then((row) => {
      if (wanted) setBefore(row);
    });
    return () => {
      wanted = false;
    };
  }, [open, body, own]);
  return own ?? before;
}

export async function windowBefore(recording: Recording, outline: Outline, step: number): Promise<Row | null> {
  const { marks, steps } = outline;
  const end = steps.end(step);
  for (let i = marks.length - 1; i >= 0; i--) {
    if (marks.seq(i) > end || marks.mark(i) !== Mark.observation || marks.name(i) !== "window") continue;
    return recording.row(marks.seq(i));
  }
  return null;
}
