/**
 * Opening whatever the user has: a dropped file, an address, a run of the server, what this very page carries.
 */
import { absolute, BlobBytes, UrlBytes } from "./bytes";
import { isObject, isText, type Json } from "./fields";
import { type Opened, openBundle } from "./recording-bundle";
import { Unreadable } from "./unreadable";

export type { Opened } from "./recording-bundle";

export function openFile(file: Blob, label: string): Promise<Opened> {
  return openBundle(new BlobBytes(file), label);
}

export async function openAddress(url: string): Promise<Opened> {
  const label = decodeURIComponent(new URL(absolute(url)).pathname.split("/").at(-1) ?? "") || url;
  return openBundle(await UrlBytes.open(url), label);
}

/** The bundle inside this page or in the folder beside it, or null where there is none. */
export async function openPage(): Promise<Opened | null> {
  const page = (await import("./inline")).pageBytes(document);
  return page && openBundle(page.bytes, page.label);
}

/**
 * A run of the server: `base` is the address of its routes, `r/<id>/`; `about` is what it answered to that already.
 * Rejects with the server's own words where it refuses.
 */
export async function openRun(base: string, about?: unknown): Promise<Opened> {
  const said = isObject(about) ? about : await askAbout(base);
  const label = isText(said.label) ? said.label : "run";
  if (said.kind === "bundle") return openBundle(await UrlBytes.open(`${base}bundle.skn`), label);
  const { openServed } = await import("./recording-served");
  const opened = await openServed(base, said.kind === "live" ? "live" : "directory", label, said.sealed === true);
  if (typeof said.expired === "number" && said.expired > 0) opened.integrity.expired = said.expired;
  return opened;
}

async function askAbout(base: string): Promise<Json> {
  let answer: Response;
  try {
    answer = await fetch(`${base}about`, { cache: "no-store" });
  } catch (error) {
    throw new Unreadable(
      "network",
      `the server does not answer: ${String(error)}`,
      "Is `worldline view` still running?",
    );
  }
  const said: unknown = await answer.json().catch(() => null);
  if (answer.ok && isObject(said) && isText(said.kind)) return said;
  const refused = isObject(said) ? said : {};
  throw new Unreadable(
    "network",
    isText(refused.what) ? refused.what : `the server answered ${answer.status}`,
    isText(refused.todo) ? refused.todo : "Is the run still in the store?",
  );
}
