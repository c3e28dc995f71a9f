/** The frame of the panel: what stands where, and the life of the page as a whole. */
import { effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import "../../style/index.css";
import "../../style/shell.css";
import { drawer, liveState, page, run, trouble, version } from "../../state/app";
import { startAddress } from "../../state/address";
import { startAncestry } from "../../state/ancestry";
import { startBodies } from "../../state/bodies";
import { listen } from "../../state/keys";
import { said } from "../../state/link";
import { dragging, listenForDrops, start } from "../../state/open";
import { startTheme } from "../../state/theme";
import { Filmstrip } from "../filmstrip";
import { watchTree } from "../forks/tree";
import { Inspector } from "../inspector";
import { part } from "../part";
import { Stage } from "../stage";
import { Steps } from "../steps";
import { Timeline } from "../timeline";
import { Transport } from "../transport";
import { verdictSentence } from "../verdict/words";
import { Banners } from "./banners";
import { Columns, Divider } from "./columns";
import { Sheet } from "./sheet";
import { TopBar, titleOf } from "./top-bar";

const Asked = part(async () => (await import("../asked")).Asked);
const Compare = part(async () => (await import("../compare")).Compare);
/** A page has its main part from the beginning. */
const COMING = <main id="main" aria-busy="true" />;
const Empty = part(async () => (await import("../empty")).Empty, COMING);
const Forks = part(async () => (await import("../forks")).Forks);
const Help = part(async () => (await import("../help")).Help);
const Notes = part(async () => (await import("../notes")).Notes);
const RevealDialog = part(async () => (await import("./reveal")).RevealDialog);
const Search = part(async () => (await import("../search")).Search);
const Runs = part(async () => (await import("../runs")).Runs);

/** An opening that is done sooner shows no page of its own: it would only flash by. */
const LATE_MS = 300;
const late = signal(false);

export function Shell(): JSX.Element {
  useEffect(live, []);
  useEffect(() => {
    const timer = setTimeout(() => (late.value = true), LATE_MS);
    return () => clearTimeout(timer);
  }, []);
  const now = page.value;
  return (
    <div class={`shell page-${now}`}>
      <a class="skip unseen" href="#main" onClick={toMain}>
        to the content
      </a>
      <TopBar />
      <Banners />
      {now === "runs" ? <Runs /> : null}
      {now === "opening" && !late.value ? COMING : null}
      {now === "empty" || now === "error" || (now === "opening" && late.value) ? <Empty /> : null}
      {now === "run" || now === "compare" ? <RunPage compare={now === "compare"} /> : null}
      <Overlays />
      {dragging.value && now !== "empty" ? (
        <div class="dropping">Drop to open{run.value ? ", with Shift to compare" : ""}</div>
      ) : null}
      <p class="said" role="status" aria-live="polite">
        {said.value}
      </p>
    </div>
  );
}

function RunPage({ compare }: { compare: boolean }): JSX.Element {
  return (
    <>
      <section class="film" aria-label="Pictures of the steps">
        <Filmstrip />
      </section>
      <Columns>
        {compare ? (
          <Compare />
        ) : (
          <>
            <Steps />
            <Divider side="left" label="Width of the steps" />
            <Stage />
          </>
        )}
        <Divider side="right" label="Width of the inspector" />
        <Sheet>
          <Inspector />
        </Sheet>
      </Columns>
      <footer class="clock">
        <Transport />
        <Timeline />
      </footer>
    </>
  );
}

/** What stands above the page, one at a time. */
function Overlays(): JSX.Element {
  const now = drawer.value;
  return (
    <>
      {liveState.value !== "off" ? <Asked /> : null}
      {now === "reveal" ? <RevealDialog /> : null}
      {now === "search" && run.value !== null ? <Search /> : null}
      {now === "note" ? <Notes /> : null}
      {now === "help" ? <Help /> : null}
      {now === "forks" || now === "fork" ? <Forks /> : null}
      {trouble.value !== null && page.value !== "error" ? <Problem /> : null}
    </>
  );
}

/** An opening that failed while a run is open: the run stays, the reason is said above it. */
function Problem(): JSX.Element | null {
  const wrong = trouble.value;
  if (wrong === null) return null;
  return (
    <div class="problem" role="alert">
      <b>{wrong.title}</b> <span class="wrap">{wrong.what}</span> <span class="wrap">{wrong.todo}</span>
      <button type="button" class="button small" onClick={() => (trouble.value = null)}>
        close
      </button>
    </div>
  );
}

function toMain(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main [role=listbox], #main button, #main input")?.focus();
}

/** Everything that lives as long as the page does. */
function live(): () => void {
  const ends = [
    startTheme(),
    listen(),
    listenForDrops(),
    startBodies(),
    startAddress(),
    startTitle(),
    watchTree(),
    startAncestry(),
  ];
  void start();
  return () => {
    for (const end of ends) end();
  };
}

function startTitle(): () => void {
  return effect(() => {
    void version.value;
    const open = run.value;
    document.title = titleOf(open, open === null ? "" : verdictSentence(open.verdict, open.outline.steps));
  });
}
