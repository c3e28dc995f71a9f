/**
 * The number that a step has for people, in the panel as in `worldline show`: the steps of a branch count on from where it
 * left its parent. Inside the panel a step is its place in the outline.
 */
import type { Outline } from "../core/types";
import { outline } from "./app";

export function stepNumber(place: number, of: Outline | null = outline.value): number {
  return place + (of?.base ?? 0);
}

/**
 * The place of the step with that number, as a link names it. A number before the branch began is none of its steps: links
 * of older pages named the place, and still lead there.
 */
export function placeOfNumber(number: number, of: Outline | null = outline.value): number {
  const place = number - (of?.base ?? 0);
  return place < 0 ? number : place;
}
