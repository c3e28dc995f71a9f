"""Containing: an attempt in which a secret was found is taken out of the store, whole, and nothing opens it any more.

    the record -> <run>/contained.jsonl, synced -> the snapshots of its workspace, the published result with its
      signature, then the attempt, are moved to <store>/../quarantine/<run>, both directories synced -> the pool's names
      of its contents are unlinked

From the record on it is refused by everything that reads; a crash behind it is finished by running it again. What was
copied or sent before is not undone: bundles, backups, what a provider keeps. The secret itself has to be replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from worldline.errors import NotARecording, RecordError, RecordingNotFound, WriterConflict
from worldline.model.holds import is_hash
from worldline.model.manifest import MOST_BYTES, unseal
from worldline.store import layout, listed
from worldline.store.blobs import release
from worldline.store.catalog import runs
from worldline.store.forget import quarantine
from worldline.store.forget.kept import KeptSnapshots
from worldline.store.forget.quarantine import Containment, Place
from worldline.store.forget.retention import pools_of
from worldline.store.forget.search import Search, Searched
from worldline.store.forget.trash import trash_of
from worldline.store.log import take_lock
from worldline.store.recording import publishes
from worldline.store.seal import alone
from worldline.store.secrets.vault import Vault

SNAPSHOTS = ".snapshots"  # behind an attempt's name, in its quarantine
Joined = Callable[[Path, Vault], Iterator[Place]]


class Outcome(msgspec.Struct, kw_only=True):
    """What was done. `attempts` are in quarantine now; `places` are the first of `found`; `shared` are the runs that
    hold contents with the secret, too. `snapshots` of the workspace went with them; `needed` are the runs whose own
    need some of their contents, which stay; `repositories` have commits that are snapshots, and stay as they are.
    `searched` files and bytes; `unscanned` bodies that could not be looked into.
    """

    run: str
    label: str
    attempts: list[str]
    found: int
    places: list[Place]
    shared: list[str]
    needed: list[str]
    snapshots: int
    repositories: list[str]
    quarantine: Path
    searched: int
    bytes: int
    unscanned: int


def target_of(path: Path) -> tuple[Path, str | None]:
    """The run's directory that a path names and, where it is one, the attempt. Raises as opening a path does."""
    path = path.absolute()
    if path.parent.name == layout.ATTEMPTS.name and (
        path.is_dir() or (path.parents[2] / quarantine.CONTAINED).exists()
    ):
        return path.parents[2], path.name
    run = path.parent if path.suffix == ".json" and (path.parent / layout.ATTEMPTS).is_dir() else path
    if not run.exists():
        raise RecordingNotFound(f"no recording at {path}", path=str(path))
    if not (run / layout.ATTEMPTS).is_dir():
        raise NotARecording(f"{path} is no run; a bundle is one file, which you delete yourself", path=str(path))
    return run, None


def contain(
    run: Path,
    label: str,
    value: str,
    now_ns: int,
    *,
    attempt: str | None = None,
    anyway: bool = False,
    joined: Joined = lambda attempt, vault: iter(()),
) -> Outcome:
    """Search every attempt of a run (or the one that is named) for a secret, and contain those that hold it.

    With `anyway` all of them, found or not. `now_ns` is Unix time in ns; `joined` finds the secret in answers whose
    parts have to be joined first. Raises `WriterConflict` for a live attempt, `SecretRefused`, `RecordError`.
    """
    search = Search(label, value)
    with alone(run / layout.ATTEMPTS), ExitStack() as held:
        before = quarantine.register_of(run).rows
        attempts = [path for path in layout.attempts(run) if attempt in (None, path.name)]
        for path in attempts:
            held.callback(os.close, _lock(path))
        kept = KeptSnapshots(run)
        snapshots = {path: kept.of([path]) for path in attempts}
        results = {
            path: _searched(run, path, search, joined, kept, snapshots[path])
            for path in attempts
            if path.name not in before
        }
        chosen = {path: result for path, result in results.items() if result.count or anyway}
        moved = [path for path in attempts if path in chosen or path.name in before]
        going = {snapshot for path in moved for snapshot in snapshots[path]}
        records = [_record(path, result, run, label, now_ns, kept, going) for path, result in chosen.items()]
        repositories = kept.repositories(going)
        if records or before:
            _check_place(run)
            quarantine.register(run, records)  # those before, too: who wrote them may have been killed before the sync
        if records or before:
            listed.forget([run.parent])  # its task may hold the secret, too; from the record on no list keeps it again
        needed = set[str]()
        for path in moved:
            needed |= kept.withdraw(snapshots[path], quarantine.place_of(run) / f"{path.name}{SNAPSHOTS}")
            _withdraw(run, path)
            _move(run, path)
        if records or before:
            _make_durable(run)
        _leave_pool(run)
    return Outcome(
        run=run.name,
        label=label,
        attempts=[path.name for path in moved],
        found=sum(result.count for result in results.values()),
        places=[place for result in results.values() for place in result.places][: quarantine.MOST_PLACES],
        shared=sorted({name for record in records for name in record.shared}),
        needed=sorted(needed),
        snapshots=len(going),
        repositories=sorted(repositories),
        quarantine=quarantine.place_of(run),
        searched=sum(result.files for result in results.values()),
        bytes=sum(result.bytes for result in results.values()),
        unscanned=sum(result.unscanned for result in results.values()),
    )


