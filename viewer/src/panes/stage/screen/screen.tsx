/**
 * The screen of a step: its screenshot with the acted-on element, and as a second look before and after against each
 * other.
 *
 * While the playhead moves only thumbnails are drawn, coarse enough to need no mask; the picture itself comes when it
 * rests.
 */
import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Observation, Recording, StepBody } from "../../../core/types";
import { moment, step } from "../../../state/app";
import { masked } from "../../../state/mask";
import { bytes, origin, pick, type RendererProps } from "../layers";
import { ChoiceBox, MaskedBox, MissingBox } from "../missing";
import { blobRef, isMissing, observationAt, screenshotName } from "../reading";
import { clean } from "../tree-view";
import { findActedOn } from "../tree/find";
import { useLatest } from "../use-latest";
import { part } from "../../part";
import type { Mode } from "./against";
import { Frame, type Overlay } from "./frame";
import { pictureScale, target } from "./geometry";
import { NEVER_BYTES, ownThumbnail, pictureAtHand, thumbnail, type Picture } from "./pictures";
import { fieldMasks, sceneOf, type Scene } from "./scene";
import { stepNumber } from "../../../state/numbers";

const Against = part(async () => (await import("./against")).Against);

const MODES: readonly { id: Mode | "one"; label: string }[] = [
  { id: "one", label: "one" },
  { id: "beside", label: "side by side" },
  { id: "slider", label: "slider" },
  { id: "difference", label: "difference" },
];
/** Width of the picture that stands in while the playhead moves. */
const SCRUB_WIDTH = 320;
const NO_FILE = new Blob();

export function Screen(props: RendererProps & { beside?: boolean }): JSX.Element {
  const { open, sources, body, fresh, layer, beside = false } = props;
  const [mode, setMode] = useState<Mode | "one">("one");
  const [actual, setActual] = useState(false);
  const [anyway, setAnyway] = useState<string | null>(null);
  const observation = pick(body.screens, moment.value);
  const name = observation === null ? null : ((observation.ref ?? blobRef(observation.value))?.name ?? null);
  const scene = useLatest(open.recording, observation === null ? null : `${observation.seq}/${anyway === name}`, () =>
    sceneOf(open, sources, observation!, anyway !== null && anyway === name),
  );
  const scrub = useScrub(props, observation === null || scene.fresh);
  const line = observation === null ? "no screenshot" : describe(scene.value, observation, body.index);
  useEffect(() => {
    if (fresh && !beside) layer.value = line;
  }, [line, fresh, beside]);

  const content = ((): JSX.Element => {
    if (scrub !== null)
      return (
        <Frame
          picture={scrub.picture}
          label={`Screen of step ${stepNumber(scrub.step)}, small`}
          overlay={null}
          actual={false}
        />
      );
    if (observation === null) {
      return (
        <MissingBox
          missing={{ missing: "not-captured", why: "No screenshot was taken before this step." }}
          what="screenshot"
        />
      );
    }
    if (observation.ref?.tier === "restricted" && masked("field", observation.seq, body.index)) {
      return <MaskedBox what="screenshot (restricted)" seq={observation.seq} />;
    }
    if (scene.error !== null) return <MissingBox missing={{ missing: "lost", why: scene.error }} what="screenshot" />;
    if (scene.value === null) return <div class="stage-wait" aria-busy="true" />;
    if (mode !== "one" && !beside) return <Both {...props} mode={mode} />;
    const { look } = scene.value;
    if (isMissing(look)) return <MissingBox missing={look} what="screenshot" />;
    if ("heavy" in look) {
      const { width, height, bytes: size } = look.heavy;
      return (
        <ChoiceBox
          title="A very large picture"
          numbers={
            width === 0
              ? `The file has ${bytes(size)}.`
              : `${width.toLocaleString("en")} × ${height.toLocaleString("en")} points; decoded it takes ${bytes(size)}.`
          }
          choice={size > NEVER_BYTES ? null : "draw it anyway"}
          onChoose={() => setAnyway(name)}
        />
      );
    }
    return (
      <Frame
        picture={look}
        label={pictureLabel(scene.value, body.index)}
        overlay={overlayOf(scene.value, look, body)}
        actual={actual && !beside}
      />
    );
  })();

  return (
    <div class="stage-screen">
      {beside ? null : (
        <div class="stage-tools" role="toolbar" aria-label="Screen">
          {MODES.map(({ id, label }) => (
            <button key={id} type="button" class="button small" aria-pressed={mode === id} onClick={() => setMode(id)}>
              {label}
            </button>
          ))}
          <span class="spacer" />
          <WindowLine scene={scene.value} index={body.index} />
          <button type="button" class="button small" aria-pressed={actual} onClick={() => setActual(!actual)}>
            100 %
          </button>
        </div>
      )}
      <div class={`stage-canvas${actual && !beside && mode === "one" ? " actual" : ""}`}>{content}</div>
    </div>
  );
}

