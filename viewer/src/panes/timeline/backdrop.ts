/** What lies behind and beside the lanes' bars: folded gaps, the ruler, the curve of a study. */
import { clock, duration } from "../../state/words";
import type { Pen } from "./glyphs";
import type { Lane } from "./lanes";
import type { Palette } from "./palette";
import type { Scene } from "./scene";

export function drawBreaks(pen: Pen, palette: Palette, scene: Scene): void {
  const top = scene.lanes[0]?.height ?? 0;
  pen.font = `11px ${palette.font}`;
  pen.textAlign = "center";
  for (const gap of scene.breaks) {
    const x0 = Math.max(gap.x0, 0),
      x1 = Math.min(gap.x1, scene.projection.width);
    if (!gap.open) {
      pen.fillStyle = palette.raise;
      pen.fillRect(x0, top, x1 - x0, scene.height - top);
    }
    pen.strokeStyle = palette.edge;
    pen.lineWidth = 1;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    for (const x of [gap.x0, gap.x1]) {
      pen.moveTo(Math.round(x) + 0.5, top);
      pen.lineTo(Math.round(x) + 0.5, scene.height);
    }
    pen.stroke();
    pen.setLineDash([]);
    const words = `${duration(gap.to - gap.from)}${gap.open ? " idle, opened" : ""}`;
    const room = x1 - x0 - 4;
    if (room < 30 || pen.measureText(words).width > room) continue;
    pen.fillStyle = palette.muted;
    const middle = (x0 + x1) / 2,
      y = top + (scene.height - top) / 2;
    pen.fillText(words, middle, gap.open || room < 40 ? y : y - 7);
    if (!gap.open && room >= 40) pen.fillText("idle", middle, y + 7);
  }
}

export function drawTicks(pen: Pen, palette: Palette, scene: Scene): void {
  const lane = scene.lanes[0];
  if (!lane) return;
  pen.font = `10px ${palette.font}`;
  pen.textAlign = "left";
  pen.fillStyle = palette.muted;
  pen.strokeStyle = palette.hair;
  pen.lineWidth = 1;
  const fine = scene.ticks.some(({ t }) => t % 1e9 !== 0);
  // Of a run of minutes no hours are said.
  const short = scene.projection.axis.end < 3.6e12;
  let free = 0;
  for (const { x, t } of scene.ticks) {
    const words = clock(t, fine ? 3 : 0).slice(short ? 3 : 0);
    if (x < free || x + pen.measureText(words).width + 8 > scene.projection.width) continue;
    pen.fillText(words, x + 4, lane.y + lane.height / 2);
    pen.beginPath();
    pen.moveTo(Math.round(x) + 0.5, lane.y + 3);
    pen.lineTo(Math.round(x) + 0.5, lane.y + lane.height);
    pen.stroke();
    free = x + pen.measureText(words).width + 12;
  }
}

export function drawChance(pen: Pen, palette: Palette, scene: Scene, lane: Lane): void {
  const y = (v: number): number => lane.y + 6 + (1 - Math.min(Math.max(v, 0), 1)) * (lane.height - 12);
  const { curve } = scene;
  if (curve.length > 0) {
    pen.beginPath();
    curve.forEach((point, i) => (i === 0 ? pen.moveTo(point.x, y(point.hi)) : pen.lineTo(point.x, y(point.hi))));
    for (let i = curve.length - 1; i >= 0; i--) pen.lineTo(curve[i]?.x ?? 0, y(curve[i]?.lo ?? 0));
    pen.closePath();
    pen.globalAlpha = 0.2;
    pen.fillStyle = palette.accent;
    pen.fill();
    pen.globalAlpha = 1;
    pen.beginPath();
    curve.forEach((point, i) => (i === 0 ? pen.moveTo(point.x, y(point.v)) : pen.lineTo(point.x, y(point.v))));
    pen.strokeStyle = palette.accent;
    pen.lineWidth = 1.8;
    pen.stroke();
  }
  for (const drop of scene.drops) {
    pen.beginPath();
    pen.arc(drop.x, y(drop.v), 4.5, 0, Math.PI * 2);
    pen.fillStyle = palette.panel;
    pen.fill();
    pen.strokeStyle = palette.warn;
    pen.lineWidth = 2;
    pen.stroke();
  }
}

export function line(pen: Pen, colour: string, x0: number, x1: number, y: number): void {
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x0, y);
  pen.lineTo(x1, y);
  pen.stroke();
}
