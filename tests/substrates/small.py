"""A file system that is full: a small tmpfs of which a test leaves as many inodes and bytes free as it wants."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import require
from worldline.engine.substrates import mounts


class Disk:
    """Where it is mounted. `fill` takes all that is free, but for some inodes and bytes; `clear` gives it back."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._filler = place / "filler"

    def fill(self, inodes: int = 0, size: int = 0) -> None:
        """Leave so much free. What writes without an inode of its own finds no room, either."""
        self._filler.mkdir()
        if size < self._free():
            with (self._filler / "bytes").open("wb") as file, suppress(OSError):
                while self._free() > size:
                    file.write(b"x" * min(1 << 16, self._free() - size))
                    file.flush()
        free = os.statvfs(self.place).f_favail
        for number in itertools.islice(itertools.count(), max(0, free - inodes)):
            try:
                os.mkdir(self._filler / str(number))
            except OSError as error:
                assert error.errno == errno.ENOSPC, error
                break

    def _free(self) -> int:
        state = os.statvfs(self.place)
        return state.f_bavail * state.f_frsize

    def clear(self) -> None:
        """All that was filled is free again."""
        for each in self._filler.iterdir():
            each.rmdir() if each.is_dir() else each.unlink()
        self._filler.rmdir()


@contextmanager
def small(folder: Path, size: str = "8m", inodes: int = 400) -> Iterator[Disk]:
    """A tmpfs at `folder`, in a mount namespace of this thread: tests beside it, which look for mounts, do not see it.

    Skips where this user cannot mount one, or fails where the machine promises it.
    """
    folder.mkdir()
    outside, here = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC), os.getcwd()
    try:
        try:
            mounts.unshare(mounts.NEW_NAMESPACE)
            mounts.keep_to_ourselves()
        except OSError as error:
            require("overlay", False, f"no tmpfs can be mounted: {error.strerror}")
        words = ["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes}", "tmpfs", str(folder)]
        subprocess.run(words, capture_output=True, check=True)
        yield Disk(folder)
        subprocess.run(["umount", str(folder)], check=True)
    finally:
        mounts.join(outside)
        os.close(outside)
        os.chdir(here)
