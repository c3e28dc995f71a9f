/**
 * The DOM of a step: its HTML snapshot, inert, in a frame that may do nothing; the acted-on element outlined.
 *
 * The frame has `sandbox=""`: an origin of its own, no scripts, no forms, no way out. The old one stays until the new
 * one has loaded.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Missing } from "../../../core/types";
import { moment } from "../../../state/app";
import { masked } from "../../../state/mask";
import { bytes, origin, pick, plural, type RendererProps } from "../layers";
import { ChoiceBox, MaskedBox, MissingBox } from "../missing";
import { isMissing, readHeld, textOf } from "../reading";
import { newestWindow } from "../screen/scene";
import { useLatest } from "../use-latest";
import { HTML_CHARACTERS, safeDocument, type Aim, type SafeDocument } from "./document";

/** More is never put into a frame: it is text that the Raw tab shows. */
const NEVER = 64_000_000;
const WIDTH = 1280;
const HEIGHT = 800;

interface Drawn {
  document: SafeDocument;
  characters: number;
  width: number;
  height: number;
}

export function Dom({ open, sources, body, fresh, layer }: RendererProps): JSX.Element {
  const { recording, outline } = open;
  const observation = pick(body.dom, moment.value);
  const [anyway, setAnyway] = useState(-1);
  const lane = body.index >= 0 && body.index < outline.steps.length ? outline.steps.lane(body.index) : null;
  const hide = observation !== null && masked("field", observation.seq, body.index);
  const acted = moment.value === "action" ? body.acted : null;
  const aim: Aim = {
    selector: acted?.selector ?? null,
    ref: acted?.ref ?? null,
    role: acted?.role ?? null,
    name: acted?.name ?? null,
  };
  const key = observation === null ? null : JSON.stringify([observation.seq, anyway === observation.seq, hide, aim]);
  const loaded = useLatest(recording, key, async (): Promise<Drawn | { characters: number } | Missing> => {
    const held = await readHeld(recording, observation!);
    if (isMissing(held)) return held;
    const text = await textOf(held);
    if (text === null) return { missing: "corrupt", why: "a dom_full that is no text" };
    if (text.length > NEVER || (text.length > HTML_CHARACTERS && anyway !== observation!.seq))
      return { characters: text.length };
    const window = await newestWindow(recording, sources, observation!, lane);
    return {
      document: safeDocument(text, aim, hide),
      characters: text.length,
      width: Math.min(window?.width ?? WIDTH, 8_000),
      height: Math.min(window?.height ?? HEIGHT, 8_000),
    };
  });
  const now = loaded.value;
  const line = observation === null ? "no DOM snapshot" : describe(now, origin(observation, body.index));
  useEffect(() => {
    if (fresh) layer.value = line;
  }, [line, fresh]);

  if (observation === null) {
    return (
      <MissingBox
        missing={{ missing: "not-captured", why: "No DOM was observed before this step." }}
        what="DOM snapshot"
      />
    );
  }
  if (observation.ref?.tier === "restricted" && hide)
    return <MaskedBox what="DOM snapshot (restricted)" seq={observation.seq} />;
  if (loaded.error !== null) return <MissingBox missing={{ missing: "lost", why: loaded.error }} what="DOM snapshot" />;
  if (now === null) return <div class="stage-wait" aria-busy="true" />;
  if (isMissing(now)) return <MissingBox missing={now} what="DOM snapshot" />;
  if (!("document" in now)) {
    const refused = now.characters > NEVER;
    return (
      <ChoiceBox
        title="A very large document"
        numbers={`${bytes(now.characters)} of HTML; ${refused ? "it is not drawn here, the Raw tab has it" : "drawing it may hold this page for some seconds"}.`}
        choice={refused ? null : "draw it anyway"}
        onChoose={() => setAnyway(observation.seq)}
      />
    );
  }
  return (
    <div class="stage-dom">
      <Frames document={now.document} width={now.width} height={now.height} />
      {now.document.found === false ? (
        <p class="stage-note is-warn">The element that was acted on is not in this document.</p>
      ) : null}
    </div>
  );
}

function describe(now: Drawn | { characters: number } | Missing | null, from: string): string {
  if (now === null || !("document" in now)) return `DOM snapshot, ${from}`;
  const { document, characters } = now;
  const taken = document.removed === 0 ? "" : `, ${plural(document.removed, "active part")} taken out`;
  return `DOM snapshot, ${plural(document.elements, "element")}, ${bytes(characters)}${taken}, ${from}`;
}

/** Two frames at most: the one that is seen, and the one that loads. */
function Frames({ document, width, height }: { document: SafeDocument; width: number; height: number }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const serial = useRef(0);
  const [frames, setFrames] = useState<{ id: number; html: string; ready: boolean }[]>([]);
  const [scale, setScale] = useState(1);
  useEffect(() => {
    serial.current += 1;
    const next = { id: serial.current, html: document.html, ready: false };
    setFrames((old) => [...old.filter((frame) => frame.ready).slice(-1), next]);
  }, [document.html]);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const fit = (): void => setScale(Math.min(1, element.clientWidth / width) || 1);
    fit();
    const watcher = new ResizeObserver(fit);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, [width]);
  // In a pane that is taller than the window was, the document gets the room; nothing of it depends on that height.
  const tall = Math.max(height, Math.ceil((box.current?.clientHeight ?? 0) / scale));
  return (
    <div class="stage-dom-box" ref={box}>
      {frames.map((frame) => (
        <iframe
          key={frame.id}
          sandbox=""
          srcdoc={frame.html}
          title="DOM snapshot"
          referrerpolicy="no-referrer"
          tabIndex={-1}
          class={frame.ready ? "ready" : undefined}
          style={{ width: `${width}px`, height: `${tall}px`, transform: `scale(${scale})` }}
          onLoad={() =>
            setFrames((all) =>
              all
                .filter(({ id }) => id >= frame.id)
                .map((one) => (one.id === frame.id ? { ...one, ready: true } : one)),
            )
          }
        />
      ))}
    </div>
  );
}
