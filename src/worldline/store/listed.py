"""What a store's list said last, kept in `<store>/.catalog`, so that listing many runs costs a few stats for each.

It is derived: it may be deleted at any time, and what is damaged in it is as if it were not there. A line is believed
only where nothing that it depends on has changed: the run's directory (what is published or contained), the manifest
of the attempt that published, the published result, each by its inode and the time of its last change, which nobody can
set. Only runs that are sealed and published are kept: whether a writer is alive is never remembered, and further
attempts are no matter.

A file system's clock ticks. What changed just before a line was made might change again in the same tick, unseen; such
a run is kept by a later list.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from worldline.model.events import encode_json
from worldline.store import layout
from worldline.store.forget.quarantine import CONTAINED
from worldline.store.recording import Recording
from worldline.store.seal import alone

CATALOG = ".catalog"
FACETS = ".facets"  # what the panel's list says besides (`store.facets`)
WORTH = 16  # runs that are not in it yet: below that, reading them costs less than writing it anew
_FORMAT = b"worldline-catalog/1 "
_MOST = 64 << 20  # bytes
T = TypeVar("T")
_TICK, _COARSE_TICK = 100_000_000, 4_000_000_000  # ns: more than a clock's, and one that counts in seconds


class Entry(msgspec.Struct, frozen=True):
    """One run in a list. `started` is Unix seconds, `seconds` the run's length; both None where unknown."""

    run: str
    path: str
    task: str | None
    disposition: str
    outcome: str | None
    steps: int | None
    started: float | None
    seconds: float | None
    session: str | None


class _Line(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a run: by which attempt and result, their stamps, and what its entry says."""

    attempt: str
    result: str
    stamps: list[int]
    task: str | None
    disposition: str
    outcome: str | None
    steps: int | None
    started: float | None
    seconds: float | None
    session: str | None


class Listed:
    """The lines of a store. `entry` gives what still holds; what was read anew is given to `keep`, then `save` it."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._root = str(store.absolute())
        self._lines = read_cache(store / CATALOG, _FORMAT, _Line)
        self._held: dict[str, _Line] = {}
        self._fresh = False
        self._before: int | None = None
        self._draft = store / f"{CATALOG}.{os.getpid()}.{threading.get_ident()}.tmp"

    def entry(self, run: str) -> Entry | None:
        """What was said of a run, where nothing has changed since; else None."""
        line = self._lines.get(run)
        if line is None or not self._holds(run, line):
            return None
        self._held[run] = line
        return Entry(
            run,
            f"{self._root}/{run}/{line.result}",
            line.task,
            line.disposition,
            line.outcome,
            line.steps,
            line.started,
            line.seconds,
            line.session,
        )

    def begin(self, missing: int) -> None:
        """Before the runs without an entry are read: take the file system's time where they will be worth keeping."""
        if missing < WORTH and len(self._held) == len(self._lines):
            return
        with suppress(OSError):  # a store that cannot be written to is read each time
            self._before = settled(self._draft)

    def keep(self, entry: Entry, recording: Recording) -> None:
        """Keep the entry of a run, read since `begin`, where all that it depends on can be told by its stamps."""
        result = os.path.basename(entry.path)  # of what is published; else the entry's path is the run's
        if self._before is None or recording.manifest is None or result == entry.run:
            return
        said = (entry.task, entry.disposition, entry.outcome, entry.steps, entry.started, entry.seconds, entry.session)
        try:
            stamps = stamps_of(f"{self._root}/{entry.run}", recording.attempt_id, result)
            own = os.stat(recording.attempt / layout.RESULT).st_ino
        except OSError:  # it is gone meanwhile
            return
        contained = os.path.lexists(recording.run_directory / CONTAINED)  # its records may grow, with no stamp here
        # In a copied store the result is two files, and one of them has no stamp.
        if stamps[-2] == own and max(stamps[1::2]) < self._before and not contained:
            self._held[entry.run] = _Line(recording.attempt_id, result, stamps, *said)
            self._fresh = True

    def save(self) -> None:
        """Write what holds, where that is other than what stands there."""
        if self._before is None:
            return
        try:
            if self._fresh or len(self._held) < len(self._lines):
                self._write()
        except OSError:  # full, or not ours: it is derived, and read anew next time
            return
        finally:
            self._draft.unlink(missing_ok=True)

    def _write(self) -> None:
        with alone(self._store):  # who forgets a run waits, or has changed it before
            lines = {run: line for run, line in self._held.items() if self._holds(run, line)}
            write_cache(self._draft, self._store / CATALOG, _FORMAT, lines)

    def _holds(self, run: str, line: _Line) -> bool:
        try:
            return stamps_of(f"{self._root}/{run}", line.attempt, line.result) == line.stamps
        except (OSError, ValueError):  # gone; a name that no file can have
            return False


def forget(stores: Iterable[Path]) -> None:
    """Forget what was listed of stores: a run has left, and its task and outcome must not stay behind it."""
    for store in stores:
        if store.is_dir():
            with alone(store):
                (store / CATALOG).unlink(missing_ok=True)
                (store / FACETS).unlink(missing_ok=True)


def settled(draft: Path) -> int:
    """Create a draft, and say before which moment of the file system's clock (ns) nothing changes any more unseen."""
    descriptor = layout.create(draft)
    state = os.fstat(descriptor)
    os.close(descriptor)
    coarse = state.st_ctime_ns % 1_000_000 == 0
    return state.st_ctime_ns - (_COARSE_TICK if coarse else _TICK)


def write_cache(draft: Path, path: Path, head: bytes, lines: Mapping[str, Any]) -> None:
    """Write what was derived of runs into a draft that is there, and give it its name. Raises `OSError`."""
    data = encode_json(lines)
    descriptor = os.open(draft, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        layout.write_all(descriptor, head + b"%08x\n" % zlib.crc32(data) + data)
    finally:
        os.close(descriptor)
    os.replace(draft, path)


def stamps_of(run: str, attempt: str, result: str) -> list[int]:
    """Inode and last change of all that the entry of a published run depends on. Raises `OSError`."""
    stat = os.stat
    a, b, c = stat(run), stat(f"{run}/trajectory/attempts/{attempt}/{layout.MANIFEST}"), stat(f"{run}/{result}")
    return [a.st_ino, a.st_ctime_ns, b.st_ino, b.st_ctime_ns, c.st_ino, c.st_ctime_ns]


def read_cache(path: Path, begin: bytes, kind: type[T]) -> dict[str, T]:
    """What was derived of runs, by their ids; nothing where it is missing, not ours, or not what was written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if os.fstat(descriptor).st_uid != os.geteuid():
                return {}
            data = file.read(_MOST)
    except OSError:
        return {}
    head, _, lines = data.partition(b"\n")
    if head != begin + b"%08x" % zlib.crc32(lines):
        return {}
    try:
        found: dict[str, T] = msgspec.json.decode(lines, type=dict[str, kind])  # type: ignore[valid-type]
        return found
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
