/**
 * A canvas that is drawn when what it shows has changed, at most once a frame, and never because the playhead moved.
 *
 * `draw` reads signals; a change of one of them plans the next drawing. Size, pixel ratio and the system's colours plan
 * one, too.
 */
import { effect, signal } from "@preact/signals";
import { scheme } from "../../state/theme";
import type { Pen } from "./glyphs";
import { type Palette, readPalette } from "./palette";

/** Counts the changes of pixel ratio, forced colours and contrast. */
const screenChanges = signal(0);

/** The screen is watched once for all canvases. Returns the end of it. */
export function watchScreen(): () => void {
  const queries = ["(forced-colors: active)", "(prefers-contrast: more)"].map((words) => matchMedia(words));
  const changed = (): void => {
    screenChanges.value += 1;
  };
  for (const query of queries) query.addEventListener("change", changed);
  let ratio = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
  const onRatio = (): void => {
    changed();
    ratio.removeEventListener("change", onRatio);
    ratio = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    ratio.addEventListener("change", onRatio);
  };
  ratio.addEventListener("change", onRatio);
  return () => {
    for (const query of queries) query.removeEventListener("change", changed);
    ratio.removeEventListener("change", onRatio);
  };
}

export interface Drawing {
  width: number;
  height: number;
  paint: (pen: Pen, palette: Palette, ratio: number) => void;
}

/** Keeps `canvas` drawn with what `prepare` says; null leaves it empty. Returns the end of it. */
export function surface(canvas: HTMLCanvasElement, prepare: () => Drawing | null): () => void {
  let frame = 0;
  let palette: { of: string; colours: Palette } | null = null;
  const stop = effect(() => {
    const drawing = prepare();
    const look = `${scheme.value} ${screenChanges.value}`;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      const pen = canvas.getContext("2d");
      if (pen === null) return;
      const ratio = Math.min(globalThis.devicePixelRatio || 1, 3);
      fitTo(canvas, drawing?.width ?? 1, drawing?.height ?? 1, ratio);
      if (palette?.of !== look) palette = { of: look, colours: readPalette() };
      if (drawing === null) pen.clearRect(0, 0, canvas.width, canvas.height);
      else drawing.paint(pen, palette.colours, ratio);
    });
  });
  return () => {
    stop();
    cancelAnimationFrame(frame);
  };
}

/** Changing a canvas' size empties it and costs memory anew: only where it has to be. */
function fitTo(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  const w = Math.max(1, Math.round(width * ratio)),
    h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}
