/**
 * Two screenshots against each other: side by side, one over the other with a slider, or their difference in points.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { difference } from "./difference";
import { Frame, Pixels, type Overlay } from "./frame";
import type { Picture } from "./pictures";

export type Mode = "beside" | "slider" | "difference";

export interface Side {
  picture: Picture;
  overlay: Overlay;
  label: string;
}

/** The difference is made at this width: pixels of a scaled picture tell where, and cost little. */
const WIDTH = 960;
/** What differs, in the tone of a warning: pink is the acted-on element's alone. */
const MARK = [214, 120, 0] as const;

export function Against({ mode, before, after }: { mode: Mode; before: Side; after: Side }): JSX.Element {
  if (mode === "beside") {
    return (
      <div class="stage-beside">
        <Labelled word="before" side={before} />
        <Labelled word="after" side={after} />
      </div>
    );
  }
  return mode === "slider" ? <Slider before={before} after={after} /> : <Differing before={before} after={after} />;
}

function Labelled({ word, side }: { word: string; side: Side }): JSX.Element {
  return (
    <div class="stage-labelled">
      <p class="muted">{word}</p>
      <div class="stage-canvas">
        <Frame picture={side.picture} label={`${word}: ${side.label}`} overlay={side.overlay} />
      </div>
    </div>
  );
}

function Slider({ before, after }: { before: Side; after: Side }): JSX.Element {
  const [at, setAt] = useState(50);
  return (
    <div class="stage-slider">
      <div class="stage-canvas">
        <Frame picture={after.picture} label={`after: ${after.label}`} overlay={after.overlay}>
          <div class="stage-over-picture" style={{ clipPath: `inset(0 ${100 - at}% 0 0)` }}>
            <Pixels picture={before.picture} label={`before: ${before.label}`} />
            {before.overlay.masks.map((mask, i) => (
              <div
                key={i}
                class="stage-over-mask"
                style={{
                  left: `${mask.left}%`,
                  top: `${mask.top}%`,
                  width: `${mask.width}%`,
                  height: `${mask.height}%`,
                }}
              />
            ))}
          </div>
          <div class="stage-over-edge" style={{ left: `${at}%` }} />
        </Frame>
      </div>
      <label class="stage-range">
        <span class="muted">before</span>
        <input
          type="range"
          min={0}
          max={100}
          value={at}
          aria-label="How much of before is shown"
          aria-valuetext={`${at} % before, ${100 - at} % after`}
          onInput={(event) => setAt(Number(event.currentTarget.value))}
          onKeyDown={(event) => event.stopPropagation()}
        />
        <span class="muted">after</span>
      </label>
    </div>
  );
}

function Differing({ before, after }: { before: Side; after: Side }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [said, setSaid] = useState("");
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const width = Math.min(WIDTH, after.picture.width);
    const height = Math.max(1, Math.round((after.picture.height / after.picture.width) * width));
    let wanted = true;
    const fail = (why: unknown): void =>
      setSaid(`they cannot be compared: ${why instanceof Error ? why.message : String(why)}`);
    Promise.all([before, after].map((side) => pixels(side, width, height))).then(([old, fresh]) => {
      const context = element.getContext("2d");
      if (!wanted || context === null || !old || !fresh) return;
      const found = difference(old, fresh, MARK);
      element.width = width;
      element.height = height;
      context.putImageData(new ImageData(found.pixels, width, height), 0, 0);
      const part = (found.differing / Math.max(1, found.total)) * 100;
      const sizes = before.picture.width === after.picture.width && before.picture.height === after.picture.height;
      setSaid(
        [
          found.differing === 0
            ? "no point differs"
            : `${part < 0.01 ? "under 0.01" : part.toFixed(2)} % of the points differ`,
          ...(sizes ? [] : ["the pictures have different sizes and were scaled"]),
        ].join("; "),
      );
    }, fail);
    return () => {
      wanted = false;
    };
  }, [before.picture, after.picture, before.overlay.masks.length, after.overlay.masks.length]);
  const style = { "--w": String(after.picture.width), "--ratio": String(after.picture.width / after.picture.height) };
  return (
    <div class="stage-slider">
      <div class="stage-canvas">
        <figure class="stage-frame" style={style}>
          <canvas ref={canvas} role="img" aria-label={`Difference of before and after: ${said}`} />
        </figure>
      </div>
      <p class="stage-range muted" role="status">
        {said}
      </p>
    </div>
  );
}

/** The picture's pixels at that size, masked fields blank: a difference may not tell what is under a mask. */
async function pixels(side: Side, width: number, height: number): Promise<Uint8ClampedArray | null> {
  const bitmap = await createImageBitmap(side.picture.blob, {
    resizeWidth: width,
    resizeHeight: height,
    resizeQuality: "medium",
  });
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) return null;
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  context.fillStyle = "#888";
  for (const mask of side.overlay.masks) {
    context.fillRect(
      (mask.left / 100) * width,
      (mask.top / 100) * height,
      (mask.width / 100) * width,
      (mask.height / 100) * height,
    );
  }
  return context.getImageData(0, 0, width, height).data;
}
