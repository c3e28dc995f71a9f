"""The folder that layers stand on: it must stay as it was, because the kernel promises nothing for one that changes.

It is watched with inotify while an environment is open, so that asking costs nothing; what was not watched, or could
not be, is read through again and compared by a fingerprint of its paths, sizes, times, inodes and modes.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from worldline.errors import StaleBase

_MASK = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # modify, attrib, moved, create, delete, and of itself
_ONLY_FOLDERS, _NO_LINKS, _OVERFLOW, _IGNORED = 0x0100_0000, 0x0200_0000, 0x4000, 0x8000
_EVENT = struct.Struct("iIII")


class Base:
    """One base: `folder` as it was when it was noted, without `without`, folders that are no part of it."""

    def __init__(self, name: str, folder: Path, fingerprint: str, without: Iterable[Path]) -> None:
        self.name = name
        self.folder = folder
        self.fingerprint = fingerprint
        self._without = frozenset(map(os.fsencode, without))
        self._watch: Watch | None = None
        self._stale: list[str] | None = None

    def watch(self) -> None:
        """From here on a look at the watch is enough, where the kernel gives one."""
        if self._watch is None:
            with suppress(OSError):  # too many folders for this user's limit: then it is read through each time
                self._watch = Watch(self.folder, self._without)

    def check(self) -> None:
        """Raises `StaleBase` where the folder is not what it was; `facts["paths"]` names changes that were seen."""
        if self._stale is None:
            seen = self._watch.seen() if self._watch is not None else None
            if seen == [] or (self.folder.is_dir() and fingerprint(self.folder, self._without) == self.fingerprint):
                return
            self._stale = sorted(set(seen or ()))
        named = f": {', '.join(self._stale[:5])}" if self._stale else ""
        what = f"{self.folder} changed under what stands on it{named}; take a new snapshot of it as it is"
        raise StaleBase(what, ref=self.name, paths=self._stale)

    def close(self) -> None:
        """Watch no more."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def fingerprint(folder: Path, without: Iterable[bytes] = ()) -> str:
    """A digest of what tells whether anything below a folder changed; contents are not read."""
    digest = hashlib.sha256()
    skipped = frozenset(without)
    waiting = [os.fsencode(folder)]
    while waiting:
        at = waiting.pop()
        lines = []
        with os.scandir(at) as listing:
            for each in listing:
                if each.path in skipped:
                    continue
                state = each.stat(follow_symlinks=False)
                if stat.S_ISDIR(state.st_mode):
                    waiting.append(each.path)
                    lines.append(b"%s %d %d" % (each.path, state.st_mode, state.st_ino))
                    continue
                numbers = (state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
                lines.append(b"%s %d %d %d %d %d" % (each.path, *numbers))
        waiting.sort()
        digest.update(b"\0".join(sorted(lines)))
    return digest.hexdigest()


class Watch:
    """inotify on a folder and all below it. Raises `OSError` where the user's limit of watches is too low."""

    def __init__(self, folder: Path, without: frozenset[bytes]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._paths: dict[int, str] = {}
        try:
            for path, folders, _ in os.walk(os.fsencode(folder)):
                folders[:] = [name for name in folders if os.path.join(path, name) not in without]
                flags = ctypes.c_uint32(_MASK | _ONLY_FOLDERS | _NO_LINKS)
                watch = self._libc.inotify_add_watch(self._descriptor, ctypes.c_char_p(path), flags)
                self._paths[self._checked(watch)] = os.fsdecode(os.path.relpath(path, os.fsencode(folder)))
        except OSError:
            self.close()
            raise
        self._without = frozenset(os.path.relpath(os.fsdecode(path), folder) for path in without)

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def seen(self) -> list[str]:
        """The paths of what happened since the last look."""
        found: list[str] = []
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                at += _EVENT.size + length
                path = os.path.normpath(os.path.join(self._paths.get(watch, ""), os.fsdecode(name)))
                if mask & _OVERFLOW or (not mask & _IGNORED and path not in self._without):
                    found.append(path)

    def close(self) -> None:
        """Stop."""
        os.close(self._descriptor)
