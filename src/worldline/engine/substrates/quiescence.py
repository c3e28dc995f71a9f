"""What a process has that a fork of its memory would tear or share: threads, sockets, loops, children, files it writes.

A thread is in the middle of something that nobody will go on with; the other end of a socket talks to one partner; an
open file has one position for all who share it. Each is named, so that whoever wrote the environment can put it away.
"""

from __future__ import annotations

import gc
import os
import stat
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_TASKS = "/proc/self/task"
_WRITES = os.O_WRONLY | os.O_RDWR


def threads() -> list[str]:
    """The threads besides this one, by their names; those that Python does not know by what the kernel calls them."""
    known = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    numbers = {thread.native_id for thread in known} | {threading.get_native_id()}
    found = [thread.name for thread in known]
    for task in os.listdir(_TASKS):
        if int(task) not in numbers:
            with suppress(FileNotFoundError):  # it ended
                found.append(f"{Path(_TASKS, task, 'comm').read_text().strip()} (not of Python)")
    return sorted(found)


def resources(ours: Collection[int], children: Collection[int]) -> list[str]:
    """What cannot be shared, by name. `ours` are descriptors that may be open, `children` processes that may be."""
    found = []
    for descriptor, state, link in _open(ours):
        if link.startswith("anon_inode:[eventpoll]"):
            found.append("event loop")
        elif stat.S_ISSOCK(state.st_mode):
            found.append(_socket(descriptor))
        elif stat.S_ISFIFO(state.st_mode):
            found.append(f"pipe (descriptor {descriptor})")
        elif stat.S_ISREG(state.st_mode) and _flags(descriptor) & _WRITES:
            found.append(f"file open for writing: {link}")
    for task in os.listdir(_TASKS):
        with suppress(FileNotFoundError), open(f"{_TASKS}/{task}/children", "rb", buffering=0) as listed:
            started = map(int, listed.read().split())
            found += [f"child process {number}" for number in started if number not in children]
    return sorted(set(found))


def reopen(ours: Collection[int]) -> None:
    """Give this process positions of its own in the files that it reads. Raises `OSError` where one is gone."""
    for descriptor, state, _ in _open(ours):
        if stat.S_ISREG(state.st_mode) and not _flags(descriptor) & _WRITES:
            position = os.lseek(descriptor, 0, os.SEEK_CUR)
            fresh = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
            os.lseek(fresh, position, os.SEEK_SET)
            os.dup2(fresh, descriptor, inheritable=os.get_inheritable(descriptor))
            os.close(fresh)


def _open(ours: Collection[int]) -> Iterator[tuple[int, os.stat_result, str]]:
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        if descriptor > 2 and descriptor not in ours:
            with suppress(OSError):  # the listing's own is closed by now
                yield descriptor, os.fstat(descriptor), os.readlink(f"/proc/self/fd/{name}")


def _flags(descriptor: int) -> int:
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        return next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))


def _socket(descriptor: int) -> str:
    """What a socket is to Python: asked only where one is in the way."""
    ssl: Any = sys.modules.get("ssl")
    if ssl is not None:
        for thing in gc.get_objects():
            if isinstance(thing, ssl.SSLSocket) and thing.fileno() == descriptor:
                return f"TLS connection (descriptor {descriptor})"
    return f"socket (descriptor {descriptor})"
