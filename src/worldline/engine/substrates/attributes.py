"""What a file or folder is apart from what it holds: owner, mode, extended attributes, times; from another one."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

_NOT_THEIRS = ("trusted.overlay.", "user.overlay.", "security.selinux")  # the kernel's own notes


def attributes(path: str | Path) -> dict[str, bytes]:
    """The extended attributes that are a user's to set. Raises `OSError`."""
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise
    wanted = (name for name in names if not name.startswith(_NOT_THEIRS))
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in wanted}


def dress(source: str | Path, target: str | Path) -> None:
    """Make `target` what `source` is, apart from what they hold. Raises `OSError`."""
    state = os.lstat(source)
    with suppress(PermissionError):  # not root: what is made belongs to whoever makes it
        os.chown(target, state.st_uid, state.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(state.st_mode):
        wanted = attributes(source)
        for name in attributes(target).keys() - wanted.keys():
            os.removexattr(target, name)
        for name, value in wanted.items():
            os.setxattr(target, name, value)
        os.chmod(target, stat.S_IMODE(state.st_mode))
    os.utime(target, ns=(state.st_atime_ns, state.st_mtime_ns), follow_symlinks=False)
