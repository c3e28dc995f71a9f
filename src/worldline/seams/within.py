"""Starting a command so that it finds a branch's workspace where the recorded run had its own: at the same path.

    python -m worldline.seams.within BRANCH ORIGINAL [--keep PATH]... -- CMD...

It makes a mount namespace of its own, with a user namespace around it where it is not root, puts the branch's folder in
the place of the original, and becomes the command. Nobody else sees that, and nothing of it is left when the command
has ended. Each `PATH` below the original was no part of the environment; the command sees it as it is, read-only.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

CANNOT = 126  # the exit code of shells for what cannot be executed
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000  # sched.h
_BIND, _REMOUNT, _READ_ONLY, _RECURSIVE, _PRIVATE = 4096, 32, 1, 16384, 1 << 18  # sys/mount.h
_NO_SUID, _NO_DEV, _NO_EXEC, _NO_ATIME = 2, 4, 8, 1024
_LOCKED = {os.ST_NOSUID: _NO_SUID, os.ST_NODEV: _NO_DEV, os.ST_NOEXEC: _NO_EXEC, os.ST_NOATIME: _NO_ATIME}


def launched(branch: Path, original: Path, keep: Sequence[Path], command: Sequence[str]) -> list[str]:
    """The words that start `command` with `branch` in the place of `original`."""
    kept = [word for path in keep for word in ("--keep", str(path))]
    return [sys.executable, "-m", __name__, str(branch), str(original), *kept, "--", *command]


@cache
def why_not() -> str | None:
    """Why a command cannot have a view of its own of the file system here; None where it can, found out by doing it."""
    if sys.platform != "linux":
        return f"{sys.platform} has no mount namespaces"
    tried = subprocess.run(
        launched(Path("/"), Path("/"), [], ["true"]), capture_output=True, text=True, check=False, timeout=30
    )
    said = tried.stderr.strip().splitlines()
    return None if tried.returncode == 0 else (said[-1] if said else f"it ended with {tried.returncode}")


def enter(branch: Path, original: Path, keep: Sequence[Path]) -> None:
    """Show `branch` in the place of `original` to this process and its children. Raises `OSError`."""
    here = Path.cwd()
    _unshare()
    _mount(None, Path("/"), _RECURSIVE | _PRIVATE)
    held = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in keep if path.exists()}
    if branch != original:
        _mount(branch, original, _BIND | _RECURSIVE)
    for path, descriptor in held.items():
        _show(path, descriptor)
    os.chdir(here if here.is_relative_to(original) and here.is_dir() else original)


def _unshare() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    user, group, root = os.getuid(), os.getgid(), os.geteuid() == 0
    if libc.unshare(_NEW_MOUNTS if root else _NEW_MOUNTS | _NEW_USER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no namespace of its own: {os.strerror(number)}")
    if not root:  # it stays who it was: files that it makes are its own, outside too
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _show(path: Path, descriptor: int) -> None:
    """What stands behind `descriptor`, at `path` and read-only; where the branch has nothing there a place is made."""
    source = Path(f"/proc/self/fd/{descriptor}")
    if not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if source.is_dir() else path.touch()
    _mount(source, path, _BIND | _RECURSIVE)
    state = os.statvfs(path)  # what the mount has already cannot be taken off by who is not root outside
    locked = sum(flag for bit, flag in _LOCKED.items() if state.f_flag & bit)
    _mount(None, path, _BIND | _REMOUNT | _READ_ONLY | locked)


def _mount(source: Path | None, target: Path, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    given = None if source is None else os.fsencode(source)
    if libc.mount(given, os.fsencode(target), None, ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot put the branch's folder at {target}: {os.strerror(number)}")


def main(words: list[str]) -> None:
    """Enter, and become the command."""
    mine, command = words[: words.index("--")], words[words.index("--") + 1 :]
    branch, original, *kept = (Path(word) for word in mine if word != "--keep")
    try:
        enter(branch, original, kept)
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"worldline: {command[0]}: {error.strerror}\n")
        sys.exit(CANNOT)


if __name__ == "__main__":
    main(sys.argv[1:])
