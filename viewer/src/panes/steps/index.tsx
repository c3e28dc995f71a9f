/** The list of steps: thought, action, observation, how each ended, and where its time went. */
import type { JSX } from "preact";
import "../../style/steps.css";
import { filter, following, playing, run, step, tab, version } from "../../state/app";
import { counts, listed, placeOf } from "../../state/filter";
import { goTo, unpin } from "../../state/moves";
import { grouped } from "../../state/words";
import { Icon, type IconName } from "../icons";
import { StepRow, rowClass } from "./row";
import { WindowList } from "./window-list";

/** Three lines a row: what it did, what was thought, what came back. */
export const ROW_HEIGHT = 55;

const FILTERS: { key: "all" | "failed" | "denied" | "notes"; word: string; icon: IconName | null; none: string }[] = [
  { key: "all", word: "Steps", icon: null, none: "No step yet." },
  { key: "failed", word: "Failed", icon: "cross", none: "No step failed." },
  { key: "denied", word: "Denied", icon: "noEntry", none: "Nothing was denied." },
  { key: "notes", word: "Notes", icon: "note", none: "No notes. M writes one at the playhead." },
];

export function Steps(): JSX.Element | null {
  const open = run.value;
  void version.value;
  if (open === null) return null;
  const { steps } = open.outline;
  const list = listed.value;
  const at = (place: number): number => (list === null ? place : (list[place] ?? 0));
  const length = list === null ? steps.length : list.length;
  let active = step.value;
  if (list !== null) {
    const place = placeOf(list, step.value);
    active = list[place] === step.value ? place : -1;
  }
  const chosen = FILTERS.find((entry) => entry.key === filter.value);
  return (
    <section class="pane steps" aria-label="Steps" data-testid="steps">
      <div class="bar">
        <div class="tabs" role="radiogroup" aria-label="Which steps are listed" onKeyDown={onFilterKey}>
          {FILTERS.map(({ key, word, icon }) => (
            <button
              key={key}
              type="button"
              class={`tab ${counts.value[key] > 0 ? key : ""}`}
              role="radio"
              aria-checked={filter.value === key}
              tabIndex={filter.value === key ? 0 : -1}
              onClick={() => (filter.value = key)}
            >
              {icon ? <Icon name={icon} /> : null}
              <span class="bold" data-text={word}>
                {word}
              </span>
              <span class="count">{grouped(counts.value[key])}</span>
            </button>
          ))}
        </div>
      </div>
      <WindowList
        key={filter.value}
        label="Steps"
        length={length}
        rowHeight={ROW_HEIGHT}
        active={active}
        auto={playing.value || following.value}
        onPick={(place) => goTo(at(place))}
        onOpen={(place) => {
          goTo(at(place));
          tab.value = "decision";
        }}
        onScrolled={unpin}
        rowClass={(place) => rowClass(steps, at(place))}
        row={(place) => <StepRow i={at(place)} />}
        empty={open.outline.done || length > 0 ? chosen?.none : "Reading the recording..."}
      />
    </section>
  );
}

/** Arrows move between the filters, as between the buttons of one radio group. */
function onFilterKey(event: KeyboardEvent): void {
  const by =
    event.key === "ArrowRight" || event.key === "ArrowDown"
      ? 1
      : event.key === "ArrowLeft" || event.key === "ArrowUp"
        ? -1
        : 0;
  if (by === 0) return;
  const keys = FILTERS.map((entry) => entry.key);
  filter.value = keys[(keys.indexOf(filter.value) + by + keys.length) % keys.length] ?? "all";
  event.preventDefault();
  event.stopPropagation();
  const group = event.currentTarget;
  if (group instanceof HTMLElement)
    queueMicrotask(() => group.querySelector<HTMLElement>("[aria-checked=true]")?.focus());
}
