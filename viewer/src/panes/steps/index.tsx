/** The list of steps: thought, action, observation, how each ended, and where its time went. */
import type { JSX } from "preact";
import "../../style/steps.css";
import { filter, following, playing, run, tab, version } from "../../state/app";
import { counts, listed, placeOf } from "../../state/filter";
import { goTo, unpin } from "../../state/moves";
import { trailing } from "../../state/trailing";
import { grouped } from "../../state/words";
import { Icon, type IconName } from "../icons";
import { before, leftOf, toParent } from "../../state/ancestry";
import { part } from "../part";
import { StepRow, rowClass } from "./row";
import { WindowList } from "./window-list";

const Began = part(async () => (await import("./began")).Began, <div class="began" />);
const OlderRow = part(async () => (await import("./began")).OlderRow);

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
  // Steps of the runs that this one left stand before its own, where all are listed.
  const first = list === null ? before(open) : 0;
  const at = (place: number): number => (list === null ? place - first : (list[place] ?? 0));
  const length = list === null ? first + steps.length : list.length;
  const here = trailing.value;
  let active = first + here;
  if (list !== null) {
    const place = placeOf(list, here);
    active = list[place] === here ? place : -1;
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
      {leftOf(open) === null ? null : <Began open={open} />}
      <WindowList
        key={filter.value}
        label="Steps"
        length={length}
        first={first}
        rowHeight={ROW_HEIGHT}
        active={active}
        auto={playing.value || following.value}
        onPick={(place) => (place < first ? toParent(place) : goTo(at(place)))}
        onOpen={(place) => {
          if (place < first) return;
          goTo(at(place));
          tab.value = "decision";
        }}
        onScrolled={unpin}
        rowClass={(place) => (place < first ? "" : rowClass(steps, at(place)))}
        row={(place) => (place < first ? <OlderRow number={place} /> : <StepRow i={at(place)} />)}
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
