"""Writing a new file or folder that appears whole or not at all, and never in the place of another.

It is written in parts under a temporary name beside its own, synced, and given its name. What is killed on its way
leaves a name that begins with `.` and ends with `.tmp`, and means nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from worldline.errors import UsageError
from worldline.store import layout

Write = Callable[[bytes], None]


@contextmanager
def new_file(path: Path) -> Iterator[Write]:
    """A function that adds bytes to the file, which is there at the end. Raises `UsageError` where `path` is taken."""
    refuse_taken(path)
    temporary = temporary_name(path)
    temporary.unlink(missing_ok=True)
    descriptor = layout.create(temporary)
    try:
        try:
            yield lambda data: layout.write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        layout.place(temporary, path)
        layout.sync_directory(path.parent)
    except FileExistsError:
        raise _taken(path) from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill with new files, which has its name at the end. Raises `UsageError` where it is taken."""
    refuse_taken(path)
    temporary = temporary_name(path)
    shutil.rmtree(temporary, ignore_errors=True)
    layout.make_private(temporary)
    try:
        yield temporary
        for folder in (*(each for each in temporary.rglob("*") if each.is_dir()), temporary):
            layout.sync_directory(folder)
        refuse_taken(path)  # renaming would take the place of an empty folder
        os.rename(temporary, path)
        layout.sync_directory(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def temporary_name(path: Path) -> Path:
    """The name under which it is written."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def refuse_taken(path: Path) -> None:
    """Raise `UsageError` where something stands at `path`, or its folder is not there."""
    if os.path.lexists(path):
        raise _taken(path)
    if not path.parent.is_dir():
        raise UsageError(f"no folder {path.parent}", path=str(path))


def _taken(path: Path) -> UsageError:
    return UsageError(f"{path} exists; nothing is ever overwritten", path=str(path))
