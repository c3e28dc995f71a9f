"""What a program does to the files below a directory: recorded while it runs, as operations of `tests.crash.disk`.

Every function of `os` that changes files or makes them durable is wrapped while a trace is recorded. Nothing may go
past it: a test replays each trace and compares, and strace sees the same operations in the same order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.crash.disk import ROOT, Name, Op, Tree

WRITING = os.O_WRONLY | os.O_RDWR


class Trace:
    """The operations below `place` so far, and the tree that they lead to. What stands there already is durable."""

    def __init__(self, place: Path) -> None:
        self.place = os.path.realpath(place)
        self.ops: list[Op] = []
        self.told_before: list[tuple[str, object]] = []
        self.wrote: dict[str, bytes] = {}  # by attempt, all that its recorder wrote in the end: its log,
        self.results: dict[str, bytes] = {}  # and by name what it published
        self.tree = Tree()
        self._numbers = 0
        self._files: dict[int, int] = {}  # the number of what a descriptor leads to
        self._lock = threading.Lock()
        self._load(self.place, ROOT, {})
        self.before = self.tree.copy()

    def _load(self, place: str, folder: int, known: dict[int, int]) -> None:
        for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
            number = known.get(entry.inode())
            if number is None:
                number = known[entry.inode()] = self._next()
            self.tree.add(folder, entry.name, None if entry.is_dir() else Path(entry.path).read_bytes(), number)
            if entry.is_dir():
                self._load(entry.path, number, known)

    @classmethod
    def continued(cls, earlier: Trace, count: int, place: Path) -> Trace:
        """The trace of a program that finds at `place` what another's first `count` operations made, unsynced too."""
        trace = cls.__new__(cls)
        trace.place = os.path.realpath(place)
        trace.before, trace.ops = earlier.before.copy(), earlier.ops[:count]
        trace.wrote, trace.results, trace.told_before = earlier.wrote, earlier.results, earlier.told_before
        trace.tree, trace._numbers = earlier.before.copy(), earlier._numbers
        for op in trace.ops:
            trace._make_directories(op)
            trace.tree.apply(op)
        trace._files, trace._lock = {}, threading.Lock()
        return trace

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def note(self, word: str, value: object = None) -> None:
        """Somebody was told something now."""
        with self._lock:
            self.ops.append(Op("note", note=(word, value)))

    def noted(self, word: str, count: int | None = None) -> list[Any]:
        """Everything that was told under a word before and within the first `count` operations, in order."""
        told = [*self.told_before, *(op.note for op in self.ops[:count] if op.note is not None)]
        return [value for said, value in told if said == word]

    @contextmanager
    def recording(self) -> Iterator[Trace]:
        """Record what this process does."""
        wrapped = {name: getattr(os, name) for name in vars(_Calls) if not name.startswith("_")}
        calls = _Calls(self, wrapped)
        try:
            for name in wrapped:
                setattr(os, name, getattr(calls, name))
            yield self
        finally:
            for name, real in wrapped.items():
                setattr(os, name, real)

    def _add(self, op: Op) -> None:
        self._make_directories(op)
        self.tree.apply(op)
        self.ops.append(op)

    def _make_directories(self, op: Op) -> None:
        if op.what == "mkdir":
            for _, number in op.names:
                assert number is not None
                self.tree.entries.setdefault(number, {})
                self.before.entries.setdefault(number, {})  # empty, and nothing leads to it
        elif op.what == "create":
            for _, number in op.names:
                assert number is not None
                self.tree.contents.setdefault(number, b"")
                self.before.contents.setdefault(number, b"")

    def _name(self, path: Any) -> Name | None:
        """The entry that a path means; None outside of the place."""
        folder, name = os.path.split(os.path.abspath(os.fspath(path)))
        folder = os.path.realpath(folder)
        if folder != self.place and not folder.startswith(self.place + "/"):
            return None
        number = self.tree.find(folder[len(self.place) :])
        assert number is not None, f"{folder} came to be past the trace"
        return Name(number, name)


