"""Packing: a sealed attempt becomes one `.skn` file that any ZIP tool opens.

The log is one deflated entry with a full flush at row borders every 256 KiB, so that one block can be inflated alone.
Images are stored, other contents deflated. Index, manifest and container come last: one read of the tail paints the
first screen. The file is written under a temporary name, synced, and linked into place; nothing is overwritten.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from worldline.errors import Ineligible, UsageError
from worldline.model.events import encode_json
from worldline.store import container, layout
from worldline.store.blobs import stream_blob
from worldline.store.container import DEFLATED, EVENTS, INDEX, MANIFEST, STORED, Container, Entry, resource_name
from worldline.store.index import BLOCK_BYTES, IndexBuilder
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.verify import verify

LEVEL = 1  # as fast as the log can be read; text of agents deflates well at any level
_PICTURES = frozenset({"png", "webp", "jpeg"})


class Packed(NamedTuple):
    """What was packed: the file, its size and entries, the raw size of the log, and the names that were left out."""

    path: Path
    size: int
    entries: int
    raw: int
    withheld: list[str]


def pack(
    recording: Recording, target: Path, *, share: bool = False, watch: Callable[[int], None] = lambda size: None
) -> Packed:
    """Pack a sealed recording into `target`. With `share` the contents of the restricted tier are left out and listed.

    Raises `Ineligible` for one that is not sealed or does not verify, `UsageError` where `target` exists.
    """
    verification = verify(recording)
    manifest = recording.manifest
    if manifest is None or not verification.ok:
        why = verification.problems[0].detail if verification.problems else "it is not sealed"
        raise Ineligible(f"cannot pack {recording.path}: {why}", reasons=[p.detail for p in verification.problems])
    if target.exists():
        raise UsageError(f"{target} exists; a bundle is never overwritten", path=str(target))
    left_out = [blob for blob in manifest.blobs if share and blob[3] == "restricted"]
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with _Writer(temporary) as writer:
            builder = IndexBuilder((recording.attempt / layout.RESULT).read_text("utf-8"))
            writer.add(EVENTS, DEFLATED, _log(recording, builder, writer, watch))
            for name, _, media_type, tier, _ in manifest.blobs:
                if [name, tier] not in [[blob[0], blob[3]] for blob in left_out]:
                    _add_blob(writer, recording, name, media_type, tier)
            writer.add(INDEX, DEFLATED, deflated([encode_json(builder.index())]))
            line = (recording.attempt / layout.MANIFEST).read_bytes()
            writer.add(MANIFEST, STORED, ((part, part) for part in [line]))
            size = writer.finish(str(recording.fingerprint), tuple((b[0], b[1], b[2]) for b in left_out))
        os.link(temporary, target)
        layout.sync_directory(target.parent)
    finally:
        temporary.unlink(missing_ok=True)
    return Packed(target, size, len(writer.entries), builder.raw, [blob[0] for blob in left_out])


def _add_blob(writer: _Writer, recording: Recording, name: str, media_type: str, tier: str) -> None:
    entry = resource_name(name, media_type)
    parts = stream_blob(recording.attempt, {"name": name, "tier": tier})
    if entry.rpartition(".")[2] in _PICTURES:
        writer.add(entry, STORED, ((part, part) for part in parts))
    else:
        writer.add(entry, DEFLATED, deflated(parts))


def _log(
    recording: Recording, builder: IndexBuilder, writer: _Writer, watch: Callable[[int], None]
) -> Iterator[tuple[bytes, bytes]]:
    """The log's rows and their stored bytes, one block after the other."""
    squeeze = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    stored, begun = 0, 0
    builder.block(0)
    for event in RowReader(recording.files()):
        if builder.raw - begun >= BLOCK_BYTES:
            flushed = squeeze.flush(zlib.Z_FULL_FLUSH)
            stored += len(flushed)
            yield b"", flushed
            watch(builder.raw - begun)
            begun = builder.raw
            builder.block(stored)
        builder.row(event)
        data = squeeze.compress(event.raw)
        stored += len(data)
        yield event.raw, data
    yield b"", squeeze.flush()


def deflated(parts: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Content and its stored bytes, part by part."""
    squeeze = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    for part in parts:
        yield part, squeeze.compress(part)
    yield b"", squeeze.flush()


class _Writer:
    """Writes entries one after the other; a header is written over its place once its sizes are known."""

    def __init__(self, path: Path) -> None:
        self._file = layout.create_for_writing(path)
        self.entries: list[Entry] = []
        self._at = 0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: Any) -> None:
        os.close(self._file)

    def add(self, name: str, method: int, parts: Iterable[tuple[bytes, bytes]]) -> None:
        """Add one entry of (content, stored bytes) pairs."""
        begins = self._at
        self._at += 30 + len(name) + 20
        digest, crc, size, stored = hashlib.sha256(), 0, 0, 0
        for content, data in parts:
            crc = zlib.crc32(content, crc)
            size += len(content)
            stored += len(data)
            digest.update(data)
            self._write(data)
        entry = Entry(name, method, size, stored, crc, digest.hexdigest())
        self.entries.append(entry)
        self._overwrite(container.local_header(entry), begins)

    def finish(self, seal: str, withheld: tuple[tuple[str, int, str], ...]) -> int:
        """Add `container.json` and the directory; returns the file's size, which is on the disk then."""
        data = container.encode(Container(container.FORMAT, tuple(self.entries), seal, withheld))
        own = container.own_entry(data)
        self._write(container.local_header(own) + data + container.central_directory((*self.entries, own)))
        os.fsync(self._file)
        return self._at

    def _write(self, data: bytes) -> None:
        self._overwrite(data, self._at)
        self._at += len(data)

    def _overwrite(self, data: bytes, offset: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, offset)
            view, offset = view[written:], offset + written
