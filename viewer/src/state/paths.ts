/** Values that hold others, and the path to one of them as people write it: `orders[0].total`. */

export function isBox(value: unknown): value is Record<string, unknown> | unknown[] {
  return typeof value === "object" && value !== null;
}

export function pathOf(path: readonly (string | number)[]): string {
  return path
    .map((part, n) =>
      typeof part === "number"
        ? `[${part}]`
        : /^[\w-]+$/.test(part)
          ? n === 0
            ? part
            : `.${part}`
          : `[${JSON.stringify(part)}]`,
    )
    .join("");
}