/** What stands in: a picture of the screenshot in row `seq`, as it was seen in `step`. */
interface Small {
  seq: number;
  step: number;
  picture: Picture;
}

/** A thumbnail of the step under the playhead, while that step's body has not come, or (not `drawn`) its picture. */
function useScrub({ open, fresh, body }: RendererProps, drawn: boolean): Small | null {
  const { recording, outline } = open;
  const { steps } = outline;
  const seq = useComputed(() =>
    body.index === step.value || step.value >= steps.length ? -1 : steps.screenshot(step.value),
  ).value;
  const small = useLatest(recording, seq < 0 ? null : String(seq), async () => {
    const at = step.peek();
    const name = screenshotName(outline, seq);
    const bitmap = (await ownThumbnail(recording, name, SCRUB_WIDTH)) ?? (await readSmall(recording, seq, at));
    if (bitmap === null) return null;
    const ratio = bitmap.height / bitmap.width;
    // Drawn at the size of the picture before, so that nothing jumps while the hand moves.
    const width = pictureAtHand(recording, { name })?.width ?? 1280;
    return { seq, step: at, picture: { bitmap, width, height: Math.round(width * ratio), blob: NO_FILE } };
  });
  if (!fresh) return small.value;
  // Between the two the picture of the step before would be seen once more.
  return !drawn && small.value?.seq === steps.screenshot(body.index) ? small.value : null;
}

/** Where the recording has no thumbnail: from the picture that the row refers to. */
async function readSmall(recording: Recording, seq: number, at: number): Promise<ImageBitmap | null> {
  const ref = (await observationAt(recording, seq, at))?.ref ?? null;
  return ref === null || ref.tier === "restricted" ? null : thumbnail(recording, ref, SCRUB_WIDTH);
}

/** Before and after of the step against each other. */
function Both({ open, sources, body, mode }: RendererProps & { mode: Mode }): JSX.Element {
  const { before, after } = body.screens;
  const both = useLatest(open.recording, `${before?.seq ?? "-"}/${after?.seq ?? "-"}`, async () => ({
    before: before === null ? null : await sceneOf(open, sources, before, false),
    after: after === null ? null : await sceneOf(open, sources, after, false),
  }));
  if (both.value === null) return <div class="stage-wait" aria-busy="true" />;
  const pair = [both.value.before, both.value.after].map((scene) =>
    scene === null || isMissing(scene.look) || "heavy" in scene.look || scene.look.bitmap === null
      ? null
      : { scene, picture: scene.look },
  );
  const [first, second] = pair;
  if (!first || !second) {
    return (
      <MissingBox
        missing={{
          missing: "not-captured",
          why: "This step has no two screenshots that can be laid against each other.",
        }}
        what="before and after"
      />
    );
  }
  const hide = [first, second].some(
    ({ scene }) => scene.observation.ref?.tier === "restricted" && masked("field", scene.observation.seq, body.index),
  );
  if (hide) return <MaskedBox what="screenshots (restricted)" seq={second.scene.observation.seq} />;
  return (
    <Against
      mode={mode}
      before={{
        picture: first.picture,
        overlay: overlayOf(first.scene, first.picture, body),
        label: pictureLabel(first.scene, body.index),
      }}
      after={{
        picture: second.picture,
        overlay: { ...overlayOf(second.scene, second.picture, body), target: null },
        label: pictureLabel(second.scene, body.index),
      }}
    />
  );
}

function overlayOf(scene: Scene, picture: Picture, body: StepBody): Overlay {
  const masks = fieldMasks(scene, picture, body.index);
  const acted = moment.value === "action" ? body.acted : null;
  if (acted === null) return { target: null, verb: "", masks };
  const node = scene.tree === null ? null : findActedOn(scene.tree, { ...acted, point: null });
  const scale = pictureScale(picture.width, scene.window, scene.tree);
  return { target: target(acted, node?.box ?? null, scale, picture.width, picture.height), verb: acted.verb, masks };
}

/** Where the window was; while it is masked only the host, as in the network's list. */
function WindowLine({ scene, index }: { scene: Scene | null; index: number }): JSX.Element | null {
  const url = scene?.window?.url ?? null;
  if (scene === null || url === null) return null;
  const host = /^https?:\/\/[^/?#]*/.exec(url)?.[0] ?? "";
  const words = masked("field", scene.observation.seq, index) ? (host === "" ? "masked" : `${host}/…`) : url;
  return <span class="clip muted mono stage-address">{clean(words, 300)}</span>;
}

function pictureLabel(scene: Scene, index: number): string {
  const title = scene.window?.title ?? scene.window?.url;
  return `Screenshot ${origin(scene.observation, index)}${title ? `: ${title.slice(0, 200)}` : ""}`;
}

function describe(scene: Scene | null, observation: Observation, index: number): string {
  const from = origin(observation, index);
  if (scene === null || isMissing(scene.look) || "heavy" in scene.look || scene.look.width === 0)
    return `screenshot, ${from}`;
  return `screenshot, ${scene.look.width} × ${scene.look.height}, ${from}`;
}
