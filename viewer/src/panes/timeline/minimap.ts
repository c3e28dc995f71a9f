/** The whole run in one strip: how much happened when, and where it failed or was denied. The window lies above it. */
import { type Projection, lowerBound, toT, toX } from "../../core/axis";
import { PERMISSIONS } from "../../core/types";
import { clusters, density } from "./columns";
import type { Pen } from "./glyphs";
import type { Palette } from "./palette";
import { Tone, type Tracks } from "./tracks";

export const MAP_HEIGHT = 24;
const COLUMN = 5;

export function paintMap(pen: Pen, palette: Palette, tracks: Tracks, whole: Projection, ratio: number): void {
  const { width } = whole;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, MAP_HEIGHT);
  pen.fillStyle = palette.raise;
  pen.beginPath();
  pen.roundRect(0, 0, width, MAP_HEIGHT, 5);
  pen.fill();
  const counts = density(tracks.pulse, whole, COLUMN);
  const most = counts.reduce((a, b) => Math.max(a, b), 1);
  pen.fillStyle = palette.event;
  pen.globalAlpha = palette.forced ? 1 : 0.75;
  pen.beginPath();
  counts.forEach((n, i) => {
    // By its root: a burst of thousands must not make the quiet parts invisible.
    if (n > 0)
      pen.rect(
        i * COLUMN + 1,
        MAP_HEIGHT - 2 - (2 + 15 * Math.sqrt(n / most)),
        COLUMN - 2,
        2 + 15 * Math.sqrt(n / most),
      );
  });
  pen.fill();
  pen.globalAlpha = 1;
  drawTrouble(pen, palette, tracks, whole);
  pen.strokeStyle = palette.edge;
  pen.lineWidth = 1;
  pen.setLineDash([2, 2]);
  pen.beginPath();
  whole.axis.from.forEach((from) => {
    const x = Math.round(toX(whole, from) + whole.breakPx / 2) + 0.5;
    pen.moveTo(x, 2);
    pen.lineTo(x, MAP_HEIGHT - 2);
  });
  if (whole.axis.from.length < width / 8) pen.stroke();
  pen.setLineDash([]);
}

/** A cross at the top for failures, a disc for denials: small, but never left out. */
function drawTrouble(pen: Pen, palette: Palette, tracks: Tracks, whole: Projection): void {
  pen.strokeStyle = palette.fail;
  pen.lineWidth = 1.6;
  pen.beginPath();
  for (const { track } of tracks.steps) {
    for (let i = nextFailed(track, 0); i < track.length;) {
      const x = toX(whole, track.t0[i] ?? 0);
      i = nextFailed(track, Math.max(i + 1, lowerBound(track.t0, toT(whole, x + 4))));
      pen.moveTo(x - 2, 2.5);
      pen.lineTo(x + 2, 6.5);
      pen.moveTo(x + 2, 2.5);
      pen.lineTo(x - 2, 6.5);
    }
  }
  pen.stroke();
  pen.fillStyle = palette.deny;
  const denied = tracks.permissions[PERMISSIONS.indexOf("denied")];
  if (!denied) return;
  for (const { x } of clusters(denied, whole, 4)) {
    pen.beginPath();
    pen.arc(x, 4.5, 2.6, 0, Math.PI * 2);
    pen.fill();
  }
}

/** The next failed entry from `from` on, by the running count: no walk over the good ones. */
function nextFailed(track: Tracks["steps"][number]["track"], from: number): number {
  const counts = track.counts[Tone.failed];
  if (!counts || from >= track.length) return track.length;
  const had = counts[from] ?? 0;
  if ((counts[track.length] ?? 0) === had) return track.length;
  let low = from,
    high = track.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((counts[middle + 1] ?? 0) > had) high = middle;
    else low = middle + 1;
  }
  return low;
}
