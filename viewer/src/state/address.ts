/**
 * The page's address and what is seen go along: the address follows once the playhead rests, and who goes back in the
 * browser's history, or types another place behind the `#`, is taken there.
 */
import { effect } from "@preact/signals";
import { page, playhead, run, stage, step, tab } from "./app";
import { follow, here, parse, runId, write } from "./link";
import { openRun, openServed, session } from "./open";

/** Browsers count how often an address changes, and some refuse after a hundred in half a minute. */
const REST_MS = 400;

export function startAddress(): () => void {
  let rest: ReturnType<typeof setTimeout> | undefined;
  let shown = run.value;
  const stop = effect(() => {
    void [step.value, playhead.value, tab.value, stage.value, page.value];
    clearTimeout(rest);
    rest = setTimeout(remember, REST_MS);
    // Who opens another run can go back from it, however soon that is.
    if (run.value !== shown) queueMicrotask(remember);
    shown = run.value;
  });
  addEventListener("popstate", arrive);
  return () => {
    clearTimeout(rest);
    stop();
    removeEventListener("popstate", arrive);
  };
}

/** Another run, or the list of runs, is a step in the browser's history; another place in the same run is none. */
export function remember(): void {
  const now = parse(location.hash);
  let next: string;
  if (page.value === "run" || page.value === "compare") next = write(here());
  else if (page.value === "runs" && now.run !== undefined) next = location.href.replace(/#.*$/, "");
  else return;
  const elsewhere = now.run !== parse(next.replace(/^[^#]*/, "")).run && now.run !== undefined;
  const first = session.value?.mode === "runs" && now.run === undefined;
  try {
    if (elsewhere || first) history.pushState(null, "", next);
    else history.replaceState(history.state, "", next);
  } catch (reason) {
    // A page from a file may not change its address in some browsers. The link can be copied all the same.
    if (!(reason instanceof DOMException)) throw reason;
  }
}

function arrive(): void {
  const place = parse(location.hash);
  const open = run.value;
  const shown = open === null ? undefined : runId(open.recording.header.data);
  if (place.run === undefined && session.value?.mode === "runs") page.value = "runs";
  else if (place.run !== undefined && place.run !== shown && session.value !== null) void openServed(place.run, place);
  else if (place.url !== undefined && place.run === undefined && open === null)
    void openRun([{ url: place.url }], place);
  else if (open !== null) {
    if (page.value === "runs") page.value = "run";
    follow(place);
  }
}
