/**
 * The forks drawer: the tree that this run stands in. A click switches to a run at the same step; with Shift it comes
 * beside this one. The same file mounts the "fork from here" dialog.
 */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import "../../style/forks.css";
import { lineage, type TreeRow } from "../../core/dag";
import { drawer, run, step } from "../../state/app";
import { runId } from "../../state/link";
import { openBeside, openServed } from "../../state/open";
import { plural } from "../../state/words";
import { Command } from "../command";
import { Icon } from "../icons";
import { ForkDialog } from "./dialog";
import { ROW, Rail } from "./graph";
import { lookOf } from "./outcome";
import { here, layout, load, tree, treeTrouble, watchTree } from "./tree";
import { stepNumber } from "../../state/numbers";

export function Forks(): JSX.Element | null {
  useEffect(watchTree, []);
  if (drawer.value === "fork") return <ForkDialog />;
  return drawer.value === "forks" ? <Drawer /> : null;
}

function Drawer(): JSX.Element {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const back = document.activeElement;
    box.current?.focus();
    return () => {
      if (back instanceof HTMLElement && back.isConnected) back.focus();
    };
  }, []);
  const open = run.value;
  const now = tree.value;
  const close = (): void => {
    drawer.value = "none";
  };
  return (
    <aside
      ref={box}
      tabIndex={-1}
      class="forks drawer"
      aria-label="Forks of this run"
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <header class="bar">
        <h2>
          <Icon name="fork" /> Forks
          {now && now.length > 1 ? <span class="count"> {now.length - 1}</span> : null}
        </h2>
        <span class="spacer" />
        <button type="button" class="button small" onClick={() => (drawer.value = "fork")}>
          fork from step {stepNumber(step.value)}
        </button>
        <button type="button" class="button plain square" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      {open?.server == null ? (
        <Alone id={open ? runId(open.recording.header.data) : ""} />
      ) : treeTrouble.value !== "" ? (
        <div class="empty-line" role="alert">
          <p>{treeTrouble.value}</p>
          <button type="button" class="button small" onClick={() => void load(open.server ?? "")}>
            ask again
          </button>
        </div>
      ) : now === null ? (
        <p class="empty-line">asking the server …</p>
      ) : (
        <Tree />
      )}
      {open?.server != null && now !== null && now.length <= 1 && treeTrouble.value === "" ? (
        <p class="empty-line">No fork of this run yet.</p>
      ) : null}
      <p class="hint muted">click: the same step there · Shift-click: side by side</p>
    </aside>
  );
}

/** A page without a server knows one file. */
function Alone({ id }: { id: string }): JSX.Element {
  return (
    <div class="empty-line">
      <p>This page holds one run. Which runs forked from it stands in the store where it was made:</p>
      <Command>{`worldline tree ${id || "RUN"}`}</Command>
    </div>
  );
}

function Tree(): JSX.Element {
  const at = layout.value;
  const way = new Set(lineage(at, here.value).map((row) => row.run.run));
  const move = (event: KeyboardEvent): void => {
    const to = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (to === undefined || !(event.currentTarget instanceof HTMLElement)) return;
    const rows = [...event.currentTarget.querySelectorAll<HTMLElement>("button.fork-row")];
    rows[rows.indexOf(document.activeElement as HTMLElement) + to]?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="scroll fork-tree" onKeyDown={move}>
      <Rail layout={at} way={way} />
      <ol>
        {at.rows.map((row) => (
          <li key={row.run.run} style={{ height: `${ROW}px` }}>
            <Row row={row} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function Row({ row }: { row: TreeRow }): JSX.Element {
  const { run: one } = row;
  const look = lookOf(one.outcome, one.live);
  const current = one.run === here.value;
  const go = (event: MouseEvent): void => {
    if (current) return;
    if (event.shiftKey) void openBeside({ served: one.run });
    else void openServed(one.run, { step: stepNumber(step.peek()) }).then(() => (drawer.value = "forks"));
  };
  return (
    <button
      type="button"
      class={`fork-row${current ? " here" : ""}`}
      aria-current={current ? "true" : undefined}
      onClick={go}
      title={one.run}
    >
      <span class="first">
        <b>{one.run.slice(-4)}</b>
        <span class={look.class}>{look.word}</span>
        {one.steps === null ? null : <span class="muted">{plural(one.steps, "step")}</span>}
        {current ? <span class="pill">open</span> : null}
      </span>
      <span class="second muted clip">
        {one.at === null ? (row.parentRow < 0 ? "the first run" : "") : `left at step ${one.at}`}
        {one.change === "" ? "" : ` · ${one.change}`}
      </span>
    </button>
  );
}
