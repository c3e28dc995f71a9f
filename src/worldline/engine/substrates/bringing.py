"""Making one folder what another is, at the paths that layers touch: how layers are flattened, and settled.

Both folders are seen through the kernel, so whiteouts, opaque and renamed folders need no second implementation: a path
that is not in the source is removed from the target, and the kernel notes it in the target's own layer.
"""

from __future__ import annotations

import errno
import filecmp
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from worldline.engine.substrates.attributes import attributes, dress
from worldline.engine.substrates.layers import contents, remove

_MARKS = frozenset(f"{space}.overlay.{mark}" for space in ("trusted", "user") for mark in ("opaque", "redirect"))


class Touched:
    """The paths that some layers touch. `whole` are folders that hide or move what is below them."""

    def __init__(self, uppers: Iterable[Path]) -> None:
        self.paths: set[str] = set()
        self.whole: set[str] = set()
        for upper in uppers:
            for path, state in contents(upper):
                self.paths.add(path)
                if stat.S_ISDIR(state.st_mode) and _is_marked(upper / path):
                    self.whole.add(path)

    def add_all(self, source: Path, target: Path, without: Iterable[Path]) -> None:
        """Every path of both, but what stands in the folders `without`."""
        left_out = tuple(f"{path.relative_to(target)}/" for path in without if path.is_relative_to(target))
        for side in (source, target):
            self.paths.update(path for path, _ in contents(side) if not f"{path}/".startswith(left_out))

    def of(self, source: Path, target: Path) -> list[str]:
        """All paths that may differ, sorted, so that a folder comes before what is in it."""
        paths = set(self.paths)
        for folder in self.whole:
            for side in (source, target):
                if (side / folder).is_dir() and not (side / folder).is_symlink():
                    paths.update(f"{folder}/{path}" for path, _ in contents(side / folder))
        return sorted(paths, key=lambda path: path.split("/"))


def _is_marked(folder: Path) -> bool:
    try:
        names = os.listxattr(folder, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EACCES):
            return False
        raise
    return not _MARKS.isdisjoint(names)


def bring(source: Path, target: Path, paths: Iterable[str]) -> None:
    """Make `target` what `source` is at these paths, which are sorted. Raises `OSError`."""
    folders = []
    placed: dict[tuple[int, int], Path] = {}
    for path in paths:
        wanted, there = _state(source / path), _state(target / path)
        if wanted is None:
            _remove(target / path, there)
        elif stat.S_ISDIR(wanted.st_mode):
            if there is None or not stat.S_ISDIR(there.st_mode):
                _remove(target / path, there)
                (target / path).mkdir(mode=0o700)
            elif there.st_mode & 0o700 != 0o700:
                (target / path).chmod(0o700)
            folders.append(path)
        elif there is None or not _is_same(source / path, target / path, wanted, there):
            _remove(target / path, there)
            _place(source / path, target / path, wanted, placed)
    for path in reversed(folders):  # behind what is in them: a folder may refuse to be written to, and has times
        dress(source / path, target / path)
    dress(source, target)
    _link_again(source, target, placed)


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_same(source: Path, target: Path, a: os.stat_result, b: os.stat_result) -> bool:
    """Whether a file is what it is to become already."""
    told = [(state.st_mode, state.st_size, state.st_mtime_ns, state.st_nlink, state.st_uid) for state in (a, b)]
    if not stat.S_ISREG(a.st_mode) or told[0] != told[1] or a.st_nlink > 1:
        return False
    return attributes(source) == attributes(target) and filecmp.cmp(source, target, shallow=False)


def _remove(path: Path, state: os.stat_result | None) -> None:
    if state is not None:
        if stat.S_ISDIR(state.st_mode):
            remove(path)
        else:
            path.unlink()


def _place(source: Path, target: Path, state: os.stat_result, placed: dict[tuple[int, int], Path]) -> None:
    """One thing that is no folder."""
    kind = state.st_mode
    if stat.S_ISREG(kind):
        identity = state.st_dev, state.st_ino
        if state.st_nlink > 1 and identity in placed:
            os.link(placed[identity], target)
            return
        if state.st_nlink > 1:
            placed[identity] = target
        _copy(source, target, state.st_size)
    elif stat.S_ISLNK(kind):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISFIFO(kind):
        os.mkfifo(target, 0o600)
    elif stat.S_ISSOCK(kind):
        return  # what listened there is in another environment
    else:
        os.mknod(target, kind, state.st_rdev)
    dress(source, target)


def _copy(source: Path, target: Path, size: int) -> None:
    """The bytes of a file, holes as holes."""
    with source.open("rb") as reading, target.open("xb") as writing:
        os.ftruncate(writing.fileno(), size)
        for start, end in _extents(reading.fileno(), size):
            os.lseek(reading.fileno(), start, os.SEEK_SET)
            os.lseek(writing.fileno(), start, os.SEEK_SET)
            while start < end:
                done = os.sendfile(writing.fileno(), reading.fileno(), None, min(end - start, 1 << 24))
                if done == 0:
                    return  # it became shorter
                start += done


def _extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole up to the end
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


def _link_again(source: Path, target: Path, placed: dict[tuple[int, int], Path]) -> None:
    """Names of the same files that no layer touches: they are found in the source, and linked."""
    if any(path.lstat().st_nlink != _count(source, target, path) for path in placed.values()):
        for path, state in contents(source):
            first = placed.get((state.st_dev, state.st_ino)) if stat.S_ISREG(state.st_mode) else None
            if first is not None and not os.path.samefile(first, target / path):
                (target / path).unlink(missing_ok=True)
                os.link(first, target / path)


def _count(source: Path, target: Path, path: Path) -> int:
    return (source / path.relative_to(target)).lstat().st_nlink
