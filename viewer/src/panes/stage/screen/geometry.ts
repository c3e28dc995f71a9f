/**
 * From the agent's coordinates to the picture's: boxes come in CSS pixels, a screenshot has `scale` points for one.
 */
import type { ActedOn } from "../../../core/types";
import type { Box, Tree } from "../tree/tree";

/** What an observation/window row says; every field may be missing. */
export interface WindowFacts {
  url: string | null;
  title: string | null;
  width: number | null;
  height: number | null;
  scale: number | null;
}

export function readWindow(value: unknown): WindowFacts {
  const facts = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  const text = (key: string): string | null => (typeof facts[key] === "string" ? facts[key] : null);
  const length = (key: string): number | null => {
    const number = facts[key];
    return typeof number === "number" && Number.isFinite(number) && number > 0 ? number : null;
  };
  return {
    url: text("url"),
    title: text("title"),
    width: length("width"),
    height: length("height"),
    scale: length("scale"),
  };
}

/** Points of the picture for one CSS pixel: as the window says, else by its width, else by the tree's root, else 1. */
export function pictureScale(pictureWidth: number, window: WindowFacts | null, tree: Tree | null): number {
  if (window?.scale) return window.scale;
  if (window?.width) return pictureWidth / window.width;
  const root = tree?.roots[0]?.box;
  if (root && root[0] === 0 && root[2] > 0) return pictureWidth / root[2];
  return 1;
}

export interface Share {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** A box in percent of the picture, right however large that is drawn. Null where it is outside. */
export function share(box: Box, scale: number, width: number, height: number): Share | null {
  const left = Math.max(0, box[0] * scale);
  const top = Math.max(0, box[1] * scale);
  const right = Math.min(width, (box[0] + box[2]) * scale);
  const bottom = Math.min(height, (box[1] + box[3]) * scale);
  if (right <= left || bottom <= top) return null;
  return {
    left: (left / width) * 100,
    top: (top / height) * 100,
    width: ((right - left) / width) * 100,
    height: ((bottom - top) / height) * 100,
  };
}

/** Where the action was aimed, on a picture: the element's box first, its own box second, the point last. */
export function target(
  acted: ActedOn,
  nodeBox: Box | null,
  scale: number,
  width: number,
  height: number,
): { box: Share } | { point: { left: number; top: number } } | null {
  const box = nodeBox ?? acted.box;
  const placed = box === null ? null : share(box, scale, width, height);
  if (placed !== null) return { box: placed };
  if (acted.point === null) return null;
  const left = ((acted.point[0] * scale) / width) * 100;
  const top = ((acted.point[1] * scale) / height) * 100;
  return left >= 0 && left <= 100 && top >= 0 && top <= 100 ? { point: { left, top } } : null;
}
