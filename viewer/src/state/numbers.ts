/**
 * The number that a step has for people, in the panel as in `worldline show`: the steps of a branch count on from where it
 * left its parent. Inside the panel a step is its place in the outline.
 */
import type { Outline } from "../core/types";
import { outline } from "./app";

export function stepNumber(place: number, of: Outline | null = outline.value): number {
  return place + (of?.base ?? 0);
}
