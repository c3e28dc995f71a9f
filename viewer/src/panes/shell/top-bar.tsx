/** The top bar: which run, how it ended, how much it was, whether it can be trusted, and the page's own buttons. */
import type { JSX } from "preact";
import { tree } from "../forks/tree";
import { gaps } from "../timeline/camera";
import { drawer, filter, page, run, tab, theme, version, type Open } from "../../state/app";
import { runId } from "../../state/link";
import { session } from "../../state/open";
import { checkAll } from "../../state/reading";
import { nextTheme, scheme } from "../../state/theme";
import { tokens } from "../../state/totals";
import { count, duration, grouped, money } from "../../state/words";
import { Icon, Logo } from "../icons";
import { SEALS } from "../seals";
import { Verdict } from "../verdict";
import { CompareMenu } from "./compare-menu";
import { MaskMenu } from "./mask-menu";

export function TopBar(): JSX.Element {
  void version.value;
  const open = run.value;
  const running = page.value === "run" || page.value === "compare";
  return (
    <header class="top">
      <Crumbs open={running ? open : null} />
      {running ? <Verdict /> : null}
      <span class="spacer" />
      {running && open ? <Facts open={open} /> : null}
      {running ? (
        <div class="tools" role="toolbar" aria-label="Page">
          <button
            type="button"
            class="button"
            title="Search ( / )"
            aria-label="Search"
            onClick={() => (drawer.value = "search")}
          >
            <Icon name="search" />
            <kbd aria-hidden="true">/</kbd>
          </button>
          <MaskMenu />
          <CompareMenu />
          <button
            type="button"
            class="button"
            title="Forks of this run"
            aria-pressed={drawer.value === "forks"}
            onClick={() => (drawer.value = drawer.value === "forks" ? "none" : "forks")}
          >
            <Icon name="fork" label="Forks" />
            <span class="word" aria-hidden="true">
              forks
            </span>
            {(tree.value?.length ?? 0) > 1 ? <span>{(tree.value?.length ?? 1) - 1}</span> : null}
          </button>
          <ThemeButton />
          <button
            type="button"
            class="button square"
            title="Help ( ? )"
            aria-label="Help"
            onClick={() => (drawer.value = "help")}
          >
            <Icon name="help" />
          </button>
        </div>
      ) : (
        <ThemeButton />
      )}
    </header>
  );
}

function Crumbs({ open }: { open: Open | null }): JSX.Element {
  const header = open?.recording.header.data;
  const task = nameOf(header?.["agent"]) || nameOf(header?.["task"]);
  const id = header ? runId(header) : "";
  const many = session.value?.mode === "runs" || (session.value?.runs.length ?? 0) > 1;
  return (
    <nav class="crumbs" aria-label="Where you are">
      {many && page.value !== "runs" ? (
        <button type="button" class="brand link" title="All runs of this store" onClick={() => (page.value = "runs")}>
          <Logo />
          worldline
        </button>
      ) : (
        <span class="brand">
          <Logo />
          worldline
        </span>
      )}
      {open ? (
        <span class="where clip" title={`${open.recording.label} ${id}`}>
          {task === "" ? null : (
            <>
              {task}
              <Icon name="chevron" />
            </>
          )}
          <h1>{id === "" ? open.recording.label : `run ${id.slice(-4)}`}</h1>
        </span>
      ) : null}
    </nav>
  );
}

function nameOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  const { name, id, text } = value as { name?: unknown; id?: unknown; text?: unknown };
  for (const word of [name, id, text])
    if (typeof word === "string" && word !== "") return word.length > 40 ? `${word.slice(0, 39)}…` : word;
  return "";
}

function Facts({ open }: { open: Open }): JSX.Element {
  void version.value;
  const { outline } = open;
  const total = Math.max(0, outline.span[1] - outline.span[0]);
  let idle = 0;
  const pauses = gaps.value;
  for (let i = 0; i + 1 < pauses.length; i += 2) idle += (pauses[i + 1] ?? 0) - (pauses[i] ?? 0);
  const { tokensIn, tokensOut } = tokens(outline);
  const active = total - idle;
  return (
    <div class="facts" role="group" aria-label="Figures">
      <button type="button" class="link" onClick={() => (filter.value = "all")} title="Show all steps">
        <b>{grouped(outline.steps.length)}</b> {outline.steps.length === 1 ? "step" : "steps"}
      </button>
      <span title={idle > 0 ? "active time, of all time; pauses over 5 s are not counted" : "from first to last row"}>
        <b>{duration(active)}</b>
        {idle > 0 ? ` of ${duration(total)}` : ""}
      </span>
      {tokensIn + tokensOut > 0 ? (
        <span
          class="tokens"
          title={`${grouped(tokensIn)} tokens in, ${grouped(tokensOut)} out, as the provider counted them`}
        >
          <b>{count(tokensIn + tokensOut)}</b> tok
        </span>
      ) : null}
      {open.verdict.cost === undefined ? null : (
        <span class="cost" title="what the agent said that this run cost; nothing here knows prices">
          <b>{money(open.verdict.cost)}</b>
        </span>
      )}
      {outline.done ? null : (
        <span class="scanning" title="rows read so far">
          {percent(outline.scanned, outline.total)}
        </span>
      )}
      <Seal open={open} />
    </div>
  );
}

function percent(done: number, all: number): string {
  return all > 0 ? `reading ${Math.floor((100 * done) / all)} %` : "reading";
}

export function Seal({ open }: { open: Open }): JSX.Element {
  void version.value;
  const { integrity } = open;
  const look = SEALS[integrity.verdict];
  const signed = integrity.verdict !== "sealed" ? "" : integrity.signed ? ", signed" : ", unsigned";
  return (
    <span class="sealed">
      <button
        type="button"
        class={`link seal ${look.class}`}
        title="What was checked, and what was not"
        onClick={() => (tab.value = "integrity")}
      >
        <Icon name={look.icon} /> {look.text}
        {signed}
      </button>
      {integrity.verdict === "unread" ? (
        <button
          type="button"
          class="button small"
          title="Fetch all rows, and check them against the seal"
          aria-label="Check everything"
          onClick={() => checkAll(open)}
        >
          check
        </button>
      ) : null}
    </span>
  );
}

function ThemeButton(): JSX.Element {
  const word = theme.value === "system" ? `as the system: ${scheme.value}` : theme.value;
  return (
    <button
      type="button"
      class="button square"
      title={`Theme: ${word} ( T )`}
      aria-label={`Theme: ${word}`}
      onClick={nextTheme}
    >
      <Icon name={theme.value === "system" ? "halfMoon" : theme.value === "dark" ? "moon" : "sun"} />
    </button>
  );
}

/** The pages' title follows what is open, so that tabs of the browser can be told apart. */
export function titleOf(open: Open | null, sentence: string): string {
  if (open === null) return "Worldline";
  return `${sentence} · ${open.recording.label} · Worldline`;
}
