"""Where the recorder of a running attempt is reached by its owner's other programs: `<store>/.live/<attempt>.json`.

    {"format":"worldline-live/1","run":"run_...","attempt":"ainst_...","pid":4242,"url":"http://127.0.0.1:PORT/<token>/",
     "answer":"<token>"}

It belongs to its owner alone (0600 in a folder of 0700) and holds what opens the recorder's door and lets its holder
answer for a person; neither ever stands in a log, and no copy of a run takes it along. It means something only as long
as the attempt's writer holds its lock: what a crash leaves is not believed, and goes when the next recording begins.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from worldline.errors import WorldlineError
from worldline.model.events import encode_json
from worldline.model.ids import is_id
from worldline.store import layout
from worldline.store.recording import Recording

FOLDER = ".live"
FORMAT = "worldline-live/1"
_MOST = 4096  # bytes
_TRIES = 100


class Rendezvous(msgspec.Struct, frozen=True, kw_only=True):
    """How a live recorder is reached: its door's `url` and the word `answer` that lets its holder answer requests."""

    format: str = FORMAT
    run: str
    attempt: str
    pid: int
    url: str
    answer: str


def announce(store: Path, rendezvous: Rendezvous) -> None:
    """Say how the recorder is reached, and sweep what dead ones left. Raises `OSError` where the store is not ours."""
    _sweep(store)
    draft = store / FOLDER / f".{rendezvous.attempt}.tmp"
    descriptor = _created(draft)
    try:
        layout.write_all(descriptor, encode_json(rendezvous) + b"\n")
    finally:
        os.close(descriptor)
    os.replace(draft, draft.with_name(f"{rendezvous.attempt}.json"))


def _created(draft: Path) -> int:
    """A new draft in the folder, which another recorder that ends may remove in this moment, since it is empty."""
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            draft.parent.mkdir(0o700)
            draft.parent.chmod(0o700)
        with suppress(FileNotFoundError):
            return layout.create(draft)
    return layout.create(draft)


def withdraw(store: Path, attempt: str) -> None:
    """The recorder is reached no more. The folder goes with its last file."""
    with suppress(OSError):  # gone already, or the store is: either way nobody finds it there
        (store / FOLDER / f"{attempt}.json").unlink()
    with suppress(OSError):  # others are at work
        (store / FOLDER).rmdir()


def rendezvous_of(recording: Recording) -> Rendezvous | None:
    """How the recorder of an attempt is reached; None where none is at work, or does not say."""
    if not recording.live:
        return None
    found = _read(recording.run_directory.parent / FOLDER / f"{recording.attempt_id}.json")
    return found if found is not None and found.attempt == recording.attempt_id else None


def announced(store: Path) -> list[Rendezvous]:
    """All that stand there, of dead recorders, too."""
    folder = store / FOLDER
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [found for name in names if name.endswith(".json") and (found := _read(folder / name)) is not None]


def _read(path: Path) -> Rendezvous | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if state.st_uid != os.geteuid() or state.st_mode & 0o077:
                return None
            found = msgspec.json.decode(file.read(_MOST), type=Rendezvous)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.format == FORMAT and is_id(found.run, "run") and is_id(found.attempt, "ainst") else None


def _sweep(store: Path) -> None:
    for found in announced(store):
        attempt = store / found.run / layout.ATTEMPTS / found.attempt
        if not (attempt.is_dir() and _held(attempt)):
            withdraw(store, found.attempt)


def _held(attempt: Path) -> bool:
    try:
        return Recording(attempt).live
    except WorldlineError:  # in quarantine, or no recording any more
        return False
