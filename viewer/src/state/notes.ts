/**
 * Notes at rows of the run: written through the server into `annotations.jsonl`, or kept in this page and exported.
 *
 * A note is one line and never changes. A changed note is a new one, and a line that takes the old one away.
 */
import { signal } from "@preact/signals";
import type { Annotation } from "../core/types";
import { run, step, version } from "./app";
import { post } from "./server";

/** Whether this page holds notes that no file has. */
export const unsaved = signal(false);
/** The note that is being changed; null for a new one. */
export const editing = signal<Annotation | null>(null);

/** The notes that stand, in the order of their rows. */
export function standing(all: readonly Annotation[]): Annotation[] {
  const last = new Map<string, Annotation>();
  for (const note of all) if (!last.get(note.id)?.removed) last.set(note.id, note);
  return [...last.values()].filter((note) => !note.removed).sort((a, b) => a.seq - b.seq);
}

/** At the row `seq`, or at the step under the playhead. */
export async function addNote(text: string, tag: string, seq?: number): Promise<void> {
  const open = run.value;
  if (open === null) return;
  if (text.trim() === "") throw new Error("A note needs a text.");
  const { steps } = open.outline;
  const row = seq ?? (step.value < steps.length ? steps.seq(step.value) : 0);
  const note: Omit<Annotation, "id"> = { seq: row, at: `step:${Math.max(0, steps.of(row))}`, text: text.trim() };
  if (tag.trim() !== "") note.tag = tag.trim();
  if (open.server === null) return keep({ ...note, id: `note_${crypto.randomUUID().replaceAll("-", "")}` });
  keep(await post<Annotation>(`${open.server}annotations`, note));
}

export async function changeNote(old: Annotation, text: string, tag: string): Promise<void> {
  await addNote(text, tag, old.seq);
  await removeNote(old);
}

export async function removeNote(note: Annotation): Promise<void> {
  const server = run.value?.server ?? null;
  if (server !== null) await post(`${server}annotations`, { id: note.id, removed: true });
  keep({ ...note, removed: true });
}

/** The notes that stand, one line each. */
export function exported(all: readonly Annotation[]): string {
  return standing(all)
    .map((note) => `${JSON.stringify(note)}\n`)
    .join("");
}

/** Hands the text to the browser as a file. */
export function download(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function keep(line: Annotation): void {
  const open = run.value;
  if (open === null) return;
  if (open.server === null) unsaved.value = true;
  open.annotations = [...open.annotations, line];
  version.value++;
}
