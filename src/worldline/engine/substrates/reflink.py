"""Copying a file's bytes: as a second name for the same blocks where the file system can (reflink), else by reading.

A reflink is no hard link: who writes to one of the two gets blocks of its own, so a fork can never change the store.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sys

from worldline.store import layout

_FICLONE = 0x40049409  # linux/fs.h
_STEP = 1 << 20
_CANNOT = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM)


def reflinked(source: int, target: int) -> bool:
    """Whether the blocks of `source` are now those of `target`, too. False where the file system cannot."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        return False
    return True


def copy(source: int, target: int, reflinks: bool) -> tuple[str, bool]:
    """Copy all of a file into an empty one, holes as holes. Returns its SHA-256, and whether reflinks can go on.

    The bytes are read in any case: what is damaged in the store is never handed out.
    """
    cloned = reflinks and reflinked(source, target)
    digest, size, zeros = hashlib.sha256(), 0, b""
    while part := os.read(source, _STEP):
        digest.update(part)
        size += len(part)
        if cloned:
            continue
        if len(part) == _STEP and part == (zeros := zeros or bytes(_STEP)):
            os.lseek(target, _STEP, os.SEEK_CUR)
        else:
            layout.write_all(target, part)
    if zeros:
        os.ftruncate(target, size)
    return digest.hexdigest(), cloned
