/** Notes: write one at the playhead, read all of them, change, take away, carry out. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import "../../style/notes.css";
import type { Annotation } from "../../core/types";
import { drawer, run, step, version } from "../../state/app";
import { runId } from "../../state/link";
import { seekRow } from "../../state/moves";
import { addNote, changeNote, download, editing, exported, removeNote, standing, unsaved } from "../../state/notes";
import { Icon } from "../icons";
import { Dialog } from "../shell/dialog";
import { stepNumber } from "../../state/numbers";

export function Notes(): JSX.Element | null {
  void version.value;
  const open = run.value;
  if (drawer.value !== "note" || open === null) return null;
  const notes = standing(open.annotations);
  return (
    <Dialog
      title="Notes"
      class="notes"
      onClose={close}
      aside={
        notes.length > 0 ? (
          <button
            type="button"
            class="button small"
            title="The notes as annotations.jsonl"
            onClick={() =>
              download(
                `annotations-${runId(open.recording.header.data).slice(-4)}.jsonl`,
                exported(open.annotations),
                "application/jsonl",
              )
            }
          >
            <Icon name="drop" /> export
          </button>
        ) : null
      }
    >
      <Form key={editing.value?.id ?? "new"} note={editing.value} />
      {notes.length === 0 ? (
        <p class="empty-line">No note yet. Notes stand beside the recording, outside its seal, and travel with it.</p>
      ) : (
        <ul class="note-list scroll">
          {notes.map((note) => (
            <li key={note.id}>
              <Entry note={note} />
            </li>
          ))}
        </ul>
      )}
      {unsaved.value && open.server === null ? (
        <p class="foot is-warn">
          <Icon name="warning" /> No server stands behind this page. Export the notes before you close it.
        </p>
      ) : null}
    </Dialog>
  );
}

function close(): void {
  drawer.value = "none";
  editing.value = null;
}

function Form({ note }: { note: Annotation | null }): JSX.Element {
  const [text, setText] = useState(note?.text ?? "");
  const [tag, setTag] = useState(note?.tag ?? "");
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    setText(note?.text ?? "");
    setTag(note?.tag ?? "");
  }, [note]);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      if (note === null) await addNote(text, tag);
      else await changeNote(note, text, tag);
      setText("");
      setTag("");
      setWrong("");
      editing.value = null;
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <label class="labelled">
        {note === null ? `At step ${stepNumber(step.value)}` : `Change the note at row ${note.seq}`}
        <textarea
          class="field"
          rows={3}
          value={text}
          data-first
          required
          maxLength={20_000}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void submit(event);
          }}
        />
      </label>
      <div class="buttons">
        <input
          class="field tag"
          value={tag}
          placeholder="tag"
          aria-label="Tag"
          maxLength={60}
          onInput={(event) => setTag(event.currentTarget.value)}
        />
        <span class="spacer" />
        {note === null ? null : (
          <button type="button" class="button" onClick={() => (editing.value = null)}>
            cancel
          </button>
        )}
        <button type="submit" class="button main" disabled={text.trim() === ""}>
          {note === null ? "add note" : "change note"}
        </button>
      </div>
      {wrong === "" ? null : (
        <p class="is-failed" role="alert">
          {wrong}
        </p>
      )}
    </form>
  );
}

function Entry({ note }: { note: Annotation }): JSX.Element {
  const [wrong, setWrong] = useState("");
  const at = Math.max(0, run.value?.outline.steps.of(note.seq) ?? 0);
  return (
    <article>
      <header>
        <button
          type="button"
          class="link"
          onClick={() => {
            seekRow(note.seq);
            close();
          }}
        >
          step {stepNumber(at)}
        </button>
        {note.tag ? <span class="pill">{note.tag}</span> : null}
        {note.who ? <span class="muted">{note.who}</span> : null}
        <span class="spacer" />
        <button
          type="button"
          class="button plain square small"
          aria-label="Change the note"
          onClick={() => (editing.value = note)}
        >
          <Icon name="note" />
        </button>
        <button
          type="button"
          class="button plain square small"
          aria-label="Take the note away"
          onClick={() =>
            void removeNote(note).catch((error: unknown) =>
              setWrong(error instanceof Error ? error.message : String(error)),
            )
          }
        >
          <Icon name="trash" />
        </button>
      </header>
      <p class="wrap">{note.text}</p>
      {wrong === "" ? null : (
        <p class="is-failed" role="alert">
          {wrong}
        </p>
      )}
    </article>
  );
}
