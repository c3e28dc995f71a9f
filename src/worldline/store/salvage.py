"""What a dead writer left of its log, and making it whole: what a crash cut off is kept aside, an end row is added.

The caller holds the attempt's lock. Every step may be the last: run again, it goes on from there.

    what stands there is synced -> torn bytes -> tail.torn -> the tail is cut -> the end row -> the tail becomes a chunk

A crash cuts: it leaves half a line, NUL padding, or a hole before lines that were never synced. Anything else, and any
damage before rows that say they were durable (`sync`), is damage: that log is left as it is.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from worldline.model import events
from worldline.model.events import Event, encode_json
from worldline.model.merkle import Merkle
from worldline.store import layout
from worldline.store.log import LogWriter, Written
from worldline.store.recording import Recording
from worldline.store.rows import Damage, RowReader

_TEMPORARY = re.compile(r"\..+\.tmp")


class Found(msgspec.Struct):
    """What stands in an unsealed log: up to the first damage, and whether that is what a crash leaves (`cut`)."""

    written: Written
    merkle: Merkle
    header: Event | None = None
    last: Event | None = None
    damage: Damage | None = None
    cut: bool = False

    @property
    def ended(self) -> bool:
        """Whether the last row says that the attempt ended, and not as complete."""
        return self.last is not None and self.last.name == "meta/end" and self.last.data["disposition"] != "complete"


def read_log(recording: Recording) -> Found:
    """Read the log of an attempt that nobody writes."""
    files = list(recording.files())
    reader, found = RowReader(files), Found(Written(0, 0, events.GENESIS, 0), Merkle())
    durable = 0  # how many rows those behind the first damage say were durable
    for event in reader:
        if reader.damages:
            durable = max(durable, event.sync[0] if event.sync else 0)
            continue
        found.merkle.add(reader.leaf)
        found.written = Written(reader.seq, event.t, reader.head, reader.bytes)
        found.header, found.last = found.header or event, event
    if reader.damages:
        found.damage = reader.damages[0]
        found.cut = durable <= found.written.seq and _is_cut(recording.attempt, found.damage)
    return found


def _is_cut(attempt: Path, damage: Damage) -> bool:
    """Whether a crash leaves such a place: in the tail, and half a line or one with NUL bytes, which no row has."""
    if damage.file != layout.TAIL:
        return False
    with (attempt / layout.TAIL).open("rb") as tail:
        tail.seek(damage.offset)
        line = tail.readline()
    return b"\0" in line or line[-1:] != b"\n"


def make_durable(attempt: Path) -> None:
    """Sync what a killed writer left, before anything is built on it: it may be in the system's memory alone.

    Its contents and what it staged were synced before they had a name; the names, and the tail, may not be.
    """
    if (attempt / layout.TAIL).exists():
        descriptor = os.open(attempt / layout.TAIL, os.O_WRONLY | os.O_CLOEXEC)
        try:
            layout.sync(descriptor)
        finally:
            os.close(descriptor)
    inside = [path for path in attempt.rglob("*") if path.is_dir()]
    for folder in (*inside, attempt, *attempt.parents[:4]):  # up to the store
        layout.sync_directory(folder)


def cut_tail(attempt: Path, offset: int) -> None:
    """Move what stands in the tail from `offset` on to `tail.torn`, behind what stands there already."""
    tail, kept = attempt / layout.TAIL, attempt / layout.TORN
    torn = tail.read_bytes()[offset:]
    before = kept.read_bytes() if kept.is_file() else b""
    if not before.endswith(torn):  # else it was moved, and only the cut is missing
        temporary = attempt / f".{layout.TORN}.tmp"
        temporary.unlink(missing_ok=True)
        layout.write_durable(temporary, before + torn)
        os.replace(temporary, kept)
        layout.sync_directory(attempt)
    descriptor = os.open(tail, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, offset)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def end_log(attempt: Path, lock: int, found: Found, end: dict[str, Any]) -> None:
    """Add the row `meta/end` where there is none yet that holds, and move the tail into `chunks/`."""
    if found.ended and not (attempt / layout.TAIL).exists():
        return
    log = LogWriter.resume(attempt, os.dup(lock), found.written)
    try:
        if not found.ended:
            log.append("meta", "end", "main", {}, encode_json(end), durable=True)
        log.finish()
    finally:
        log.close()


def torn_facts(attempt: Path) -> dict[str, Any] | None:
    """`tail.torn` as the manifest names it."""
    path = attempt / layout.TORN
    if not path.is_file():
        return None
    return {"name": layout.TORN, "size": path.stat().st_size, "sha256": layout.sha256_of(path)}


def sweep(attempt: Path) -> None:
    """Remove what a writer left under temporary names: none of it was ever referred to."""
    blobs = attempt / layout.BLOBS
    for folder in (attempt, *(blobs / tier for tier in layout.TIERS)):
        left = [path for path in (folder.iterdir() if folder.is_dir() else ()) if _TEMPORARY.fullmatch(path.name)]
        for path in left:
            path.unlink()
        if left:
            layout.sync_directory(folder)
    (attempt / layout.PROGRESS).unlink(missing_ok=True)
