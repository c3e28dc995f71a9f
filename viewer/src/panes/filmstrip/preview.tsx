/** The picture under the pointer or the focus, large, with the same masks as on the stage. */
import type { JSX } from "preact";
import type { Open } from "../../state/app";
import { masked } from "../../state/mask";
import { isMissing, observationAt } from "../stage/reading";
import { Frame } from "../stage/screen/frame";
import { fieldMasks, sceneOf } from "../stage/screen/scene";
import { sourcesOf } from "../stage/sources";
import { useLatest } from "../stage/use-latest";
import type { Cell } from "./cells";
import { stepNumber } from "../../state/numbers";

const WIDTH = 480;

export function Preview({
  open,
  cell,
  left,
  width,
}: {
  open: Open;
  cell: Cell;
  left: number;
  width: number;
}): JSX.Element | null {
  const { recording, outline } = open;
  const loaded = useLatest(recording, String(cell.screenshot), async () => {
    const observation = await observationAt(recording, cell.screenshot, outline.steps.of(cell.screenshot));
    if (observation === null) return null;
    return { scene: await sceneOf(open, sourcesOf(recording, outline), observation, false), step: cell.step };
  });
  const now = loaded.value;
  if (now === null || isMissing(now.scene.look) || "heavy" in now.scene.look) return null;
  const { look, observation, window } = now.scene;
  if (observation.ref?.tier === "restricted" && masked("field", observation.seq, now.step)) return null;
  const at = Math.min(Math.max(left - WIDTH / 2, 8), Math.max(8, width - WIDTH - 8));
  const { steps } = outline;
  return (
    <div class="film-large" style={{ left: `${at}px`, width: `${WIDTH}px` }} role="tooltip">
      <div class="film-large-picture">
        <Frame
          picture={look}
          label={`Screen of step ${stepNumber(now.step)}`}
          overlay={{ target: null, verb: "", masks: fieldMasks(now.scene, look, now.step) }}
        />
      </div>
      <p class="clip">
        <b>{stepNumber(now.step)}</b> {steps.name(now.step)}{" "}
        <span class="muted">{window?.title ?? window?.url ?? ""}</span>
      </p>
    </div>
  );
}