class _Calls:
    """The functions that are put in the place of those of `os`, by their names. Each does what that one does."""

    def __init__(self, trace: Trace, real: dict[str, Callable[..., Any]]) -> None:
        self._trace, self._real = trace, real

    def open(self, path: Any, flags: int, *rest: Any, **more: Any) -> int:
        trace = self._trace
        with trace._lock:
            if "dir_fd" in more or isinstance(path, int):
                return int(self._real["open"](path, flags, *rest, **more))
            is_new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
            descriptor = int(self._real["open"](path, flags, *rest, **more))
            full = os.path.realpath(path)
            if full == trace.place:
                trace._files[descriptor] = ROOT
            elif (name := trace._name(full)) is not None:
                if is_new:
                    trace._add(Op("create", ((name, trace._next()),)))
                number = trace._files[descriptor] = trace.tree.entries[name.folder][name.name]
                if flags & os.O_TRUNC and flags & WRITING:
                    trace._add(Op("truncate", file=number, offset=0))
            return descriptor

    def close(self, descriptor: int) -> None:
        with self._trace._lock:
            self._trace._files.pop(descriptor, None)
            self._real["close"](descriptor)

    def write(self, descriptor: int, data: Any) -> int:
        trace = self._trace
        with trace._lock:
            number = trace._files.get(descriptor)
            at = os.fstat(descriptor).st_size if number is not None else 0
            count = int(self._real["write"](descriptor, data))
            if number is not None and count:
                where = os.lseek(descriptor, 0, os.SEEK_CUR) - count
                assert where == at, "only what is appended is traced"
                trace._add(Op("write", file=number, offset=at, data=bytes(data[:count])))
            return count

    def ftruncate(self, descriptor: int, length: int) -> None:
        with self._trace._lock:
            self._real["ftruncate"](descriptor, length)
            if (number := self._trace._files.get(descriptor)) is not None:
                self._trace._add(Op("truncate", file=number, offset=length))

    def fsync(self, descriptor: int, how: str = "fsync") -> None:
        with self._trace._lock:
            self._real[how](descriptor)
            if (number := self._trace._files.get(descriptor)) is not None:
                self._trace._add(Op("sync", synced=number))

    def fdatasync(self, descriptor: int) -> None:
        self.fsync(descriptor, "fdatasync")

    def mkdir(self, path: Any, *rest: Any, **more: Any) -> None:
        trace = self._trace
        with trace._lock:
            self._real["mkdir"](path, *rest, **more)
            if (name := trace._name(path)) is not None:
                trace._add(Op("mkdir", ((name, trace._next()),)))

    def link(self, source: Any, target: Any, **more: Any) -> None:
        trace = self._trace
        with trace._lock:
            self._real["link"](source, target, **more)
            if (name := trace._name(target)) is not None and (old := trace._name(source)) is not None:
                trace._add(Op("link", ((name, trace.tree.entries[old.folder][old.name]),)))

    def rename(self, source: Any, target: Any, **more: Any) -> None:
        trace = self._trace
        with trace._lock:
            self._real["rename"](source, target, **more)
            if (name := trace._name(target)) is not None and (old := trace._name(source)) is not None:
                trace._add(Op("rename", ((old, None), (name, trace.tree.entries[old.folder][old.name]))))

    def replace(self, source: Any, target: Any, **more: Any) -> None:
        self.rename(source, target, **more)

    def unlink(self, path: Any, **more: Any) -> None:
        trace = self._trace
        with trace._lock:
            self._real["unlink"](path, **more)
            if (name := trace._name(_at(path, **more))) is not None:
                trace._add(Op("unlink", ((name, None),)))

    def remove(self, path: Any, **more: Any) -> None:
        self.unlink(path, **more)

    def rmdir(self, path: Any, **more: Any) -> None:
        trace = self._trace
        with trace._lock:
            self._real["rmdir"](path, **more)
            if (name := trace._name(_at(path, **more))) is not None:
                trace._add(Op("rmdir", ((name, None),)))


def _at(path: Any, *, dir_fd: int | None = None) -> Any:
    """The path that is meant relative to an open directory."""
    return path if dir_fd is None else os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), path)
