"""The snapshots of a run: which they are, where a secret stands in them, and how they leave the store with their run.

    <quarantine>/<run>/<attempt>.snapshots/{taken/<snapshot>.json, blobs/ordinary/<hh>/<name>}

What other runs' snapshots need stays, and these runs are named. What no run needs goes, too: snapshots that nothing
names (of a crash, of a comparison), and the folders that wait to be made branches. Nobody can add snapshots meanwhile,
and what is known of workspaces is not believed afterwards.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import Corrupt, ReadError, SubstrateError, UsageError
from worldline.model import tree
from worldline.model.checkpoint import ROW
from worldline.model.ids import is_id
from worldline.model.tree import File, Folder
from worldline.store import layout
from worldline.store.catalog import runs
from worldline.store.rows import RowReader
from worldline.store.snapshots import SnapshotStore, durable

_UNREAD = (
    ReadError,
    SubstrateError,
    UsageError,
    ValueError,
    KeyError,
    TypeError,
    OSError,
)  # what is no record, no tree


class Named(msgspec.Struct):
    """The snapshots that a run's rows name; `whole` says that all its rows could be read."""

    ids: set[str] = set()
    whole: bool = True


def named_in(attempts: Iterable[Path]) -> Named:
    """What the checkpoints of attempts name."""
    found = Named(ids=set())
    for attempt in attempts:
        reader = RowReader(layout.log_files(attempt))
        for event in reader:
            snapshot = event.data.get("snapshot_id") if event.name == ROW else None
            if isinstance(snapshot, str) and is_id(snapshot, "snap"):
                found.ids.add(snapshot)
        found.whole = found.whole and not reader.damages
    return found


class KeptSnapshots:
    """The snapshots of the store in which a run stands."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.store = SnapshotStore(run.parent)
        self._documents: dict[str, tuple[tree.Entry, ...]] = {}

    @property
    def any(self) -> bool:
        """Whether the store has snapshots at all."""
        return self.store.place.is_dir()

    def of(self, attempts: Iterable[Path]) -> set[str]:
        """The snapshots of these attempts that are here, and those that rewinds of the run have made."""
        if not self.any:
            return set()
        mine = named_in(attempts).ids | {ref for run, ref in self._rewinds() if run == self.run.name}
        return mine.intersection(self.store.taken())

    def _rewinds(self) -> Iterator[tuple[str, str]]:
        """Of each rewind the run, and the snapshot of the workspace before it."""
        for path in sorted((self.store.place / "rewinds").glob("rwd_*.json")):
            with suppress(*_UNREAD):
                said: Any = msgspec.json.decode(path.read_bytes())
                yield said["run"], said["before"]["id"]

    def contents(self, snapshot: str) -> Iterator[tuple[str, str]]:
        """The path and the name of each content of a snapshot; documents of folders under the folder's path.

        What is gone, or is no tree, has none.
        """
        with suppress(*_UNREAD):
            top = self._record(snapshot)["tree"]
            if top is None:
                return
            yield ".", top
            yield from self._below(tree.decode_tree(self.store.read(top)).root, b"")

    def _below(self, folder: Folder, at: bytes) -> Iterator[tuple[str, str]]:
        if folder.node is None:
            return
        yield os.fsdecode(at) or ".", folder.node
        if folder.node not in self._documents:
            try:
                self._documents[folder.node] = tree.decode_folder(self.store.read(folder.node))
            except (Corrupt, ValueError):
                self._documents[folder.node] = ()
        for entry in self._documents[folder.node]:
            path = at + b"/" * bool(at) + tree.bytes_of(entry.name)
            if isinstance(entry, Folder):
                yield from self._below(entry, path)
            elif isinstance(entry, File):
                yield os.fsdecode(path), entry.content

    def _record(self, snapshot: str) -> dict[str, Any]:
        said: dict[str, Any] = msgspec.json.decode(self.store.record(snapshot))
        return said

    def sharing(self, snapshots: Iterable[str], names: Iterable[str]) -> set[str]:
        """The runs whose snapshots need one of these contents, beside those that are to go."""
        wanted, going = set(names), set(snapshots)
        needing = self._needing(going).items() if wanted and self.any else ()
        return {run for ref, run in needing if not wanted.isdisjoint(name for _, name in self.contents(ref))}

    def repositories(self, snapshots: Iterable[str]) -> set[str]:
        """Where commits stand that are snapshots."""
        found = set()
        for snapshot in snapshots:
            with suppress(*_UNREAD):
                found.add(str(self._record(snapshot)["git"]["repository"]))
        return found

    def withdraw(self, snapshots: Iterable[str], place: Path) -> set[str]:
        """Move snapshots, and all contents that only they have, to `place`; returns the runs that need some of them.

        Done again it finishes what was cut short.
        """
        going = set(snapshots)
        if not going or not self.any:
            return set()
        with layout.locked(self.store.place / "lock"):
            needing = self._needing(going)
            orphans = set(self.store.taken()) - going - needing.keys()
            stay: dict[str, set[str]] = {}
            for snapshot, run in needing.items():
                for _, name in self.contents(snapshot):
                    stay.setdefault(name, set()).add(run)
            theirs = dict.fromkeys(name for ref in sorted(going | orphans) for _, name in self.contents(ref))
            self.store.outdate()
            touched = set[Path]()
            for name in reversed(theirs):  # a folder's document behind what it names: what is left can be found again
                source = Path(self.store.path(name))
                if name not in stay and source.is_file():
                    target = place / source.relative_to(self.store.place)
                    _move(source, target)
                    touched |= {source.parent, target.parent}
            durable(touched, self.store.place)
            for snapshot in sorted(going | orphans):
                (self.store.place / "pinned" / snapshot).unlink(missing_ok=True)
                source = self.store.place / "taken" / f"{snapshot}.json"
                _move(source, place / "taken" / source.name)
            for spare in (self.store.place / "spares").glob("*"):
                shutil.rmtree(spare, ignore_errors=True)
            for folder in (self.store.place / "taken", place / "taken", place):
                if folder.is_dir():
                    layout.sync_directory(folder)
            return {run for name in theirs for run in stay.get(name, ())}

    def _needing(self, going: set[str]) -> dict[str, str]:
        """Each snapshot that stays, with the run that needs it; all of them where a run cannot be read."""
        found = {ref: run for run, ref in self._rewinds() if run != self.run.name}
        unread = None
        for other in runs(self.run.parent):
            named = named_in(layout.attempts(other))
            if other.name != self.run.name or named.ids - going:
                found |= dict.fromkeys(named.ids, other.name)
            unread = unread if named.whole else other.name
        if unread is not None:
            found = dict.fromkeys(self.store.taken(), unread) | found
        return {snapshot: run for snapshot, run in found.items() if snapshot not in going}


def _move(source: Path, target: Path) -> None:
    layout.make_private(target.parent, shared=True)
    with suppress(FileNotFoundError):
        os.replace(source, target)
