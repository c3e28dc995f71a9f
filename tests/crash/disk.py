"""A model of a disk: what file operations do to it, and which of them it still holds after a power loss.

Contents and names are kept apart, as file systems do. What was not synced may be there or not, each operation for
itself and in any order, with these rules alone:

    a file's data      is durable once the file is synced; the rest of it as `tearing` says
    a name             (made, linked, removed) is durable once its directory is synced, whatever became of the file
    a rename           happens whole or not at all, and is durable once both directories are synced
    a new directory    that lost its name takes with it all that is in it

That is more than any journaling file system loses: what holds here holds there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = 0  # the number of the directory that everything is in


class Name(NamedTuple):
    """An entry of a directory: the numbers of both, and the name."""

    folder: int
    name: str


class Op(NamedTuple):
    """One operation.

    `names` are the entries that it sets (to the number of a file or directory) or removes (None). `file` with `data`
    is a write at `offset`, without it a truncation to `offset`. `synced` is the file or directory that it makes
    durable. `note` is no operation: what somebody was told at this point.
    """

    what: str
    names: tuple[tuple[Name, int | None], ...] = ()
    file: int | None = None
    offset: int = 0
    data: bytes | None = None
    synced: int | None = None
    note: tuple[str, object] | None = None


class Tree:
    """Files and directories by their numbers. `contents` of files, `entries` of directories."""

    def __init__(self) -> None:
        self.contents: dict[int, bytes] = {}
        self.entries: dict[int, dict[str, int]] = {ROOT: {}}

    def copy(self) -> Tree:
        """The same, to be changed."""
        tree = Tree()
        tree.contents = dict(self.contents)
        tree.entries = {folder: dict(names) for folder, names in self.entries.items()}
        return tree

    def find(self, path: str) -> int | None:
        """The number of what stands at a path below the root, or None."""
        at: int | None = ROOT
        for part in filter(None, path.split("/")):
            at = self.entries.get(at, {}).get(part) if at is not None else None
        return at

    def apply(self, op: Op) -> None:
        """Do an operation, whole."""
        for name, target in op.names:
            if target is None:
                self.entries[name.folder].pop(name.name, None)
            else:
                self.entries[name.folder][name.name] = target
        if op.file is not None:
            self.contents[op.file] = written(self.contents[op.file], op)

    def add(self, folder: int, name: str, contents: bytes | None, number: int) -> None:
        """Something that was there from the beginning: a file with its contents, or a directory."""
        self.entries[folder][name] = number
        if contents is None:
            self.entries[number] = {}
        else:
            self.contents[number] = contents

    def paths(self, folder: int = ROOT, prefix: str = "") -> Iterator[tuple[str, int]]:
        """Every path that leads somewhere, and where."""
        for name, number in sorted(self.entries[folder].items()):
            yield sys.intern(prefix + name), number
            if number in self.entries:
                yield from self.paths(number, f"{prefix}{name}/")

    def state(self) -> State:
        """What people would find: directories, and files with the numbers that say which are one."""
        found = [(path, number) for path, number in self.paths()]
        return tuple((path, number, self.contents.get(number)) for path, number in found)


State = tuple[tuple[str, int, bytes | None], ...]
"""Sorted by path: the path, the number of its file or directory, and the bytes (None: a directory)."""


def written(before: bytes, op: Op) -> bytes:
    """A file's bytes behind a write or a truncation."""
    if op.data is None:
        return before[: op.offset].ljust(op.offset, b"\0")
    return before[: op.offset].ljust(op.offset, b"\0") + op.data + before[op.offset + len(op.data) :]


def durable_at(ops: list[Op]) -> list[int]:
    """For each operation, the number of operations after which it is durable; one more than all where it never is."""
    never = len(ops) + 1
    found = [never] * len(ops)
    waiting: dict[int, set[int]] = {}  # the files and directories whose sync an operation waits for
    for index, op in enumerate(ops):
        if op.synced is not None:
            for earlier, needed in list(waiting.items()):
                needed.discard(op.synced)
                if not needed:
                    found[earlier] = index + 1
                    del waiting[earlier]
        elif op.file is not None:
            waiting[index] = {op.file}
        elif op.names:
            waiting[index] = {name.folder for name, _ in op.names}
    return found


def materialise(state: State, place: Path) -> None:
    """Make a state on a real disk, in an empty directory: links to one file are links to one file."""
    first: dict[int, str] = {}
    root = str(place)
    for path, number, contents in state:
        target = f"{root}/{path}"
        if contents is None:
            os.mkdir(target, 0o700)
        elif number in first:
            os.link(first[number], target)
        else:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, contents)
            os.close(descriptor)
            first[number] = target


def found_at(place: Path) -> State:
    """The state of a real directory. Numbers are in the order of the first paths."""
    found: list[tuple[str, int, bytes | None]] = []

    def walk(folder: str, prefix: str) -> None:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                found.append((path, entry.inode(), None))
                walk(entry.path, f"{path}/")
            else:
                with open(entry.path, "rb") as file:
                    found.append((path, entry.inode(), file.read()))

    walk(str(place), "")
    return renumbered(found)


def renumbered(state: Iterable[tuple[str, int, bytes | None]]) -> State:
    """The same state, with numbers in the order of the first paths: two that look the same are the same."""
    numbers: dict[int, int] = {}
    return tuple((path, numbers.setdefault(number, len(numbers) + 1), contents) for path, number, contents in state)
