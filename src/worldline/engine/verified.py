"""What was verified whole in this process, and is still the same: an ancestor of many forks is read whole once.

A recording is known again by every file and folder of its attempt and by what its run published: name, mode, size,
inode and the times of the last write and of the last change, which nobody can set. One that was touched just before it
was read might change again within the same tick of the clock, unseen: it is read again. Other processes are told
nothing: what stands on the disk beside a recording could be written by whoever edits it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from worldline.engine import clock
from worldline.store.recording import Recording

MOST = 16_384  # recordings that are remembered: more than a lineage may have
TICK, COARSE_TICK = 100_000_000, 4_000_000_000  # ns: more than one of a file system's clock, and of one in seconds


class Stamp(NamedTuple):
    """By what a recording is known again, and whether a later change of it would show."""

    digest: bytes
    settled: bool


class Verified:
    """The recordings that verified, the last `MOST` of them. Safe from several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[bytes, dict[str, int]]] = OrderedDict()
        self._lock = Lock()

    def holds(self, recording: Recording) -> bool:
        """Whether it verified in this process and nothing of it has changed since."""
        return self.unread(recording) is not None

    def unread(self, recording: Recording) -> dict[str, int] | None:
        """What was counted when it verified in this process; None where it did not, or has changed since."""
        place = str(recording.attempt)
        with self._lock:
            known = self._known.get(place)
        if known is None or (now := stamp_of(recording)) is None or now.digest != known[0]:
            return None
        return known[1]

    def add(self, recording: Recording, before: Stamp | None, unread: dict[str, int]) -> None:
        """It verified; `before` was its stamp when that began. Where it changed meanwhile nothing is remembered.

        `unread` counts the answers of models in it that nobody could read.
        """
        if before is None or not before.settled or stamp_of(recording) != before:
            return
        with self._lock:
            self._known[str(recording.attempt)] = before.digest, unread
            self._known.move_to_end(str(recording.attempt))
            while len(self._known) > MOST:
                self._known.popitem(last=False)


VERIFIED = Verified()


def stamp_of(recording: Recording) -> Stamp | None:
    """The stamp of a recording; None where it is being changed."""
    lines, latest, coarse = list[bytes](), 0, True
    waiting, now = [os.fsencode(recording.attempt)], clock.wall_ns()
    try:
        found = [(os.fsencode(recording.run_directory), os.stat(recording.run_directory))]
        found += _listed(os.fsencode(recording.run_directory), waiting=None)
        while waiting:
            found += _listed(waiting.pop(), waiting)
    except OSError:
        return None
    for path, state in found:
        latest = max(latest, state.st_mtime_ns, state.st_ctime_ns)
        coarse = coarse and state.st_ctime_ns % 1_000_000 == 0
        numbers = (state.st_mode, state.st_size, state.st_ino, state.st_dev, state.st_mtime_ns, state.st_ctime_ns)
        lines.append(b"%s %d %d %d %d %d %d" % (path, *numbers))
    digest = hashlib.sha256(b"\0".join(sorted(lines))).digest()
    return Stamp(digest, latest + (COARSE_TICK if coarse else TICK) < now)


def _listed(folder: bytes, waiting: list[bytes] | None) -> list[tuple[bytes, os.stat_result]]:
    """What stands in a folder; the folders in it wait to be listed, or are left out where nothing waits."""
    found = []
    with os.scandir(folder) as listing:
        for each in listing:
            state = each.stat(follow_symlinks=False)
            if stat.S_ISDIR(state.st_mode):
                if waiting is None:
                    continue
                waiting.append(each.path)
            found.append((each.path, state))
    return found
