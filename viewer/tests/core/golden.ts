/** The golden files of every version of the format, opened in place. */
import { openAsBlob, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { openFile, type Opened } from "../../src/core/open";

export const GOLDEN = resolve(import.meta.dirname, "../../../tests/golden");

/** Bundles of a folder, as `v1/short.skn`. */
export function bundles(folder: string): string[] {
  return readdirSync(join(GOLDEN, folder))
    .filter((name) => name.endsWith(".skn"))
    .map((name) => `${folder}/${name}`);
}

export async function opened(name: string): Promise<Opened> {
  return openFile(await openAsBlob(join(GOLDEN, name)), name);
}
