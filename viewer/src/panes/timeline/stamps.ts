/**
 * Signs that were drawn once and are copied from then on: a picture with hundreds of them costs copies, not paths.
 *
 * They belong to one palette and one pixel ratio; with either of them another set begins.
 */
import type { Pen } from "./glyphs";
import type { Palette } from "./palette";

/** Room around a sign's radius: lines have a width. */
const MARGIN = 2;

export class Stamps {
  private readonly kept = new Map<string, HTMLCanvasElement | null>();

  constructor(
    readonly palette: Palette,
    readonly ratio: number,
  ) {}

  /** Puts the sign `key` of radius `r` at a place; `draw` draws it around (0, 0) the first time. */
  put(pen: Pen, key: string, r: number, x: number, y: number, draw: (pen: Pen) => void): void {
    const name = `${key} ${r}`;
    let stamp = this.kept.get(name);
    if (stamp === undefined) {
      stamp = this.make(r, draw);
      this.kept.set(name, stamp);
    }
    if (stamp === null) {
      pen.save();
      pen.translate(x, y);
      draw(pen);
      pen.restore();
      return;
    }
    const size = stamp.width / this.ratio;
    // On whole pixels of the device, else the copy is blurred.
    const left = Math.round((x - size / 2) * this.ratio) / this.ratio,
      top = Math.round((y - size / 2) * this.ratio) / this.ratio;
    pen.drawImage(stamp, left, top, size, size);
  }

  private make(r: number, draw: (pen: Pen) => void): HTMLCanvasElement | null {
    const canvas = document.createElement("canvas");
    const pixels = Math.ceil((r + MARGIN) * 2 * this.ratio);
    canvas.width = canvas.height = pixels + (pixels % 2);
    const pen = canvas.getContext("2d");
    if (pen === null) return null;
    pen.setTransform(this.ratio, 0, 0, this.ratio, canvas.width / 2, canvas.height / 2);
    draw(pen);
    return canvas;
  }
}
