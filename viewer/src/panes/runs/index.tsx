/**
 * The runs page: every run of the store as one line, found by facets and words, opened where it went wrong, compared in
 * twos. It draws from the catalogue alone; no run is opened before it is chosen.
 */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import "../../style/runs.css";
import { run as openRunSignal, page } from "../../state/app";
import { openBeside, session } from "../../state/open";
import { grouped, plural } from "../../state/words";
import { Command } from "../command";
import { Icon } from "../icons";
import { lookOf } from "../forks/outcome";
import { WindowList } from "../steps/window-list";
import { shortName } from "./entries";
import { FACETS, type Facet } from "./facets";
import { Mosaic } from "./mosaic";
import { COLUMNS, ROW, RunRow } from "./row";
import {
  choose,
  chosen,
  clear,
  compareMarked,
  cursor,
  isFiltered,
  listed,
  load,
  loading,
  mark,
  marked,
  openAt,
  order,
  pending,
  place,
  runs,
  runsTrouble,
  selection,
  sortBy,
  total,
  watchRuns,
  words,
} from "./state";

/** Values that a facet shows before it is asked for all. */
const FEW = 7;
const NAMES: Record<Facet, string> = {
  outcome: "outcome",
  task: "task",
  model: "model",
  tools: "tools",
  permissions: "permissions",
  error: "error",
  duration: "duration",
  cost: "cost",
};

export function Runs(): JSX.Element {
  const search = useRef<HTMLInputElement>(null);
  useEffect(watchRuns, []);
  const onKeyDown = (event: KeyboardEvent): void => {
    const writes = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape" && writes) search.current?.blur();
    else if (writes) return;
    else if (event.key === "/") search.current?.focus();
    else if (
      event.key === " " &&
      cursor.value !== "" &&
      event.target instanceof HTMLElement &&
      event.target.getAttribute("role") === "listbox"
    )
      mark(cursor.value);
    else if (event.key === "b") compareMarked();
    else return;
    event.preventDefault();
  };
  const now = runs.value;
  return (
    <main class="runs" aria-label="Runs" id="main" onKeyDown={onKeyDown}>
      <div class="runs-bar bar">
        <h1>
          Runs
          {now === null ? null : (
            <span class="muted">
              {" "}
              {isFiltered.value ? `${grouped(listed.value.length)} of ${grouped(now.length)}` : grouped(now.length)}
            </span>
          )}
        </h1>
        {session.value?.store ? (
          <span class="muted clip mono" title="the store">
            {session.value.store}
          </span>
        ) : null}
        {pending.value > 0 ? (
          <span class="muted" role="status">
            {plural(pending.value, "run")} still being looked through
          </span>
        ) : null}
        <span class="spacer" />
        <label class="runs-search">
          <span class="unseen">Words in tasks, models, tools, errors</span>
          <Icon name="search" />
          <input
            ref={search}
            class="field"
            type="search"
            placeholder="task, model, tool, error …  ( / )"
            value={words.value}
            onInput={(event) => (words.value = event.currentTarget.value)}
          />
        </label>
        {isFiltered.value ? (
          <button type="button" class="button" onClick={clear}>
            show all
          </button>
        ) : null}
        <Chosen />
        <button type="button" class="button plain" onClick={() => void load()} disabled={loading.value}>
          {loading.value ? "reading …" : "read again"}
        </button>
        {openRunSignal.value !== null ? (
          <button type="button" class="button" onClick={() => (page.value = "run")}>
            back to the run
          </button>
        ) : null}
      </div>
      {runsTrouble.value !== "" ? <Trouble /> : null}
      {now !== null && now.length === 0 ? (
        <Nothing />
      ) : now === null ? (
        runsTrouble.value === "" ? (
          <p class="empty-line">reading the catalogue …</p>
        ) : null
      ) : (
        <div class="runs-body">
          <div class="runs-main">
            <Mosaic />
            <Table />
          </div>
          <Facets />
        </div>
      )}
    </main>
  );
}

/** What the marks are for: two runs side by side. */
function Chosen(): JSX.Element | null {
  const ids = marked.value;
  if (ids.length === 0) return null;
  const open = openRunSignal.value;
  return (
    <span class="runs-marked" role="status">
      {ids.map((id) => (
        <span key={id} class="pill">
          {shortName(id)}
        </span>
      ))}
      {ids.length === 2 ? (
        <button type="button" class="button main" title="Side by side ( B )" onClick={compareMarked}>
          <Icon name="compare" /> compare
        </button>
      ) : open !== null ? (
        <button type="button" class="button" onClick={() => void openBeside({ served: ids[0] ?? "" })}>
          <Icon name="compare" /> beside the open run
        </button>
      ) : (
        <span class="muted">mark one more to compare</span>
      )}
    </span>
  );
}

