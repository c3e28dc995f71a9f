"""Changing what a bundle holds beside what was sealed: notes, the audit, media. Every other stored byte stays as it is.

A bundle is never changed in its place: a new file is written beside it, synced, and takes its name, so that a crash
leaves the old one or the new one. One at a time does this in a folder (its lock), with the file that stands there then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from worldline.errors import AnnotationRefused, Damaged
from worldline.store import layout
from worldline.store.bundle.container import DEFLATED, MEDIA, STORED, Entry, is_named, place_of
from worldline.store.bundle.container_writer import ContainerWriter, deflated
from worldline.store.bundle.packed import PackedRecording
from worldline.store.seal import alone

STEP = 1 << 20
BESIDE = (layout.ANNOTATIONS, layout.AUDIT, MEDIA)  # how the names of entries begin that may be written anew


@contextmanager
def changing(recording: PackedRecording) -> Iterator[PackedRecording]:
    """Hold the bundle's folder, and give the bundle as it stands there now. Raises `AnnotationRefused`."""
    if recording.inode is None:
        raise _refused(recording, "read-only", "it is read from a URL; download it first")
    path = Path(recording.source.name).resolve()  # where it is a link, what that leads to is changed
    try:
        if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
            raise _refused(recording, "read-only", "the file, or its folder, is read-only")
        with alone(path.parent):
            current = PackedRecording(str(path))
            if current.container.seal != recording.container.seal:
                raise _refused(recording, "replaced", "another bundle stands there now")
            yield current
    except FileNotFoundError as error:
        raise _refused(recording, "gone", "it is not there any more") from error
    except PermissionError as error:
        raise _refused(recording, "read-only", f"{error.filename}: {error.strerror}") from error


def rewrite(held: PackedRecording, entries: Mapping[str, Iterable[bytes] | None]) -> None:
    """Put a bundle in the place of `held` (given by `changing`) that has these entries, or for None has them no more.

    Raises `AnnotationRefused` for a bundle of an old format that has no place for one, `OSError` where it cannot be
    written, and `Damaged` where its directory does not lead to its bytes.
    """
    for name in entries:
        if not name.startswith(BESIDE) or not is_named(held.container.format, name):
            raise _refused(held, "format", f"a bundle of {held.container.format} has no place for {name}")
    path = Path(held.source.name)
    temporary = path.with_name(f".{path.name}.changing.tmp")
    temporary.unlink(missing_ok=True)  # of one that was killed
    kept = [entry for entry in held.container.entries if entry.name not in entries]
    fresh = [name for name, parts in entries.items() if parts is not None]
    try:
        with ContainerWriter(temporary) as writer:
            os.chmod(temporary, path.stat().st_mode & 0o7777)
            offsets = held.container.offsets()
            for entry in _in_order(kept, fresh):
                if isinstance(entry, Entry):
                    writer.copy(entry, _stored(held, entry, offsets[entry.name]))
                else:
                    _add(writer, entry, entries[entry] or ())
            writer.finish(held.container.seal, held.container.withheld, held.container.format)
        layout.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _in_order(kept: list[Entry], fresh: list[str]) -> Iterator[Entry | str]:
    """What was there in its order, and what comes new where its place is: behind what has the same."""
    waiting = sorted(fresh, key=lambda name: (place_of(name), name))
    for entry in kept:
        while waiting and place_of(waiting[0]) < place_of(entry.name):
            yield waiting.pop(0)
        yield entry
    yield from waiting


def _add(writer: ContainerWriter, name: str, parts: Iterable[bytes]) -> None:
    if name.startswith(MEDIA) and not name.endswith(".json"):  # compressed already
        writer.add(name, STORED, ((part, part) for part in parts))
    else:
        writer.add(name, DEFLATED, deflated(parts))


def _stored(held: PackedRecording, entry: Entry, begins: int) -> Iterator[bytes]:
    """An entry's header and stored bytes as they stand there, right or wrong: what is wrong stays to be seen."""
    at, end = begins - entry.header_size, begins + entry.stored
    while at < end:
        part = held.source.read(at, min(STEP, end - at))
        if not part:
            raise Damaged(f"{held.path}: {entry.name} ends early", file=str(held.path), offset=at)
        yield part
        at += len(part)


def _refused(recording: PackedRecording, why: str, detail: str) -> AnnotationRefused:
    return AnnotationRefused(f"nothing can be added to {recording.path}: {detail}", why=why, path=str(recording.path))
