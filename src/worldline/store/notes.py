"""What people write beside a recording: notes to its rows (`annotations.jsonl`), and who looked behind its masks
(`audit.jsonl`). Both stand outside the seal, in an attempt's directory or in a bundle, and are only ever added to.

    {"n":0,"when":<Unix ns>,"attempt":"ainst_...","id":"a0","seq":412,"at":"step:9","who":"...","tag":"...",
     "text":"...","h":"<64 hex>"}
    {"n":1,"when":<Unix ns>,"attempt":"ainst_...","id":"a0","removed":true,"h":"<64 hex>"}
    {"n":0,"when":<Unix ns>,"attempt":"ainst_...","what":"reveal","scope":"step:9","seq":412,"reason":"...","h":"..."}

Each is a chain of its own (`store.chained`), so that no line is changed, moved or taken out of the middle unnoticed; a
line names its attempt, so that none of another run passes. What a crash cut off counts for nothing, and the next line
takes its place. Nothing here is authentic: who can write the file can write it anew.
"""

# No `from __future__ import annotations` here: `annotations` is a word of this module.
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from worldline.errors import AnnotationRefused, Damaged, UsageError
from worldline.store import layout
from worldline.store.bundle.packed import PackedRecording
from worldline.store.bundle.rewrite import changing, rewrite
from worldline.store.forget.chained import append, chain
from worldline.store.note_lines import MOST_BYTES, Annotation, Audit, Lines, read_lines, standing
from worldline.store.recording import Recording
from worldline.store.seal import alone

MOST_TEXT = 16_000  # characters of a note
MOST_WORDS = 200  # characters of all that is shorter: a place, a name, a tag, a scope
MOST_REASON = 2_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def annotate(
    recording: Recording, *, now_ns: int, seq: int, at: str, text: str, who: str | None = None, tag: str | None = None
) -> dict[str, Any]:
    """Add a note to row `seq`; `at` is the place as people name it (`step:9`), `now_ns` Unix ns. Returns its line.

    The recording may be live, sealed or a bundle; of a bundle nothing is written anew but this, the audit and the
    container, in a new file that takes its place. Raises `UsageError` for what no note can say or no row can be, and
    `AnnotationRefused` where nothing can be added: a URL, a read-only place, a file that is not what was written.
    """
    said = {
        "seq": _row(recording, seq),
        "at": _word("at", at),
        "who": _word("who", who),
        "tag": _word("tag", tag),
        "text": _text("text", text, MOST_TEXT),
    }

    def line(before: Lines, n: int, attempt: str) -> Annotation:
        return Annotation(n, now_ns, attempt, f"a{n}", **said)  # type: ignore[arg-type]

    return _add(recording, layout.ANNOTATIONS, line)


def remove(recording: Recording, id: str, *, now_ns: int) -> dict[str, Any]:  # noqa: A002 the line's own word
    """Say that the note `id` counts no more; its line stays. Returns the line. Raises as `annotate` does."""

    def line(before: Lines, n: int, attempt: str) -> Annotation:
        if id not in (note.id for note in standing(before.good)):
            raise UsageError(
                f"no note {id!r} stands in {recording.path}; `worldline annotate --list` shows them", id=id
            )
        return Annotation(n, now_ns, attempt, id, removed=True)

    return _add(recording, layout.ANNOTATIONS, line)


def audit(
    recording: Recording,
    what: str,
    scope: str,
    seq: int | None,
    reason: str | None,
    *,
    now_ns: int,
    who: str | None = None,
) -> dict[str, Any]:
    """Write down that somebody looked behind a mask. Returns the line. Raises as `annotate` does."""
    said = {
        "seq": UNSET if seq is None else _row(recording, seq),
        "who": _word("who", who),
        "reason": UNSET if reason is None else _text("reason", reason, MOST_REASON),
    }
    what, scope = str(_word("what", what)), str(_word("scope", scope))
    return _add(recording, layout.AUDIT, lambda before, n, attempt: Audit(n, now_ns, attempt, what, scope, **said))  # type: ignore[arg-type]


def annotations(recording: Recording) -> list[dict[str, Any]]:
    """The notes that stand, in the order in which they were written: the fields of their lines.

    Read anew each time, also of a bundle that got another file since it was opened. What does not chain is left out.
    """
    return [msgspec.to_builtins(note) for note in standing(lines_of(recording, layout.ANNOTATIONS).good)]


def audits(recording: Recording) -> list[dict[str, Any]]:
    """The lines of the audit, in their order."""
    return [msgspec.to_builtins(line) for line in lines_of(recording, layout.AUDIT).good]


def lines_of(recording: Recording, name: str) -> Lines:
    """The lines of `annotations.jsonl` or `audit.jsonl` as they stand there now."""
    return read_lines(stored(recording, name), name, _attempt_of(recording))


def stored(recording: Recording, name: str) -> bytes:
    """The bytes of the file or entry, as they stand there now; none where there is none."""
    if isinstance(recording, PackedRecording):
        return _entry_of(_current(recording), name)
    return _file_of(recording.attempt / name)


