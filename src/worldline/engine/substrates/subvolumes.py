"""btrfs's calls on subvolumes, by ioctl: make, snapshot, drop. No program of btrfs's is needed."""

from __future__ import annotations

import errno
import os
import struct
import sys
from pathlib import Path

_SNAPSHOT, _CREATE, _DESTROY = 0x5000_9417, 0x5000_940E, 0x5000_940F  # linux/btrfs.h
_GET_FLAGS, _SET_FLAGS = 0x8008_9419, 0x4008_941A
_READ_ONLY = 1 << 1
_NO_BTRFS = (errno.ENOTTY, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)


def _on(folder: Path, request: int, argument: bytes) -> bytearray:
    """Ask the file system something about a folder. Returns what it made of the argument. Raises `OSError`."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    buffer = bytearray(argument)
    try:
        fcntl.ioctl(descriptor, request, buffer, True)
    finally:
        os.close(descriptor)
    return buffer


def is_subvolume(folder: Path) -> bool:
    """Whether a folder is a subvolume of btrfs. Raises `OSError` where it cannot be opened."""
    if sys.platform != "linux":
        return False
    try:
        _on(folder, _GET_FLAGS, bytes(8))
    except OSError as error:
        if error.errno not in _NO_BTRFS:
            raise
        return False
    return True


def create(path: Path) -> None:
    """An empty subvolume. Raises `OSError`."""
    _on(path.parent, _CREATE, struct.pack("q4088s", 0, os.fsencode(path.name)))


def snapshot(source: Path, target: Path, *, read_only: bool) -> None:
    """A subvolume that is what `source` is now; on the disk when this returns. Raises `OSError`."""
    descriptor = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flags = _READ_ONLY if read_only else 0
        _on(target.parent, _SNAPSHOT, struct.pack("qQQ32x4040s", descriptor, 0, flags, os.fsencode(target.name)))
    finally:
        os.close(descriptor)


def drop(path: Path) -> None:
    """Remove a subvolume with all that is in it. Raises `OSError`: ENOTEMPTY where another subvolume is in it."""
    if _on(path, _GET_FLAGS, bytes(8))[0] & _READ_ONLY:
        _on(path, _SET_FLAGS, bytes(8))
    _on(path.parent, _DESTROY, struct.pack("q4088s", 0, os.fsencode(path.name)))
