/**
 * The timeline's signs on a canvas. Each has a shape of its own; the colour only says it again.
 *
 * They are the same shapes as in `panes/icons.tsx`, drawn around a centre with a radius.
 */
import { PERMISSIONS } from "../../core/types";
import type { Palette } from "./palette";
import type { Sign } from "./tracks";

export type Pen = CanvasRenderingContext2D;

const TURN = Math.PI * 2;

/** The sign of a permission word, by its number in `PERMISSIONS`. */
export function permission(pen: Pen, palette: Palette, word: number, x: number, y: number, r: number): void {
  pen.lineWidth = r > 6 ? 2 : 1.7;
  pen.lineCap = "round";
  pen.lineJoin = "round";
  switch (PERMISSIONS[word]) {
    case "denied":
      disc(pen, palette.deny, x, y, r);
      pen.fillStyle = palette.onSolid;
      pen.fillRect(x - r * 0.6, y - r * 0.2, r * 1.2, r * 0.4);
      break;
    case "granted":
      ring(pen, palette.ok, x, y, r);
      tick(pen, x, y, r);
      break;
    case "auto_approved":
      pen.setLineDash([r * 0.55, r * 0.5]);
      ring(pen, palette.ok, x, y, r);
      pen.setLineDash([]);
      tick(pen, x, y, r);
      break;
    case "escalated":
      // A house-like arrow: the request went up to someone.
      pen.fillStyle = palette.warn;
      pen.beginPath();
      pen.moveTo(x, y - r);
      pen.lineTo(x + r, y + r * 0.1);
      pen.lineTo(x + r * 0.4, y + r * 0.1);
      pen.lineTo(x + r * 0.4, y + r * 0.9);
      pen.lineTo(x - r * 0.4, y + r * 0.9);
      pen.lineTo(x - r * 0.4, y + r * 0.1);
      pen.lineTo(x - r, y + r * 0.1);
      pen.closePath();
      pen.fill();
      break;
    case "revoked":
      ring(pen, palette.deny, x, y, r);
      pen.beginPath();
      pen.moveTo(x - r * 0.65, y + r * 0.65);
      pen.lineTo(x + r * 0.65, y - r * 0.65);
      pen.stroke();
      break;
    default:
      ring(pen, palette.deny, x, y, r);
      disc(pen, palette.deny, x, y, r * 0.35);
  }
}

/** A sign of the secondary row, or "note". */
export function sign(pen: Pen, palette: Palette, which: Sign | "note", x: number, y: number, r: number): void {
  pen.lineWidth = 1.6;
  pen.lineCap = "round";
  pen.lineJoin = "round";
  switch (which) {
    case "error":
      pen.strokeStyle = palette.fail;
      cross(pen, x, y, r * 0.75);
      break;
    case "retry":
      pen.strokeStyle = palette.warn;
      pen.beginPath();
      pen.arc(x, y, r * 0.8, -0.2 * Math.PI, 1.4 * Math.PI);
      pen.moveTo(x + r * 0.1, y - r * 1.1);
      pen.lineTo(x + r * 0.62, y - r * 0.55);
      pen.lineTo(x + r * 0.95, y - r * 1.15);
      pen.stroke();
      break;
    case "loop":
      pen.strokeStyle = palette.warn;
      pen.beginPath();
      pen.arc(x - r * 0.5, y, r * 0.5, 0, TURN);
      pen.moveTo(x + r, y);
      pen.arc(x + r * 0.5, y, r * 0.5, 0, TURN);
      pen.stroke();
      break;
    case "loss":
      pen.strokeStyle = palette.warn;
      pen.beginPath();
      pen.moveTo(x, y - r);
      pen.lineTo(x + r, y + r * 0.8);
      pen.lineTo(x - r, y + r * 0.8);
      pen.closePath();
      pen.stroke();
      break;
    case "checkpoint":
      pen.fillStyle = palette.accent;
      pen.beginPath();
      pen.moveTo(x - r * 0.7, y - r);
      pen.lineTo(x + r * 0.8, y - r * 0.4);
      pen.lineTo(x - r * 0.4, y + r * 0.1);
      pen.lineTo(x - r * 0.4, y + r);
      pen.lineTo(x - r * 0.7, y + r);
      pen.closePath();
      pen.fill();
      break;
    case "outcome":
      pen.fillStyle = palette.text;
      pen.fillRect(x - r * 0.7, y - r * 0.7, r * 1.4, r * 1.4);
      break;
    case "note":
      pen.fillStyle = palette.warn;
      pen.beginPath();
      pen.moveTo(x - r * 0.8, y - r);
      pen.lineTo(x + r * 0.3, y - r);
      pen.lineTo(x + r * 0.8, y - r * 0.5);
      pen.lineTo(x + r * 0.8, y + r);
      pen.lineTo(x - r * 0.8, y + r);
      pen.closePath();
      pen.fill();
      break;
    default:
      pen.strokeStyle = palette.muted;
      pen.strokeRect(x - r * 0.8, y - r * 0.6, r * 1.6, r * 1.2);
  }
}

/** A line of the console: dot, triangle, cross. */
export function consoleSign(pen: Pen, palette: Palette, level: number, x: number, y: number): void {
  if (level === 2) {
    pen.strokeStyle = palette.fail;
    pen.lineWidth = 1.8;
    cross(pen, x, y, 3.4);
  } else if (level === 1) {
    pen.fillStyle = palette.warn;
    pen.beginPath();
    pen.moveTo(x, y - 4);
    pen.lineTo(x + 4, y + 3.2);
    pen.lineTo(x - 4, y + 3.2);
    pen.closePath();
    pen.fill();
  } else {
    disc(pen, palette.muted, x, y, 2.4);
  }
}

export function diamond(pen: Pen, x: number, y: number, r: number): void {
  pen.moveTo(x, y - r * 1.15);
  pen.lineTo(x + r, y);
  pen.lineTo(x, y + r * 1.15);
  pen.lineTo(x - r, y);
  pen.closePath();
}

export function cross(pen: Pen, x: number, y: number, r: number): void {
  pen.beginPath();
  pen.moveTo(x - r, y - r);
  pen.lineTo(x + r, y + r);
  pen.moveTo(x + r, y - r);
  pen.lineTo(x - r, y + r);
  pen.stroke();
}

function disc(pen: Pen, colour: string, x: number, y: number, r: number): void {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.arc(x, y, r, 0, TURN);
  pen.fill();
}

function ring(pen: Pen, colour: string, x: number, y: number, r: number): void {
  pen.strokeStyle = colour;
  pen.beginPath();
  pen.arc(x, y, r, 0, TURN);
  pen.stroke();
}

function tick(pen: Pen, x: number, y: number, r: number): void {
  pen.beginPath();
  pen.moveTo(x - r * 0.45, y + r * 0.02);
  pen.lineTo(x - r * 0.08, y + r * 0.4);
  pen.lineTo(x + r * 0.5, y - r * 0.4);
  pen.stroke();
}