def _add(recording: Recording, name: str, make: Any) -> dict[str, Any]:
    """Add the line that `make` gives for the lines before it, its number and the attempt."""
    with _held(recording) as held:
        data = _entry_of(held, name) if isinstance(held, PackedRecording) else _file_of(held.attempt / name)
        before = read_lines(data, name, _attempt_of(held))
        if before.problems and before.problems[0].kind != "torn":
            problem = before.problems[0]
            why = f"{problem.where}: {problem.detail}; move it aside, nothing is added to what was changed"
            raise AnnotationRefused(f"{held.path}: {why}", path=str(held.path), why="damaged")
        record = make(before, len(before.good), _attempt_of(held))
        line, _ = chain(record, before.head)
        if before.size + len(line) > MOST_BYTES:
            raise AnnotationRefused(f"{held.path}: {name} is full", path=str(held.path), why="full")
        if isinstance(held, PackedRecording):
            rewrite(held, {name: [data[: before.size], line]})
        else:
            append(held.attempt / name, before.size, [line])
            _mend(held, next(other for other in layout.BESIDE if other != name))
    said: dict[str, Any] = msgspec.to_builtins(record)
    return said


def _mend(held: Recording, name: str) -> None:
    """Cut off what a crash left of a line in the other file: a reader counts it for nothing, but reports it."""
    lines = read_lines(_file_of(held.attempt / name), name, _attempt_of(held))
    if [problem.kind for problem in lines.problems] == ["torn"]:
        append(held.attempt / name, lines.size, [])


def _attempt_of(recording: Recording) -> str:
    """The attempt's id: as sealed, else by the name of its directory."""
    return recording.manifest.attempt if recording.manifest is not None else recording.attempt_id


@contextmanager
def _held(recording: Recording) -> Iterator[Recording]:
    """The recording, alone: of a bundle the file that stands there now. Raises `AnnotationRefused`."""
    if isinstance(recording, PackedRecording):
        with changing(recording) as current:
            yield current
        return
    try:
        with alone(recording.attempt.parent):
            if not recording.attempt.is_dir():
                raise AnnotationRefused(f"{recording.attempt} is not there any more", why="gone")
            yield recording
    except FileNotFoundError as error:
        raise AnnotationRefused(f"{recording.attempt} is not there any more", why="gone") from error
    except PermissionError as error:
        said = f"{error.filename or recording.attempt}: {error.strerror}"
        raise AnnotationRefused(f"nothing can be added to {recording.path}: {said}", why="read-only") from error


def _current(recording: PackedRecording) -> PackedRecording:
    """The bundle whose file stands there now; of a URL the same."""
    path = Path(recording.source.name)
    if recording.inode is None or not path.is_file():
        return recording
    state = path.stat()
    return recording if (state.st_dev, state.st_ino) == recording.inode else PackedRecording(str(path))


def _entry_of(recording: PackedRecording, name: str) -> bytes:
    """The content of an entry; none where there is none. Raises `Damaged`."""
    entry = recording.entries.get(name)
    if entry is None:
        return b""
    if entry.size > MOST_BYTES:
        raise Damaged(f"{recording.path}: {name} of {entry.size:,} bytes", file=str(recording.path), entry=name)
    return b"".join(recording.content_of(entry))


def _file_of(path: Path) -> bytes:
    """The bytes of a file, one more than there may be at most; none where there is none. Raises `Damaged`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:  # a link, a folder
        raise Damaged(f"{path} is no file that can be read: {error.strerror}", file=str(path), offset=0) from error


def _row(recording: Recording, seq: int) -> int:
    """`seq`, if the recording has such a row. Raises `UsageError`."""
    manifest = recording.manifest
    there = 0 <= seq < manifest.rows if manifest is not None else seq >= 0 and recording.event(seq) is not None
    if not there:
        raise UsageError(f"{recording.path} has no row {seq:,}", seq=seq)
    return seq


def _word(name: str, value: str | None) -> str | UnsetType:
    """A short text on one line; UNSET for none. Raises `UsageError`."""
    if value is None:
        return UNSET
    if _CONTROL.search(value):
        raise UsageError(f"{name} has a control character", name=name)
    return _text(name, value, MOST_WORDS)


def _text(name: str, value: str, most: int) -> str:
    """A text that a line can carry, a marker in the place of every key of a known shape. Raises `UsageError`."""
    if not value.strip():
        raise UsageError(f"{name} is empty", name=name)
    if len(value) > most:
        raise UsageError(f"{name} has {len(value):,} characters, at most {most:,} are kept", name=name)
    try:
        data = value.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"{name} is no text that can be written as UTF-8", name=name) from None
    from worldline.store.secrets.shapes import hits  # its patterns cost more time than reading has
    from worldline.store.secrets.vault import marker

    for hit in reversed(hits(data)):
        data = data[: hit.start] + marker(hit.label).encode() + data[hit.end :]
    return data.decode("utf-8")
