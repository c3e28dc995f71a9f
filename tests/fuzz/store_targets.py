"""What reads a record from a stranger: rows, a log, a manifest with its expiry records, a bundle, a proof.

A target takes any bytes and returns; it raises for a defect alone: an error that is not ours, or an answer that does
not hold together.
"""

from __future__ import annotations

import atexit
import io
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from tests.fuzz import fitting
from tests.store import hostile
from worldline.engine.export import EXPORTS
from worldline.engine.replay import inspect
from worldline.engine.steps import steps
from worldline.errors import WorldlineError
from worldline.model import events, upcast
from worldline.model.manifest import Manifest, seal, unseal
from worldline.store import layout
from worldline.store.bundle.packed import PackedRecording
from worldline.store.forget import availability
from worldline.store.proof import check_proof
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.verify import check_manifest, verify

DAMAGE = {"changed", "malformed", "order", "gap", "zeros", "torn"}


class File:
    """A file of the log that is none."""

    name = "000000.jsonl"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, mode: Any, buffering: int = -1) -> BinaryIO:
        return io.BytesIO(self._data)


@cache
def folder() -> Path:
    """Where the targets put what can be read from a file alone; gone with the process."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None, prefix="worldline-fuzz-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def rows(data: bytes) -> None:
    """The row reader. What it gives out stands there, in order; what it reports has a place; nothing is in both."""
    mode, text = data[:1], data[1:]
    if mode == fitting.FITTED:
        text = hostile.chained(fitting.bodies(text))[0]
    reader, at, last = RowReader([File(text)]), 0, -1
    for event in reader:
        found = reader.at[1]
        assert found >= at and text[found : found + len(event.raw)] == event.raw, "not a row that stands there"
        # Behind a damage a row that links may go back before one that nothing vouched for.
        assert event.seq == last + 1 or reader.damages, "a good row out of its place"
        at, last = found + len(event.raw), event.seq
        assert events.read(event.raw) == event and reader.head.hex() == event.h
    for damage in reader.damages:
        assert damage.kind in DAMAGE and 0 <= damage.offset < len(text) and damage.detail, damage
    if not reader.damages:
        assert reader.bytes == len(text) and last == reader.seq - 1, "bytes that are neither good nor damaged"


def log(data: bytes) -> None:
    """An attempt whose log chains: whatever its rows say, it opens, and only errors of ours come out."""
    text, _ = hostile.chained(fitting.bodies(data))
    attempt = folder() / "run_01m8nb1ch82e7e9magm5cvjp2h" / layout.ATTEMPTS / "ainst_01m8nb1ch8v1g1yfephg03rg8q"
    (attempt / layout.CHUNKS).mkdir(parents=True, exist_ok=True)
    (attempt / layout.CHUNKS / layout.chunk_name(0)).write_bytes(text)
    read(lambda: Recording(attempt))


def manifest(data: bytes) -> None:
    """A manifest and, behind `PART`, records of expiry. A manifest that is believed can be sealed again, the same."""
    mode, (line, *records) = data[:1], data[1:].split(fitting.PART, 1)
    if mode == fitting.FITTED:
        line = fitting.sealed(line)
    found: Manifest | None = None
    said = None
    try:
        found, said = unseal(line)
    except ValueError:
        assert check_manifest(line).state == "failed"
    else:
        assert check_manifest(line).state == "ok"
        again, _ = unseal(seal(found))
        assert again == found
        upcast.manifest(found)
    expiry = availability.read_expiry(b"".join(records), found, said)
    assert found is not None or not expiry.removals
    for removal in expiry.removals.values():
        assert found is not None and removal.at >= (availability.deadline(found, removal.tier) or 1 << 70)


def bundle(data: bytes) -> None:
    """A file from a stranger, read in every way that a bundle is read."""
    mode, content = data[:1], data[1:]
    path = folder() / "run.skn"
    path.write_bytes(fitting.bundle(content) if mode == fitting.FITTED else content)
    recording = attempted(lambda: PackedRecording(str(path)))
    if recording is None:
        return
    read(lambda: PackedRecording(str(path)))
    for way in (
        lambda: recording.index,
        lambda: recording.block(0),
        lambda: list(recording.rows_from(1)),
        lambda: [list(recording.content_of(entry)) for entry in recording.container.entries],
        lambda: verify(PackedRecording(str(path)), exports=EXPORTS),
    ):
        attempted(way)


def proof(data: bytes) -> None:
    """A proof from a stranger: it proves what it says, or is refused."""
    proven = attempted(lambda: check_proof(data))
    assert proven is None or not proven.trusted, "trusted, and nobody said whom to trust"


def read(opened: Callable[[], Recording]) -> None:
    """Read a recording in every way; each way begins anew."""
    for way in (
        lambda: list(opened().events()),
        lambda: opened().header,
        lambda: opened().summary,
        lambda: steps(opened()),
        lambda: inspect(opened()),
        lambda: verify(opened()),
        lambda: list(availability.availabilities(opened())),
    ):
        attempted(way)


def attempted(way: Callable[[], Any]) -> Any:
    """What a way of reading gives; None where it refuses in words of ours."""
    try:
        return way()
    except WorldlineError as error:
        assert str(error), "an error that says nothing"
        return None