function Facets(): JSX.Element {
  return (
    <nav class="facets scroll" aria-label="Facets">
      {FACETS.map((facet) => (
        <FacetList key={facet} facet={facet} />
      ))}
    </nav>
  );
}

function FacetList({ facet }: { facet: Facet }): JSX.Element | null {
  const values = selection.value.counts[facet];
  const set = chosen.value[facet];
  // With one value alone there is nothing to choose.
  if (values.length < 2 && (set === undefined || set.size === 0)) return null;
  const item = ({ value, count }: { value: string; count: number }): JSX.Element => {
    const look = facet === "outcome" ? lookOf(value, false) : null;
    return (
      <label key={value} class={`facet-value${count === 0 ? " none" : ""}`}>
        <input type="checkbox" checked={set?.has(value) ?? false} onChange={() => choose(facet, value)} />
        {look ? (
          <Icon name={look.icon} class={look.class} />
        ) : facet === "permissions" && value === "denied" ? (
          <Icon name="noEntry" class="is-denied" />
        ) : null}
        <span class="clip" title={value}>
          {facet === "permissions" ? value.replace("_", "-") : value}
        </span>
        <span class="muted">{grouped(count)}</span>
      </label>
    );
  };
  return (
    <fieldset class="facet">
      <legend>{NAMES[facet]}</legend>
      {values.slice(0, FEW).map(item)}
      {values.length > FEW ? (
        <details>
          <summary>{values.length - FEW} more</summary>
          {values.slice(FEW, 200).map(item)}
        </details>
      ) : null}
    </fieldset>
  );
}

function Table(): JSX.Element {
  const list = listed.value;
  return (
    <div class="runs-table">
      <div class="run-row head" role="group" aria-label="Order">
        {COLUMNS.map(({ name, by, class: where }) => (
          <span key={where + name} class={where}>
            {by === null ? (
              name
            ) : (
              <button type="button" class="link" aria-pressed={order.value.by === by} onClick={() => sortBy(by)}>
                {name}
                {order.value.by === by ? (
                  <span aria-label={order.value.down ? "falling" : "rising"}>{order.value.down ? " ↓" : " ↑"}</span>
                ) : null}
              </button>
            )}
          </span>
        ))}
      </div>
      <WindowList
        label="Runs"
        length={list.length}
        rowHeight={ROW}
        active={place.value}
        rowKey={(at) => list[at]?.run ?? at}
        rowClass={(at) => (marked.value.includes(list[at]?.run ?? "") ? "marked" : "")}
        onPick={(at) => (cursor.value = list[at]?.run ?? "")}
        onOpen={(at) => {
          const run = list[at];
          if (run) openAt(run);
        }}
        row={(at) => {
          const run = list[at];
          return run ? (
            <RunRow run={run} isMarked={marked.value.includes(run.run)} onMark={() => mark(run.run)} />
          ) : null;
        }}
        empty={<NoHits />}
      />
      <p class="hint muted">
        Enter: open where it went wrong · Space: mark · B: compare the marked
        {total.value > (runs.value?.length ?? 0)
          ? ` · the newest ${grouped(runs.value?.length ?? 0)} of ${grouped(total.value)} runs`
          : ""}
      </p>
    </div>
  );
}

function NoHits(): JSX.Element {
  return (
    <div>
      <p>
        No run of {grouped(runs.value?.length ?? 0)} is like that. Ids, tasks, models, tools, permissions and errors
        were looked through, the contents of the runs were not.
      </p>
      <button type="button" class="button small" onClick={clear}>
        show all
      </button>
    </div>
  );
}

function Nothing(): JSX.Element {
  return (
    <div class="empty-line">
      <p>This store holds no run yet. Record one:</p>
      <Command>worldline record -- python agent.py</Command>
    </div>
  );
}

function Trouble(): JSX.Element {
  return (
    <div class="problem" role="alert">
      <b>The catalogue could not be read</b> <span class="wrap">{runsTrouble.value}</span>
      <button type="button" class="button small" onClick={() => void load()}>
        try again
      </button>
    </div>
  );
}
