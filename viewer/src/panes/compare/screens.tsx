/** The screens of a pair: side by side, or one picture of what differs between them. Fields are masked as on the stage. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Observation } from "../../core/types";
import type { Open } from "../../state/app";
import { masked } from "../../state/mask";
import { MissingBox } from "../stage/missing";
import { isMissing } from "../stage/reading";
import { difference } from "../stage/screen/difference";
import { Frame } from "../stage/screen/frame";
import type { Share } from "../stage/screen/geometry";
import type { Picture } from "../stage/screen/pictures";
import { type Scene, fieldMasks, sceneOf } from "../stage/screen/scene";
import { sourcesOf } from "../stage/sources";
import { useLatest } from "../stage/use-latest";

/** What differs is looked for at this width: enough to see where, quick enough for every move. */
const WIDTH = 800;
/** The mark's colour, that of a warning: pink is the acted-on element's alone. */
const MARK = [214, 120, 0] as const;
/** Rows of the other run are none of this one's: what is revealed by its row here reveals nothing there. */
const NO_ROW = -2;

export interface ScreenSide {
  open: Open;
  observation: Observation | null;
  word: "left" | "right";
  /** The step of the left run that the pair is shown in: a reveal of it holds for both sides. */
  step: number;
}

export function Screens({
  left,
  right,
  onReveal,
}: {
  left: ScreenSide;
  right: ScreenSide;
  onReveal: () => void;
}): JSX.Element {
  const a = useScene(left),
    b = useScene(right);
  const [mode, setMode] = useState<"beside" | "difference">("beside");
  const one = drawnOf(a, left),
    two = drawnOf(b, right);
  return (
    <div class="compare-screens">
      <div class="modes" role="group" aria-label="How the screens are compared">
        <button type="button" class="button small" aria-pressed={mode === "beside"} onClick={() => setMode("beside")}>
          side by side
        </button>
        <button
          type="button"
          class="button small"
          aria-pressed={mode === "difference"}
          disabled={one === null || two === null}
          onClick={() => setMode("difference")}
        >
          difference
        </button>
        {(one?.masks.length ?? 0) + (two?.masks.length ?? 0) > 0 ? (
          <button type="button" class="link" onClick={onReveal}>
            fields are masked · reveal…
          </button>
        ) : null}
      </div>
      {mode === "difference" && one !== null && two !== null ? (
        <Differing left={one} right={two} />
      ) : (
        <div class="beside">
          <One scene={a} drawn={one} side={left} />
          <One scene={b} drawn={two} side={right} />
        </div>
      )}
    </div>
  );
}

interface Drawn {
  picture: Picture;
  masks: Share[];
}

function drawnOf(scene: Scene | null, side: ScreenSide): Drawn | null {
  if (scene === null || isMissing(scene.look) || "heavy" in scene.look || restricted(side)) return null;
  const own = side.word === "left" ? scene : { ...scene, treeSeq: NO_ROW };
  return { picture: scene.look, masks: fieldMasks(own, scene.look, side.step) };
}

function restricted({ observation, word, step }: ScreenSide): boolean {
  return observation?.ref?.tier === "restricted" && masked("field", word === "left" ? observation.seq : NO_ROW, step);
}

function One({ scene, drawn, side }: { scene: Scene | null; drawn: Drawn | null; side: ScreenSide }): JSX.Element {
  if (side.observation === null)
    return (
      <MissingBox
        missing={{ missing: "not-captured", why: "No screenshot was taken up to this step." }}
        what="screenshot"
      />
    );
  if (restricted(side)) return <p class="hatched">a restricted screenshot, masked</p>;
  if (scene === null) return <p class="muted">reading …</p>;
  if (isMissing(scene.look)) return <MissingBox missing={scene.look} what="screenshot" />;
  if (drawn === null) return <p class="muted">A very large picture: the stage asks before it draws it.</p>;
  return (
    <div class="stage-canvas">
      <Frame
        picture={drawn.picture}
        label={`Screen of the ${side.word} run`}
        overlay={{ target: null, verb: "", masks: drawn.masks }}
      />
    </div>
  );
}

function Differing({ left, right }: { left: Drawn; right: Drawn }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [said, setSaid] = useState("");
  const { picture } = right;
  useEffect(() => {
    const element = canvas.current;
    const width = Math.min(WIDTH, picture.width),
      height = Math.max(1, Math.round((picture.height / Math.max(picture.width, 1)) * width));
    let wanted = true;
    void Promise.all([pixels(left, width, height), pixels(right, width, height)]).then(([a, b]) => {
      const pen = element?.getContext("2d");
      if (!wanted || !element || !pen || !a || !b) return;
      const found = difference(a, b, MARK);
      element.width = width;
      element.height = height;
      pen.putImageData(new ImageData(found.pixels, width, height), 0, 0);
      const part = (100 * found.differing) / Math.max(found.total, 1);
      setSaid(
        found.differing === 0
          ? "no point differs"
          : `${part < 0.01 ? "less than 0.01" : part.toFixed(2)} % of the points differ`,
      );
    });
    return () => {
      wanted = false;
    };
  }, [left.picture, picture, left.masks.length, right.masks.length]);
  const sizes = left.picture.width === picture.width && left.picture.height === picture.height;
  return (
    <figure class="differing">
      <canvas ref={canvas} role="img" aria-label={`Difference of the screens: ${said}`} />
      <figcaption class="muted" aria-live="polite">
        {said}
        {sizes
          ? ""
          : `; the left one is ${left.picture.width} × ${left.picture.height}, the right one ${picture.width} × ${picture.height}, and was scaled`}
      </figcaption>
    </figure>
  );
}

/** The picture's points at that size, masked fields blank: a difference may not tell what is under a mask. */
async function pixels({ picture, masks }: Drawn, width: number, height: number): Promise<Uint8ClampedArray | null> {
  const bitmap = await createImageBitmap(picture.blob, {
    resizeWidth: width,
    resizeHeight: height,
    resizeQuality: "medium",
  });
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  if (pen === null) return null;
  pen.drawImage(bitmap, 0, 0);
  bitmap.close();
  pen.fillStyle = "#888";
  for (const mask of masks)
    pen.fillRect(
      (mask.left / 100) * width,
      (mask.top / 100) * height,
      (mask.width / 100) * width,
      (mask.height / 100) * height,
    );
  return pen.getImageData(0, 0, width, height).data;
}

/** The scene of a side; the last one stays until the next is there. */
function useScene({ open, observation }: ScreenSide): Scene | null {
  const key = observation === null ? null : `${observation.seq}`;
  return useLatest(open.recording, key, () =>
    sceneOf(open, sourcesOf(open.recording, open.outline), observation!, false),
  ).value;
}
