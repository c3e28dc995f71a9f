"""Who still holds a folder: processes that stand in it, or have something below it open or mapped.

Linux tells it in /proc. What another user's processes hold is not shown to who is not root; there, and where there is
no /proc, nobody is found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from worldline.errors import Busy

_PROCESSES = Path("/proc")


def holders(folder: Path) -> dict[int, list[str]]:
    """By process id, what it holds below `folder` (or it itself); this process is none."""
    root = os.path.realpath(folder)
    found: dict[int, list[str]] = {}
    for process in _PROCESSES.glob("[0-9]*"):
        if int(process.name) != os.getpid():
            held = {path.removesuffix(" (deleted)") for path in _held(process, os.fsencode(root))}
            if below := sorted(path for path in held if path == root or path.startswith(root + "/")):
                found[int(process.name)] = below
    return found


def refuse_held(folder: Path) -> None:
    """Raise `Busy` where processes hold a folder."""
    if held := holders(folder):
        paths = sorted({path for each in held.values() for path in each})
        ids = ", ".join(map(str, sorted(held)))
        raise Busy(f"{folder} is in use by process {ids}: {paths[0]}", pids=sorted(held), fds=paths)


def _held(process: Path, root: bytes) -> Iterator[str]:
    """The paths that a process holds; what it may not tell us, or is over, is nothing."""
    for name in ("cwd", "root"):
        with suppress(OSError):
            yield os.readlink(process / name)
    with suppress(OSError):
        for each in os.listdir(process / "fd"):
            with suppress(OSError):
                yield os.readlink(process / "fd" / each)
    with suppress(OSError):
        maps = (process / "maps").read_bytes()
        for line in maps.splitlines() if root in maps else ():
            yield os.fsdecode(line.split(maxsplit=5)[-1])
