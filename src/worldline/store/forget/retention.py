"""Expiry: removing the contents of a sealed recording once its declared retention is over, in an order that holds.

    the records -> expiry.jsonl, synced with its directory -> the contents are unlinked, their directories synced
      -> their names in the store's pool where no other run has them -> the restricted tier's key, with its last content

Only the manifest that stands in the attempt says what is due: its seal time, its retention, its contents. A crash
leaves records without removals, which the next time finishes; never a removal without its record. The key's going needs
none: it may be gone when every restricted content has its record. The log, the manifest and the result stay, and so do
contents that the header names, which lives as long as the log.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import ExpiryRefused
from worldline.model.manifest import MOST_BYTES, Manifest
from worldline.store import layout
from worldline.store.blobs import release
from worldline.store.bundle.packed import PackedRecording
from worldline.store.forget.availability import (
    AVAILABLE,
    CORRUPT,
    EXPIRED,
    FORGED,
    Expiry,
    Removal,
    deadline,
    expiry_of,
    state_of,
    when,
)
from worldline.store.forget.chained import append, chain
from worldline.store.forget.trash import TRASH
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.seal import alone
from worldline.store.verdicts import collect_blobs
from worldline.store.verify import authenticity


class Content(msgspec.Struct, frozen=True):
    """A sealed content: `deadline` in Unix ns (None: it stays as long as the run), `availability` as it was found."""

    name: str
    size: int
    type: str
    tier: str
    deadline: int | None
    availability: str

    def reference(self) -> dict[str, object]:
        """As rows name it."""
        return {"name": self.name, "size": self.size, "type": self.type, "tier": self.tier}


class Expiration(msgspec.Struct, kw_only=True):
    """What an expiry did or, without `done`, would do: the contents that are `due`, those due `later`, those that
    `expired` before, those that are `kept` as long as the run, and the `incidents`: missing or corrupt, not touched.
    """

    run: str
    attempt: str
    done: bool
    retention: dict[str, int | None]
    due: list[Content] = []
    later: list[Content] = []
    expired: list[Content] = []
    kept: list[Content] = []
    incidents: list[Content] = []


def expire(recording: Recording, now_ns: int, *, manifest: bytes | None = None, act: bool = False) -> Expiration:
    """Remove the contents whose deadline is at or before `now_ns` (Unix ns); without `act` only say which.

    `manifest` is the manifest as the caller has it: then the stored one must be the same, byte for byte. Run again
    after a crash, it finishes. Raises `ExpiryRefused` with `why`, and `OSError` where the place cannot be written.
    """
    stored = _believed(recording, manifest)
    with alone(recording.attempt.parent) if act else nullcontext():
        if not recording.attempt.is_dir():
            raise _refused(recording, "moved", "it was moved away meanwhile")
        expiry = expiry_of(recording.attempt, stored, recording.fingerprint)
        _check(recording, stored, expiry, now_ns)
        found = _sorted(recording, stored, expiry, now_ns)
        found.done = act
        if act:
            _record(recording, stored, expiry, [c for c in found.due if c.name not in expiry.removals], now_ns)
            _remove(recording, stored, [*found.expired, *found.due])
    return found


def _believed(recording: Recording, given: bytes | None) -> Manifest:
    """The stored manifest, once nothing speaks against it."""
    if isinstance(recording, PackedRecording):
        raise _refused(recording, "bundle", "a bundle is never changed; expire its run, and pack that anew")
    if not recording.attempt.is_dir():
        raise _refused(recording, "moved", "it was moved away")
    manifest, line = recording.manifest, recording.manifest_line
    if manifest is None:
        why = recording.seal_problem or ("its writer is at work" if recording.live else "it is not sealed")
        raise _refused(recording, "unsealed", why)
    if given is not None and given != line:
        raise _refused(recording, "manifest", "the manifest that was given is not the stored one, byte for byte")
    if layout.read_bounded(recording.attempt / layout.STAGED, MOST_BYTES) not in (None, line):
        raise _refused(recording, "manifest", "its manifest is not the one that was staged for it")
    first = next(iter(RowReader(recording.files())), None)
    if first is None or first.h != manifest.header:
        raise _refused(recording, "manifest", "its manifest is another recording's")
    if forged := authenticity(recording).problems:
        raise _refused(recording, "manifest", f"its signature: {forged[0].detail}")
    if manifest.retention is None:
        raise _refused(recording, "retention", "it declares no retention; `worldline gc` moves whole runs away")
    return manifest


def _check(recording: Recording, manifest: Manifest, expiry: Expiry, now_ns: int) -> None:
    """Refuse records that do not hold, and a clock that is behind what was written already."""
    if forged := [problem for problem in expiry.problems if problem.kind == FORGED]:
        raise _refused(recording, "record", f"{forged[0].where}: {forged[0].detail}")
    if now_ns < manifest.sealed_at:
        raise _refused(recording, "clock", f"the clock says {when(now_ns)}, it was sealed {when(manifest.sealed_at)}")
    if now_ns < expiry.last:
        said = f"the clock says {when(now_ns)}, contents expired {when(expiry.last)} already"
        raise _refused(recording, "clock", said)


def _sorted(recording: Recording, manifest: Manifest, expiry: Expiry, now_ns: int) -> Expiration:
    retention = {tier: (manifest.retention or {}).get(tier) for tier in layout.TIERS}
    found = Expiration(run=recording.run_id, attempt=recording.attempt_id, done=False, retention=retention)
    needed: dict[str, dict[str, Any]] = {}
    for event in itertools.islice(RowReader(recording.files()), 1):
        collect_blobs(event.data, needed)  # without its header nothing of a record can be read
    for name, size, media_type, tier, _ in manifest.blobs:
        due = None if name in needed else deadline(manifest, tier)
        content = Content(name, size, media_type, tier, due, AVAILABLE)
        path = layout.blob_path(recording.attempt, tier, name)
        there = os.path.lexists(path)
        if there and any(each.is_symlink() for each in (path, *path.parents[:3])):  # what is to go may be another's
            found.incidents.append(_found(content, CORRUPT))
        elif name in expiry.removals:
            (found.due if there else found.expired).append(_found(content, AVAILABLE if there else EXPIRED))
        # What is to go is read first: what was changed is for people to look at.
        elif (state := state_of(recording, content.reference(), read=due is not None and due <= now_ns)) != AVAILABLE:
            found.incidents.append(_found(content, state))
        elif due is None:
            found.kept.append(content)
        else:
            (found.due if due <= now_ns else found.later).append(content)
    return found


def _found(content: Content, state: str) -> Content:
    return msgspec.structs.replace(content, availability=state)


def _record(recording: Recording, manifest: Manifest, expiry: Expiry, contents: Iterable[Content], now_ns: int) -> None:
    """Append the records of contents and make all of them durable, also those that a crash left unsynced."""
    lines, head = [], expiry.head
    for seq, content in enumerate(contents, expiry.rows):
        seconds = (manifest.retention or {})[content.tier]
        assert seconds is not None and content.deadline is not None
        removal = Removal(
            seq=seq,
            at=now_ns,
            seal=str(recording.fingerprint),
            name=content.name,
            tier=content.tier,
            size=content.size,
            retention=seconds,
            deadline=content.deadline,
        )
        line, head = chain(removal, head)
        lines.append(line)
    path = recording.attempt / layout.EXPIRY
    if lines or path.exists():
        append(path, expiry.size, lines)


def _remove(recording: Recording, manifest: Manifest, recorded: Iterable[Content]) -> None:
    """Unlink what has a record, whatever of that a crash left undone."""
    attempt, names = recording.attempt, {(each.tier, each.name) for each in recorded}
    folders: set[Path] = set()
    for tier, name in sorted(names):
        path = layout.blob_path(attempt, tier, name)
        if os.path.lexists(path):
            path.unlink()
        if path.parent.is_dir():
            folders.add(path.parent)
    for folder in sorted(folders):
        layout.sync_directory(folder)
    for pool in pools_of(recording.run_directory):
        release(pool, [name for tier, name in sorted(names) if tier == layout.ORDINARY])
    restricted = {(tier, name) for name, _, _, tier, _ in manifest.blobs if tier == layout.RESTRICTED}
    key = layout.tier_key_path(attempt)
    if restricted and restricted <= names and key.exists():  # nothing is named by it any more
        key.unlink()
        layout.sync_directory(key.parent)


def pools_of(run: Path) -> list[Path]:
    """The pools that may hold further names of a run's contents: its store's. The trash lies beside that."""
    in_trash = run.parent.name == TRASH
    return sorted(run.parent.parent.glob(f"*/{layout.POOL}")) if in_trash else [run.parent / layout.POOL]


def _refused(recording: Recording, why: str, detail: str) -> ExpiryRefused:
    return ExpiryRefused(f"nothing of {recording.path} expires: {detail}", why=why, path=str(recording.path))
