/**
 * Parts of the app that are needed seldom (terminal player, DOM replay). They stand alone: nothing of the app is in them.
 *
 * Each is `src/lazy/<name>.ts`. The built page carries it deflated; the first use inflates it and imports it from memory.
 * What shares the app's state is imported with `import()`, and becomes a part in the same way.
 */
const asked: { [name: string]: Promise<unknown> | undefined } = {};

interface Page {
  /** `tools/boot.js` gives it. */
  __part?: (name: string) => Promise<unknown>;
  __worker?: string;
}

const page = globalThis as Page;

/** The exports of `src/lazy/<name>.ts`: `const { play } = await lazy<typeof import("../lazy/terminal")>("terminal")`. */
export function lazy<T>(name: string): Promise<T> {
  return (asked[name] ??= load(name)) as Promise<T>;
}

async function load(name: string): Promise<unknown> {
  // By a variable, so that the bundler does not follow: in the built page there is no such file to request.
  const file = `/src/lazy/${name}.ts`;
  if (import.meta.env.DEV) return import(/* @vite-ignore */ file);
  if (!page.__part) throw new Error(`the page has no part ${name}`);
  return page.__part(`lazy-${name}`);
}

/** The address of the worker's code. */
export function workerAddress(): string {
  return page.__worker ?? "/src/core/worker.ts";
}
