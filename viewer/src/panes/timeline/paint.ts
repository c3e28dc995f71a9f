/**
 * Draws the lanes of a scene once. The playhead is not in it: it lies above, so that scrubbing draws nothing here.
 *
 * Trouble is told apart by shape: plain bars are set in from the lane's edge, failed ones fill it and carry a cross,
 * denied ones a bar, refused (4xx) ones are hatched, running ones are open on the right.
 */
import { drawBreaks, drawChance, drawTicks, line } from "./backdrop";
import type { Bar } from "./columns";
import { type Pen, consoleSign, cross, diamond, permission, sign } from "./glyphs";
import type { Lane } from "./lanes";
import type { Palette } from "./palette";
import { PERMISSION_ROW, type Scene } from "./scene";
import type { Stamps } from "./stamps";
import { Tone, type ToneCode } from "./tracks";

/** The words in a bar that is wide enough, and those in one that is not quite; null where there are none. */
export type Naming = (lane: Lane, entry: number) => { long: string; short: string } | null;

/** Words need so many pixels, else the short ones stand there. */
const LABEL_PX = 64;

export function paint(pen: Pen, stamps: Stamps, scene: Scene, naming: Naming): void {
  const { width } = scene.projection;
  const { palette, ratio } = stamps;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, scene.height);
  pen.textBaseline = "middle";
  for (const lane of scene.lanes) {
    if (lane.kind !== "ruler") line(pen, palette.hair, 0, width, lane.y + lane.height - 0.5);
  }
  for (const lane of scene.lanes) if (!ABOVE.has(lane.kind)) drawLane(pen, stamps, scene, lane, naming);
  drawBreaks(pen, palette, scene);
  for (const lane of scene.lanes) if (ABOVE.has(lane.kind)) drawLane(pen, stamps, scene, lane, naming);
  drawTicks(pen, palette, scene);
}

/** Signs at the edge of a folded gap lie above it: a gap hides no permission. */
const ABOVE: ReadonlySet<Lane["kind"]> = new Set(["permissions", "signs", "console", "chance"]);

function drawLane(pen: Pen, stamps: Stamps, scene: Scene, lane: Lane, naming: Naming): void {
  const { palette } = stamps;
  switch (lane.kind) {
    case "steps":
      return drawBars(pen, palette, scene.steps[lane.part] ?? [], lane, palette.event, 0.42, scene, naming);
    case "tools":
      return drawBars(pen, palette, scene.tools, lane, palette.accent, 0.46, scene, naming);
    case "network":
      return drawBars(pen, palette, scene.network, lane, palette.ok, 0.62, scene, null);
    case "decisions":
      return drawDecisions(pen, palette, scene, lane);
    case "permissions":
      return drawPermissions(pen, stamps, scene, lane);
    case "console":
      return drawConsole(pen, stamps, scene, lane);
    case "signs": {
      const y = lane.y + lane.height / 2;
      for (const placed of scene.signs) {
        stamps.put(pen, placed.sign, 5, placed.x, y, (on) => sign(on, palette, placed.sign, 0, 0, 4.6));
        count(pen, palette, placed.count, placed.x + 6, y);
      }
      return;
    }
    case "video": {
      pen.fillStyle = palette.event;
      for (const { x0, x1 } of scene.video)
        pen.fillRect(
          Math.max(x0, 0),
          lane.y + 3,
          Math.min(x1, scene.projection.width) - Math.max(x0, 0),
          lane.height - 7,
        );
      return;
    }
    case "chance":
      return drawChance(pen, palette, scene, lane);
    case "ruler":
      return;
  }
}

function drawBars(
  pen: Pen,
  palette: Palette,
  bars: readonly Bar[],
  lane: Lane,
  base: string,
  alpha: number,
  scene: Scene,
  naming: Naming | null,
): void {
  // A sub-agent's row is low, and its bars fill it: words have to fit in.
  const inset = lane.height < 16 && naming ? 1 : 3;
  const top = lane.y + inset,
    height = lane.height - 1 - inset * 2;
  const plain: Bar[] = [],
    rest: Bar[] = [];
  for (const bar of bars) (bar.tone === Tone.plain || bar.worst < bar.count ? plain : rest).push(bar);
  // With few colours the words in a bar need more of the ground.
  pen.globalAlpha = palette.forced ? (naming ? 0.25 : 0.7) : alpha;
  pen.fillStyle = base;
  boxes(pen, plain, scene.projection.width, top, height);
  pen.globalAlpha = 1;
  for (const bar of bars) {
    if (bar.tone !== Tone.plain) drawTone(pen, palette, bar, base, lane, scene.projection.width);
  }
  if (naming) drawNames(pen, palette, bars, lane, scene, naming);
}

