/**
 * The element that an action was aimed at, in the tree that the agent had: by ref, by role and name, by place last.
 */
import type { ActedOn } from "../../../core/types";
import { walk, type Box, type Tree, type TreeNode } from "./tree";

type Aim = Pick<ActedOn, "ref" | "role" | "name" | "point">;

export function findActedOn(tree: Tree, aim: Aim): TreeNode | null {
  let named: TreeNode | null = null;
  let there: TreeNode | null = null;
  for (const { node } of walk(tree)) {
    if (aim.ref !== null && node.ref === aim.ref) return node;
    if (named === null && fits(node, aim)) named = node;
    if (aim.point !== null && node.box !== null && holds(node.box, aim.point)) {
      // The smallest box around the point; of equal ones the deepest, which comes last.
      if (there === null || area(node.box) <= area(there.box!)) there = node;
    }
  }
  return named ?? there;
}

function fits(node: TreeNode, aim: Aim): boolean {
  if (aim.role === null && aim.name === null) return false;
  return (aim.role === null || node.role === aim.role) && (aim.name === null || node.name === aim.name);
}

export function holds([x, y, width, height]: Box, [px, py]: [number, number]): boolean {
  return px >= x && py >= y && px <= x + width && py <= y + height;
}

function area([, , width, height]: Box): number {
  return width * height;
}
