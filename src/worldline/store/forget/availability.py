"""Whether a content is still here, and if not, whether it went as was declared: what `expiry.jsonl` authorises.

available   its bytes are here
withheld    left out of a bundle, which lists it
expired     removed behind its retention, and the record of that holds
missing     gone, and nothing says that it may be
corrupt     not the bytes that were written

That is observed and never written back. `expiry.jsonl` stands outside the seal and is a chain of its own, made like the
log's (`model.events`):

    {"seq":0,"at":<Unix ns>,"seal":"<fingerprint>","name":"<64 hex>","tier":"ordinary","size":5120,
     "retention":<seconds>,"deadline":<Unix ns>,"h":"<64 hex>"}

A record authorises that its content is gone only if the chain holds up to it and it says what the sealed manifest
gives: the seal, the content, its tier's retention, the deadline that follows, and a removal not before it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from worldline.errors import Damaged
from worldline.model import events
from worldline.model.manifest import Manifest
from worldline.store import layout
from worldline.store.forget.chained import chained
from worldline.store.verdicts import Problem, Verdict

if TYPE_CHECKING:
    from worldline.store.recording import Recording

STATES = AVAILABLE, WITHHELD, EXPIRED, MISSING, CORRUPT = ("available", "withheld", "expired", "missing", "corrupt")
SECOND = 1_000_000_000  # ns
LONGEST = 1024  # bytes of a record: all its fields have a longest form
FORGED, TORN = "forged", "torn"


class Removal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One record: that a content was removed `at` (Unix ns), `retention` seconds behind the seal or later."""

    seq: int
    at: int
    seal: str
    name: str
    tier: str
    size: int
    retention: int
    deadline: int


class Expiry:
    """What the records of an attempt authorise. `size` is the bytes of those that chain; `head` their last hash."""

    def __init__(self) -> None:
        self.removals: dict[str, Removal] = {}
        self.problems: list[Problem] = []
        self.rows = self.size = self.last = 0
        self.head = events.GENESIS


def deadline(manifest: Manifest, tier: str) -> int | None:
    """When the contents of a tier are due (Unix ns), or None: kept as long as the run."""
    seconds = (manifest.retention or {}).get(tier) if tier in layout.TIERS else None
    return None if seconds is None or seconds < 0 else manifest.sealed_at + seconds * SECOND


def read_expiry(data: bytes, manifest: Manifest | None, seal: str | None) -> Expiry:
    """Read the bytes of `expiry.jsonl` against the sealed manifest. Behind a record that does not chain none counts."""
    found = Expiry()
    if manifest is None:
        found.problems += [Problem(FORGED, layout.EXPIRY, "without a seal nothing can be expired")] if data else []
        return found
    sealed = {name: (tier, size) for name, size, _, tier, _ in manifest.blobs}
    if len(data) > LONGEST * (len(sealed) + 1):
        found.problems.append(Problem(FORGED, layout.EXPIRY, f"{len(data):,} bytes for {len(sealed):,} contents"))
        return found
    for line in io.BytesIO(data):
        where = f"{layout.EXPIRY}, byte {found.size:,}"
        if not line.endswith(b"\n") or b"\0" in line:  # half a line, or a hole: no record has either
            found.problems.append(Problem(TORN, where, "a crash cut it there; `worldline expire --now` cuts it off"))
            break
        good = chained(line, Removal, found.rows, found.head)
        if good is None:
            found.problems.append(Problem(FORGED, where, "not the record that the chain needs there"))
            break
        removal, h = good
        if why := _unauthorised(removal, found, manifest, seal, sealed):
            found.problems.append(Problem(FORGED, where, why))
        else:
            found.removals[removal.name] = removal
            found.last = removal.at
        found.rows, found.size, found.head = found.rows + 1, found.size + len(line), h
    return found