/** A bar that is not plain. Of several in one only the root of the share that went wrong, from below: few are seen, too. */
function drawTone(pen: Pen, palette: Palette, bar: Bar, base: string, lane: Lane, width: number): void {
  const mixed = bar.worst < bar.count;
  const full = lane.height - 3;
  const height = mixed ? Math.max(4, full * Math.sqrt(bar.worst / bar.count)) : full,
    top = lane.y + 1 + full - height;
  const x0 = Math.max(bar.x0, -2),
    x1 = Math.max(Math.min(bar.x1, width + 2) - (bar.x1 - bar.x0 > 3 ? 1 : 0), x0 + 2);
  const middle = lane.y + lane.height / 2 - 0.5;
  const colour = colourOf(palette, bar.tone, base);
  pen.beginPath();
  if (bar.tone === Tone.running || bar.tone === Tone.note || bar.tone === Tone.unknown) {
    if (mixed) return;
    pen.strokeStyle = colour;
    pen.lineWidth = 1.3;
    if (bar.tone === Tone.unknown) pen.setLineDash([3, 2]);
    pen.moveTo(x1, lane.y + 3.5);
    pen.lineTo(x0 + 0.5, lane.y + 3.5);
    pen.lineTo(x0 + 0.5, lane.y + lane.height - 4.5);
    pen.lineTo(x1, lane.y + lane.height - 4.5);
    if (bar.tone !== Tone.running) pen.lineTo(x1, lane.y + 3.5);
    pen.stroke();
    pen.setLineDash([]);
    return;
  }
  if (bar.tone === Tone.refused) return hatch(pen, palette, colour, x0, x1, top + 1, height - 3);
  pen.fillStyle = colour;
  if (x1 - x0 > 6) (pen.roundRect(x0, top, x1 - x0, height, 3), pen.fill());
  else pen.fillRect(x0, top, x1 - x0, height);
  if (x1 - x0 < 11 || mixed) return;
  const at = Math.max(x0, 0) + 7;
  pen.strokeStyle = pen.fillStyle = palette.onSolid;
  pen.lineWidth = 1.8;
  if (bar.tone === Tone.denied) pen.fillRect(at - 3.5, middle - 1.1, 7, 2.2);
  else cross(pen, at, middle, 2.8);
}

function colourOf(palette: Palette, tone: ToneCode, base: string): string {
  return tone === Tone.failed
    ? palette.fail
    : tone === Tone.denied
      ? palette.deny
      : tone === Tone.refused
        ? palette.warn
        : tone === Tone.note
          ? palette.muted
          : base;
}

function hatch(pen: Pen, palette: Palette, colour: string, x0: number, x1: number, top: number, height: number): void {
  pen.save();
  pen.beginPath();
  pen.rect(x0, top, x1 - x0, height);
  pen.fillStyle = palette.panel;
  pen.fill();
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 1.6;
  pen.beginPath();
  for (let x = x0 - height; x < Math.min(x1, x0 + 2000); x += 4) {
    pen.moveTo(x, top + height);
    pen.lineTo(x + height, top);
  }
  pen.stroke();
  pen.strokeRect(x0 + 0.5, top + 0.5, Math.max(x1 - x0 - 1, 1), height - 1);
  pen.restore();
}

function drawNames(pen: Pen, palette: Palette, bars: readonly Bar[], lane: Lane, scene: Scene, naming: Naming): void {
  const track = lane.kind === "tools" ? scene.tracks.tools : scene.tracks.steps[lane.part]?.track;
  if (!track) return;
  pen.font = `600 10.5px ${palette.font}`;
  pen.textAlign = "left";
  for (const [at, bar] of bars.entries()) {
    const solid = bar.tone === Tone.failed || bar.tone === Tone.denied;
    // Tools of several sub-agents run at once: words end where the next bar begins on top of theirs.
    const from = Math.max(bar.x0, 0) + (solid ? 15 : 5),
      to = Math.min(bar.x1, bars[at + 1]?.x0 ?? Infinity, scene.projection.width) - 4;
    if (bar.count > 1 || to - from < 8) continue;
    const words = naming(lane, track.id[bar.first] ?? 0);
    if (words === null) continue;
    const room = to - from;
    const text =
      room >= LABEL_PX || pen.measureText(words.long).width <= room ? clipped(pen, words.long, room) : words.short;
    if (text === "" || pen.measureText(text).width > room) continue;
    pen.fillStyle = solid ? palette.onSolid : palette.text;
    pen.fillText(text, from, lane.y + lane.height / 2);
  }
}

