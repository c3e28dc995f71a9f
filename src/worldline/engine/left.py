"""Workspaces of branches that are left: `<store>/.workspaces/<run>` where the run is in neither store nor trash.

A branch's workspace stays when the branch has ended, for whoever wants to look at it or go on in it, and a run that
comes back out of the trash finds it again. What is left when the run is gone for good is of no branch any more. One in
which a process stands stays.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from worldline.engine.substrates.holders import holders
from worldline.engine.substrates.materialise import remove
from worldline.model.ids import is_id
from worldline.store import layout
from worldline.store.forget.trash import trash_of


class Left(msgspec.Struct, frozen=True):
    """A workspace that is left. `size` in bytes; `kept` says why it stays, if it does."""

    run: str
    path: Path
    size: int
    kept: str | None = None


def left(store: Path, going: Collection[str] = ()) -> list[Left]:
    """The workspaces of runs that are gone, and of those that are `going` from the trash."""
    folder, trash = store / layout.WORKSPACES, trash_of(store)
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [
        Left(path.name, path, _size(path), _why_kept(path))
        for path in found
        if is_id(path.name, "run")
        and path.is_dir()
        and not path.is_symlink()
        and not (store / path.name).exists()
        and (path.name in going or not (trash / path.name).exists())
    ]


def drop(chosen: Collection[Left]) -> list[Left]:
    """Remove them, but those in which a process stands now; each as it was found then."""
    dropped = []
    for each in chosen:
        each = msgspec.structs.replace(each, kept=_why_kept(each.path))
        if each.kept is None:
            remove(each.path)
        dropped.append(each)
    return dropped


def _why_kept(path: Path) -> str | None:
    standing = sorted(holders(path))
    return f"process {standing[0]} stands in it" if standing else None


def _size(folder: Path) -> int:
    files = [path.lstat() for path in folder.rglob("*")]
    return sum({state.st_ino: state.st_size for state in files}.values())