def _unauthorised(
    removal: Removal, before: Expiry, manifest: Manifest, seal: str | None, sealed: dict[str, tuple[str, int]]
) -> str | None:
    """Why a record does not authorise what it says; None where it does."""
    name, due = removal.name[:12], deadline(manifest, removal.tier)
    if removal.seal != seal:
        return "it names another seal"
    if sealed.get(removal.name) != (removal.tier, removal.size):
        return f"{name} of {removal.size:,} bytes in the tier {removal.tier} was not sealed"
    if due is None or (removal.retention, removal.deadline) != ((manifest.retention or {})[removal.tier], due):
        return f"{name}: not the retention that was declared, or not the deadline that it gives"
    if removal.at < due:
        return f"{name}: removed before {when(due)}"
    if removal.at < before.last or removal.name in before.removals:
        return f"{name}: a second time, or earlier than the record before"
    return None


def expiry_of(attempt: Path, manifest: Manifest | None, seal: str | None) -> Expiry:
    """`read_expiry` of an attempt's directory, as it stands there now."""
    most = LONGEST * (len(manifest.blobs) + 1 if manifest else 1)
    try:
        descriptor = os.open(attempt / layout.EXPIRY, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return read_expiry(file.read(most + 1), manifest, seal)
    except FileNotFoundError:
        return Expiry()
    except OSError as error:  # a link, a folder
        found = Expiry()
        found.problems.append(Problem(FORGED, layout.EXPIRY, f"no file that can be read: {error.strerror}"))
        return found


def state_of(recording: Recording, reference: dict[str, Any], *, read: bool = True) -> str:
    """The state of a content that a row or the manifest names, in a directory or a bundle: one of `STATES`.

    Without `read` its bytes are not looked at: it is corrupt only where its size is another.
    """
    try:
        size = recording.stored_size(reference)
        if size is not None and not read:
            return AVAILABLE if size == reference["size"] else CORRUPT
        found = sum(len(part) for part in recording.stream_blob(reference))
    except Damaged as error:
        return str(error.facts.get("state", CORRUPT))
    return AVAILABLE if found == reference["size"] else CORRUPT


def availabilities(recording: Recording) -> Iterator[dict[str, Any]]:
    """Each sealed content with what was captured of it and its state, sorted by name. Their bytes are not read."""
    manifest = recording.manifest
    for name, size, media_type, tier, disposition in manifest.blobs if manifest else ():
        content = {"name": name, "size": size, "type": media_type, "tier": tier}
        yield {**content, "disposition": disposition, "availability": state_of(recording, content, read=False)}


def expired(recording: Recording) -> list[Removal]:
    """The records whose contents are gone, in the order in which they were written."""
    removals = recording.expiry.removals
    found = availabilities(recording) if removals else ()
    gone = {content["name"] for content in found if content["availability"] == EXPIRED}
    return [removal for removal in removals.values() if removal.name in gone]


def verdict(counts: Mapping[str, int], missing: list[Problem], expiry: Expiry) -> Verdict:
    """The answer to the question of availability, worst word first. What expired or was withheld is no problem."""
    problems = [*missing, *expiry.problems]
    said = ((MISSING, missing), ("failed", problems), (EXPIRED, counts[EXPIRED]), (WITHHELD, counts[WITHHELD]))
    state = next((word for word, found in said if found), "ok")
    return Verdict(state, problems, {"availability": {state: counts[state] for state in STATES}})


def absent(recording: Recording, name: str, file: str) -> Damaged:
    """What reading a content raises that is not here: `state` is `expired` or `missing`."""
    removal = recording.expiry.removals.get(name)
    if removal is None:
        return Damaged(f"the blob {name[:12]} is missing", file=file, blob=name, state=MISSING)
    said = f"the content {name[:12]} expired on {when(removal.deadline)} and was removed"
    return Damaged(said, file=file, blob=name, state=EXPIRED, deadline=removal.deadline, at=removal.at)


def when(ns: int) -> str:
    """A moment (Unix ns) as people read it, in UTC and the same everywhere."""
    try:
        return datetime.fromtimestamp(ns // SECOND, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):  # behind the year 9999
        return f"{ns // SECOND:,} s after 1970"