function clipped(pen: Pen, words: string, room: number): string {
  let text = words.slice(0, 120);
  if (pen.measureText(text).width <= room) return text;
  const each = pen.measureText(text).width / text.length;
  text = text.slice(0, Math.max(0, Math.floor(room / each) - 1));
  while (text.length > 0 && pen.measureText(`${text}…`).width > room) text = text.slice(0, -1);
  return text === "" ? "" : `${text}…`;
}

function drawDecisions(pen: Pen, palette: Palette, scene: Scene, lane: Lane): void {
  const middle = lane.y + lane.height / 2 - 0.5;
  pen.fillStyle = palette.mind;
  pen.globalAlpha = palette.forced ? 1 : 0.4;
  boxes(pen, scene.decisions, scene.projection.width, middle - 1.5, 3);
  pen.globalAlpha = 1;
  pen.beginPath();
  let before = -Infinity;
  for (const bar of scene.decisions) {
    // Nearer than this they touch; the thin bars tell how many there are.
    if (bar.x0 < -6 || bar.x0 - before < 5 || bar.tone === Tone.failed) continue;
    before = bar.x0;
    diamond(pen, bar.x0, middle, 4.6);
  }
  pen.fill();
  for (const bar of scene.decisions) {
    if (bar.tone !== Tone.failed) continue;
    // A call that failed: a hollow diamond with a cross in it.
    const x = Math.max(bar.x0, 3);
    pen.strokeStyle = palette.fail;
    pen.lineWidth = 1.5;
    pen.beginPath();
    diamond(pen, x, middle, 5.4);
    pen.stroke();
    cross(pen, x, middle, 1.9);
  }
}

function drawPermissions(pen: Pen, stamps: Stamps, scene: Scene, lane: Lane): void {
  const middle = lane.y + lane.height / 2 - 0.5;
  for (let i = scene.permissions.length - 1; i >= 0; i--) {
    const placed = scene.permissions[i];
    if (!placed) continue;
    const x = placed.x + placed.aside,
      y = middle + placed.row * PERMISSION_ROW;
    stamps.put(pen, `permission ${placed.word}`, placed.r, x, y, (on) =>
      permission(on, stamps.palette, placed.word, 0, 0, placed.r),
    );
    if (placed.r > 3) count(pen, stamps.palette, placed.count, x + placed.r + 1, y);
  }
}

function drawConsole(pen: Pen, stamps: Stamps, scene: Scene, lane: Lane): void {
  const y = lane.y + lane.height / 2 - 0.5;
  for (const { level, clusters } of scene.console) {
    for (const { x } of clusters)
      stamps.put(pen, `console ${level}`, 4.5, x, y, (on) => consoleSign(on, stamps.palette, level, 0, 0));
  }
}

/** Filled bars. Narrow ones that touch are one: a dense lane is a few rectangles, not a thousand. */
function boxes(pen: Pen, bars: readonly Bar[], width: number, top: number, height: number): void {
  let from = 0,
    to = -Infinity;
  const flush = (): void => {
    if (to > from) pen.fillRect(from, top, to - from, height);
    to = -Infinity;
  };
  for (const bar of bars) {
    const x0 = Math.max(bar.x0, -2);
    const gap = bar.x1 - bar.x0 > 3 ? 1 : 0;
    const x1 = Math.max(Math.min(bar.x1, width + 2) - gap, x0 + 1);
    if (x1 - x0 > 6) {
      pen.beginPath();
      pen.roundRect(x0, top, x1 - x0, height, Math.min(3, height / 2));
      pen.fill();
    } else if (x0 <= to + 0.5) {
      to = Math.max(to, x1);
    } else {
      flush();
      from = x0;
      to = x1;
    }
  }
  flush();
}

function count(pen: Pen, palette: Palette, n: number, x: number, y: number): void {
  if (n < 2) return;
  pen.font = `600 9.5px ${palette.font}`;
  pen.textAlign = "left";
  pen.fillStyle = palette.text;
  pen.fillText(n > 9999 ? `${Math.round(n / 1000)}k` : String(n), x, y);
}
