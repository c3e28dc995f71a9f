"""What a scanner knew of a folder, from one process to the next: so a workspace is not read whole at each start.

    <store>/.snapshots/seen/<SHA-256 of the folder's path>.json

It is a hint: each file is believed only while its size, times, inode and mode are those that were noted, and the store
was not swept since. What cannot be read is as if it were not there, and whoever deletes it loses nothing but time.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from worldline.engine.substrates.seen import SeenFolder
from worldline.model.values import is_text
from worldline.store import layout
from worldline.store.snapshots import SnapshotStore

_VERSION = 1
_LARGEST = 256 << 20


class Remembered(msgspec.Struct, frozen=True):
    """What is kept of one folder."""

    version: int
    folder: str
    generation: int
    seen: SeenFolder


def remember(snapshots: SnapshotStore, folder: Path, seen: SeenFolder | None) -> None:
    """Keep what is known of a folder. It is a cache: what cannot be written is not kept."""
    if seen is None:
        return
    path = _place(snapshots, folder)
    with suppress(OSError, RecursionError):
        try:
            data = _encoded(snapshots, folder, seen)
        except UnicodeEncodeError:
            data = _encoded(snapshots, folder, _speakable(seen))
        layout.make_private(path.parent, shared=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        temporary.unlink(missing_ok=True)
        descriptor = layout.create(temporary)
        try:
            layout.write_all(descriptor, data)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)


def _encoded(snapshots: SnapshotStore, folder: Path, seen: SeenFolder) -> bytes:
    return msgspec.json.encode(Remembered(_VERSION, _name(folder), snapshots.generation, seen))


def _speakable(seen: SeenFolder) -> SeenFolder:
    """What has names that are UTF-8; what has others is read again."""
    files = {name: each for name, each in seen.files.items() if is_text(name)}
    folders = {name: _speakable(each) for name, each in seen.folders.items() if is_text(name)}
    return SeenFolder(seen.entry, files, folders)


def recall(snapshots: SnapshotStore, folder: Path) -> SeenFolder | None:
    """What was known of a folder; None where nothing is, or it may be wrong by now."""
    data = layout.read_bounded(_place(snapshots, folder), _LARGEST)
    if data is None or len(data) > _LARGEST:
        return None
    try:
        said = msgspec.json.decode(data, type=Remembered)
    except (msgspec.DecodeError, RecursionError):
        return None
    fits = said.version == _VERSION and said.folder == _name(folder) and said.generation == snapshots.generation
    return said.seen if fits else None


def forget(snapshots: SnapshotStore, folder: Path) -> None:
    """Keep nothing of a folder that went, or moved."""
    _place(snapshots, folder).unlink(missing_ok=True)


def _place(snapshots: SnapshotStore, folder: Path) -> Path:
    return snapshots.place / "seen" / f"{hashlib.sha256(_name(folder).encode()).hexdigest()}.json"


def _name(folder: Path) -> str:
    return os.fsencode(os.path.realpath(folder)).decode("utf-8", "backslashreplace")
