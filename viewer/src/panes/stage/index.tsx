/**
 * The stage: what the agent saw at the playhead, in the layer that the user chose, before, at or after its action.
 *
 * It shows the newest body that was read until the next one is there, so it never blanks while the playhead moves.
 */
import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { StepBody } from "../../core/types";
import { body, drawer, moment, run, stage, step, version, type Moment, type Open } from "../../state/app";
import { copyLink } from "../../state/link";
import "../../style/stage.css";
import { Icon } from "../icons";
import { part } from "../part";
import { available, LAYERS, type RendererProps } from "./layers";
import { MissingBox } from "./missing";
import { sourcesOf } from "./sources";
import { useLatest } from "./use-latest";

// Each layer is a part of the page of its own: a run is looked at in one or two of them.
const Seen = part(async () => (await import("./seen")).Seen);
const Screen = part(async () => (await import("./screen/screen")).Screen);
const Dom = part(async () => (await import("./dom/dom")).Dom);
const Rrweb = part(async () => (await import("./rrweb/rrweb")).Rrweb);
const Terminal = part(async () => (await import("./terminal/terminal")).Terminal);
const Video = part(async () => (await import("./video")).Video);

const RENDERERS: Record<(typeof LAYERS)[number]["id"], (props: RendererProps) => JSX.Element | null> = {
  seen: Seen,
  screen: Screen,
  dom: Dom,
  terminal: Terminal,
  video: Video,
  rrweb: Rrweb,
};

const MOMENTS: readonly { id: Moment; label: string; mark: string }[] = [
  { id: "before", label: "before", mark: "◂" },
  { id: "action", label: "action", mark: "●" },
  { id: "after", label: "after", mark: "▸" },
];

export function Stage(): JSX.Element {
  const open = run.value;
  return (
    <section class="pane stage" aria-label="Stage">
      {open === null ? null : <Playing open={open} />}
    </section>
  );
}

function Playing({ open }: { open: Open }): JSX.Element {
  // The outline grows in place; its version says that there may be new layers.
  void version.value;
  const layer = useSignal("");
  const sources = sourcesOf(open.recording, open.outline);
  const media = useLatest(open.recording, "media", () => open.recording.media());
  const layers = available(sources, (media.value?.length ?? 0) > 0);
  const shown = useLastBody(open);
  const chosen = stage.value;
  const { label, none } = LAYERS.find(({ id }) => id === chosen) ?? LAYERS[0]!;
  const missing = !layers.has(chosen);
  const Renderer = RENDERERS[chosen];
  // Computed, so that a step that goes by while another is shown draws nothing here.
  const fresh = useComputed(() => body.value !== null && body.value.index === step.value).value;
  useEffect(() => {
    if (missing || shown === null) layer.value = "";
  }, [missing, shown === null]);
  return (
    <>
      <div class="bar stage-bar">
        <div class="tabs" role="tablist" aria-label="Layers">
          {LAYERS.filter(({ id }) => id !== "rrweb" || layers.has(id) || chosen === id).map(
            ({ id, label: words }, i) => (
              <button
                key={id}
                type="button"
                role="tab"
                class="tab"
                id={`stage-tab-${id}`}
                aria-selected={chosen === id}
                aria-controls="stage-panel"
                aria-keyshortcuts={`Alt+${i + 1}`}
                tabIndex={chosen === id ? 0 : -1}
                disabled={!layers.has(id)}
                title={layers.has(id) ? `Alt+${i + 1}` : LAYERS[i]!.none}
                onClick={() => (stage.value = id)}
                onKeyDown={(event) => walkTabs(event, layers)}
              >
                {words}
              </button>
            ),
          )}
        </div>
        <span class="spacer" />
        <Moments />
      </div>
      <div
        class={`stage-panel${fresh ? "" : " stale"}`}
        role="tabpanel"
        id="stage-panel"
        aria-label={label}
        data-layer={chosen}
      >
        {missing ? (
          <MissingBox missing={{ missing: "not-captured", why: none }} what={label} />
        ) : shown === null ? (
          <div class="stage-wait" aria-busy="true" />
        ) : (
          <Renderer open={open} sources={sources} body={shown} fresh={fresh} layer={layer} />
        )}
      </div>
      <Actions line={layer.value} />
    </>
  );
}

/** The newest body of this run; the one before while the next is read. */
function useLastBody(open: Open): StepBody | null {
  const last = useRef<{ open: Open["recording"]; body: StepBody } | null>(null);
  const now = body.value;
  if (now !== null) last.current = { open: open.recording, body: now };
  return last.current !== null && last.current.open === open.recording ? last.current.body : null;
}

function walkTabs(event: KeyboardEvent, layers: ReadonlySet<string>): void {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (by === 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  const there = LAYERS.filter(({ id }) => layers.has(id) || id === stage.value);
  const at = there.findIndex(({ id }) => id === stage.value);
  const next = there[(at + by + there.length) % there.length]!;
  stage.value = next.id;
  document.getElementById(`stage-tab-${next.id}`)?.focus();
  event.preventDefault();
  event.stopPropagation();
}

function Moments(): JSX.Element {
  return (
    <div class="stage-moments" role="group" aria-label="Moment">
      {MOMENTS.map(({ id, label, mark }) => (
        <button
          key={id}
          type="button"
          class={`tab${id === "action" ? " acted" : ""}`}
          aria-pressed={moment.value === id}
          onClick={() => (moment.value = id)}
        >
          {id === "after" ? null : <span aria-hidden="true">{mark}</span>}
          {label}
          {id === "after" ? <span aria-hidden="true">{mark}</span> : null}
        </button>
      ))}
    </div>
  );
}

function Actions({ line }: { line: string }): JSX.Element {
  return (
    <div class="stage-actions">
      <button type="button" class="button stage-fork" onClick={() => (drawer.value = "fork")}>
        <Icon name="fork" /> fork from here
      </button>
      <button type="button" class="button" onClick={() => void copyLink()}>
        <Icon name="link" /> copy link
      </button>
      <button type="button" class="button" onClick={() => (drawer.value = "note")}>
        <Icon name="note" /> note
      </button>
      <span class="stage-layer muted" title={line} data-testid="stage-layer">
        {line === "" ? "" : `layer: ${line}`}
      </span>
    </div>
  );
}