def _lock(attempt: Path) -> int:
    try:
        return take_lock(attempt)
    except WriterConflict:
        what = f"{attempt} has a live writer; stop it first, then contain it"
        raise WriterConflict(what, attempt=str(attempt)) from None


def _searched(
    run: Path, attempt: Path, search: Search, joined: Joined, kept: KeptSnapshots, snapshots: Iterable[str]
) -> Searched:
    """What stands in an attempt, in what it published, in its snapshots, and in the folder of a branch."""
    found = search.attempt(attempt)
    for place in joined(attempt, search.vault):
        found.add(place)
    found.also(search.snapshots(kept, snapshots))
    found.also(search.folder(_worked_in(run)))
    if any(publishes(attempt, result) for result in run.glob("*.json")):
        for place in search.beside(run).places:
            found.add(place)
    return found


def _worked_in(run: Path) -> Path:
    return run.parent / layout.WORKSPACES / run.name


def _record(
    attempt: Path, result: Searched, run: Path, label: str, now_ns: int, kept: KeptSnapshots, going: Iterable[str]
) -> Containment:
    return Containment(
        seq=0,
        at=now_ns,
        run=run.name,
        attempt=attempt.name,
        label=label,
        found=result.count,
        where=result.places,
        shared=sorted({*_sharing(run, result.contents), *kept.sharing(going, result.contents)}),
        seal=_seal_of(attempt),
    )


def _seal_of(attempt: Path) -> str | None:
    try:
        return unseal(layout.read_bounded(attempt / layout.MANIFEST, MOST_BYTES) or b"")[1]
    except ValueError:
        return None


def _sharing(run: Path, contents: Iterable[str]) -> list[str]:
    """The other runs of the store, and of its trash, that hold one of these contents."""
    stores = {store.resolve() for store in (run.parent, trash_of(run.parent), *(p.parent for p in pools_of(run)))}
    others = [other for store in sorted(stores) for other in runs(store) if other.name != run.name]
    return [
        other.name
        for other in others
        if any(
            layout.blob_path(attempt, layout.ORDINARY, name).exists()
            for attempt in layout.attempts(other)
            for name in contents
        )
    ]


def _check_place(run: Path) -> None:
    """Make the run's quarantine. Raises `RecordError` where nothing can be moved there."""
    place = quarantine.place_of(run)
    if place == run.resolve():
        raise RecordError(
            f"{run.parent} is itself named {quarantine.QUARANTINE}; move the store first", path=str(place)
        )
    layout.make_private(place, shared=True)
    if place.stat().st_dev != run.stat().st_dev:
        raise RecordError(f"{place} is on another file system than {run}; nothing can be moved there", path=str(place))


def _withdraw(run: Path, attempt: Path) -> None:
    """Move what the attempt published, the signature over it, and the folder that a branch worked in, out of sight."""
    results = [path for path in sorted(run.glob("*.json")) if publishes(attempt, path)]
    signatures = [run / f"{name}.sig" for name in (*(path.name for path in results), attempt.name)]
    place = quarantine.place_of(run)
    for path in (*(signature for signature in signatures if os.path.lexists(signature)), *results):
        os.rename(path, place / f"{attempt.name}.{path.name}")
    if _worked_in(run).is_dir():
        os.rename(_worked_in(run), place / f"{attempt.name}.workspace")
    layout.sync_directory(place)
    layout.sync_directory(run)  # before the attempt goes: without it nobody knows whose the result is


def _move(run: Path, attempt: Path) -> None:
    place = quarantine.place_of(run)
    if os.path.lexists(place / attempt.name):
        raise RecordError(f"{place / attempt.name} is in quarantine already", path=str(place / attempt.name))
    os.rename(attempt, place / attempt.name)
    (place / attempt.name).chmod(0o700)


def _make_durable(run: Path) -> None:
    """Sync every directory that something was moved from or to, now or by one that was killed before it did so."""
    for folder in (quarantine.place_of(run), run, run / layout.ATTEMPTS):
        layout.sync_directory(folder)


def _leave_pool(run: Path) -> None:
    """Unlink the pool's names of everything that is in the run's quarantine; other runs keep theirs."""
    contents = sorted(quarantine.place_of(run).glob(f"*/{layout.BLOBS}/{layout.ORDINARY}/??/*"))
    for pool in pools_of(run):
        release(pool, [path.name for path in contents if is_hash(path.name)], shared=True)
