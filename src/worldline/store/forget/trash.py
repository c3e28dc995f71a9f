"""Keeping a store small: whole runs go to the trash beside it, `<store>/../trash/<run>`, when somebody says so.

Nothing goes by itself, and nothing is deleted but out of the trash. What is pinned (an empty file `pinned` in the run's
directory) or has a live writer stays, and what a branch left stays as long as the branch. A run's age is that of the
last change to its directories.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from worldline.errors import ReadError, RecordError
from worldline.model.ids import is_id
from worldline.store import layout, listed
from worldline.store.blobs import sweep_pool
from worldline.store.catalog import runs
from worldline.store.forget.quarantine import CONTAINED
from worldline.store.recording import Recording

PIN = "pinned"
TRASH = "trash"


class Candidate(msgspec.Struct, frozen=True):
    """A run that was asked for. `age` in seconds, `size` in bytes on disk; `kept` says why it stays, if it does."""

    run: str
    path: Path
    age: float
    size: int
    kept: str | None


def select(store: Path, now: float, older_than: float | None = None, keep: int | None = None) -> list[Candidate]:
    """The runs that are older than so many seconds and not among the newest `keep`, oldest first.

    `now` is Unix time in seconds. What neither limit is given for is not asked for: without both, no run.
    """
    if older_than is None and keep is None:
        return []
    found = runs(store)
    found = found if keep is None else found[: max(0, len(found) - keep)]
    candidates = [_candidate(run, now) for run in found]
    return _with_branches(store, [each for each in candidates if older_than is None or each.age > older_than])


def _with_branches(store: Path, chosen: list[Candidate]) -> list[Candidate]:
    """The candidates; one stays as long as a branch of it does, which could not be replayed without it."""
    left, going = branches(store), set[str]()
    settled: list[Candidate] = []
    for each in reversed(chosen):  # a branch is younger than what it left
        stays = sorted(left.get(each.run, set()) - going)
        if each.kept is None and stays:
            each = msgspec.structs.replace(each, kept=_left_by(stays))
        if each.kept is None:
            going.add(each.run)
        settled.insert(0, each)
    return settled


def branches(store: Path) -> dict[str, set[str]]:
    """Of each run that branches left, those in the store that did. What cannot be read has left none."""
    left: dict[str, set[str]] = {}
    for run in runs(store):
        for attempt in layout.attempts(run):
            try:
                bound = Recording(attempt).header.data.get("parent")
            except ReadError:
                continue
            if bound is not None and bound.get("run") != run.name:
                left.setdefault(str(bound.get("run")), set()).add(run.name)
    return left


def _left_by(stays: list[str]) -> str:
    return f"{stays[0]} is a branch of it"


def trashed(store: Path, now: float) -> list[Candidate]:
    """The runs in the store's trash, oldest first."""
    return [_candidate(run, now) for run in runs(trash_of(store))]


def trash_of(store: Path) -> Path:
    """Where the runs of a store go."""
    return store.resolve().parent / TRASH


def _candidate(run: Path, now: float) -> Candidate:
    if run.is_symlink():  # what it leads to is not of this store
        return Candidate(run.name, run, now - run.lstat().st_mtime, 0, "a symbolic link")
    changed = max(path.stat().st_mtime for path in (run, *layout.attempts(run)))
    return Candidate(run.name, run, now - changed, _size(run), why_kept(run))


def _size(run: Path) -> int:
    """Bytes of the files in it, each once however many names it has."""
    files = [path.lstat() for path in run.rglob("*")]
    return sum({state.st_ino: state.st_size for state in files}.values())


def why_kept(run: Path) -> str | None:
    """Why a run must stay where it is, or None."""
    if run.is_symlink():
        return "a symbolic link"
    if (run / PIN).exists():
        return "pinned"
    if (run / CONTAINED).exists():
        return "contained"
    begun = [attempt for attempt in layout.attempts(run) if (attempt / layout.CHUNKS).is_dir()]
    return "live" if any(Recording(attempt).live for attempt in begun) else None


def move(store: Path, chosen: Iterable[Candidate]) -> Iterator[Candidate]:
    """Move runs to the trash, those that may go; gives each as it stands then. Raises `RecordError`."""
    left, asked = branches(store), list(chosen)
    moved = [_moved(store, each, left) for each in reversed(asked)]  # branches before what they left
    return reversed(moved)


def _moved(store: Path, each: Candidate, left: dict[str, set[str]]) -> Candidate:
    """One run, moved where it may go; then it is no more among those that `left` others."""
    trash, stays = trash_of(store), sorted(left.get(each.run, ()))
    kept = why_kept(each.path) or (_left_by(stays) if stays else None)
    if kept is None:
        layout.make_private(trash, shared=True)
        target = trash / each.run
        if os.path.lexists(target):
            raise RecordError(f"{target} is in the trash already", path=str(target))
        os.rename(each.path, target)
        layout.sync_directory(trash)
        layout.sync_directory(store)
        listed.forget([store])
        for others in left.values():
            others.discard(each.run)
    return msgspec.structs.replace(each, kept=kept)


def delete(store: Path, chosen: Iterable[Candidate]) -> Iterator[Candidate]:
    """Delete runs from the trash, for good; those that are pinned stay there. Raises `RecordError` for any other."""
    for each in chosen:
        if each.path.parent != trash_of(store) or not is_id(each.run, "run") or each.path.is_symlink():
            raise RecordError(f"{each.path} is no run in the trash", path=str(each.path))
        kept = why_kept(each.path)
        if kept is None:
            shutil.rmtree(each.path)
        yield msgspec.structs.replace(each, kept=kept)
    sweep_pool(store / layout.POOL)


def pin(run: Path, pinned: bool) -> None:
    """Pin a run, so that no `gc` moves it, or let go of it."""
    if pinned:
        (run / PIN).touch(mode=0o600)
    else:
        (run / PIN).unlink(missing_ok=True)
    layout.sync_directory(run)
