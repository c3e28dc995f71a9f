/** Search over the whole run: hits as they come, with their surroundings; Enter goes to them; what was left out is said. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import "../../style/search.css";
import type { Hit } from "../../core/search";
import { drawer, query, run } from "../../state/app";
import { askReveal } from "../../state/mask";
import {
  asRegex,
  goToHit,
  hitAt,
  hits,
  matchCase,
  progress,
  queryTrouble,
  startSearch,
  stepOfHit,
  toHit,
} from "../../state/search";
import { grouped, plural } from "../../state/words";
import { Icon } from "../icons";
import { WindowList } from "../steps/window-list";
import { stepNumber } from "../../state/numbers";

export function Search(): JSX.Element | null {
  return drawer.value === "search" && run.value !== null ? <Panel /> : null;
}

/** No dialog: the run stays in sight and in reach, since a hit moves it. */
function Panel(): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useEffect(startSearch, []);
  useEffect(() => {
    const back = document.activeElement;
    field.current?.focus();
    field.current?.select();
    return () => {
      if (back instanceof HTMLElement && back.isConnected) back.focus();
    };
  }, []);
  const found = hits.value;
  return (
    <section
      class="search-panel"
      role="dialog"
      aria-modal="false"
      aria-label="Search this run"
      data-testid="search"
      onKeyDown={onKey}
    >
      <div class="ask" role="search">
        <Icon name="search" />
        <input
          ref={field}
          class="field"
          value={query.value}
          aria-label="What to seek"
          placeholder={asRegex.value ? "regular expression" : "text"}
          spellcheck={false}
          autocomplete="off"
          aria-invalid={queryTrouble.value !== ""}
          aria-describedby="search-said"
          onInput={(event) => (query.value = event.currentTarget.value)}
        />
        <button
          type="button"
          class="button small"
          aria-pressed={asRegex.value}
          title="Regular expression"
          onClick={() => (asRegex.value = !asRegex.value)}
        >
          .*
        </button>
        <button
          type="button"
          class="button small"
          aria-pressed={matchCase.value}
          title="Upper and lower case differ"
          onClick={() => (matchCase.value = !matchCase.value)}
        >
          Aa
        </button>
        <button
          type="button"
          class="button plain square small"
          title="Previous hit"
          aria-label="Previous hit"
          disabled={found.length === 0}
          onClick={() => toHit(-1)}
        >
          <Icon name="previous" />
        </button>
        <button
          type="button"
          class="button plain square small"
          title="Next hit"
          aria-label="Next hit"
          disabled={found.length === 0}
          onClick={() => toHit(1)}
        >
          <Icon name="next" />
        </button>
        <button type="button" class="button plain square" aria-label="Close the search" onClick={close}>
          <Icon name="close" />
        </button>
      </div>
      <p class="search-said" id="search-said" role="status">
        {said(found.length)}
      </p>
      {found.length > 0 ? (
        <div class="hits" style={{ "--rows": Math.min(found.length, 10) }}>
          <WindowList
            label="Hits"
            length={found.length}
            rowHeight={40}
            active={hitAt.value}
            onPick={goToHit}
            onOpen={close}
            row={(place) => (found[place] ? <Row hit={found[place]} /> : null)}
          />
        </div>
      ) : null}
      <Left />
    </section>
  );
}

function onKey(event: KeyboardEvent): void {
  if (event.key === "Escape") close();
  else if (event.key === "Enter" && event.target instanceof HTMLInputElement) toHit(event.shiftKey ? -1 : 1);
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target instanceof HTMLInputElement)
    toHit(event.key === "ArrowDown" ? 1 : -1);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function close(): void {
  drawer.value = "none";
}

function said(shown: number): string {
  const now = progress.value;
  if (queryTrouble.value !== "") return queryTrouble.value;
  if (now === null)
    return query.value === ""
      ? "Every text of the run that is not masked: thoughts, answers, arguments, permissions, notes of the agent."
      : "";
  if (now.failed !== null) return `The search failed: ${now.failed}`;
  const place = hitAt.value >= 0 ? `${grouped(hitAt.value + 1)} of ` : "";
  const many = now.full ? `the first ${plural(shown, "hit")}` : plural(shown, "hit");
  return `${place}${many}${now.done ? "" : ", still looking"} · ${plural(now.rows, "row")} read`;
}

/** A search without hits is no proof of absence: what was not looked into is said with it. */
function Left(): JSX.Element | null {
  const now = progress.value;
  if (now === null || now.failed !== null) return null;
  const { masked, contents } = now.left;
  if (masked + contents === 0) return null;
  return (
    <footer class="search-left">
      <b>Not searched:</b>
      {masked > 0 ? (
        <span>
          <Icon name="masked" /> {plural(masked, "masked row")} (observations, console, network, requests)
        </span>
      ) : null}
      {contents > 0 ? (
        <span>
          <Icon name="loss" /> {plural(contents, "content")} that {contents === 1 ? "is" : "are"} no text, too large, or
          not there
        </span>
      ) : null}
      {masked > 0 ? (
        <button type="button" class="link" onClick={() => askReveal("session")}>
          reveal all…
        </button>
      ) : null}
    </footer>
  );
}

function Row({ hit }: { hit: Hit }): JSX.Element {
  const open = run.value;
  return (
    <div class="hit">
      <span class="where">
        <b>step {open ? stepNumber(Math.max(0, stepOfHit(open, hit))) : 0}</b>{" "}
        <span class="muted mono">
          {hit.kind}
          {hit.where === "" ? "" : ` ${hit.where}`}
        </span>
      </span>
      <span class="mono clip context">
        {oneLine(hit.before).slice(-28)}
        <mark>{oneLine(hit.match)}</mark>
        {oneLine(hit.after)}
      </span>
    </div>
  );
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ");
}
