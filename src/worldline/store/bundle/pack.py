"""Packing: a sealed recording becomes one `.skn` file that any ZIP tool opens.

The log is one deflated entry with a full flush at row borders every 256 KiB, so that one block can be inflated alone.
Pictures are stored, other contents deflated. Index, manifest and container come last: one read of the tail paints the
first screen. The file is written under a temporary name, synced, and moved into place; nothing is overwritten.

What is derived from the log (`decisions.jsonl`, `network.jsonl`, thumbnails) is made by the caller's functions: it
knows how to read what the store only keeps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from worldline.errors import Ineligible, UsageError
from worldline.model.checkpoint import ROW
from worldline.model.events import Event, encode_json
from worldline.store import layout
from worldline.store.bundle.container import (
    AUDIT,
    DEFLATED,
    EVENTS,
    EXPIRY,
    INDEX,
    MANIFEST,
    MEDIA,
    STORED,
    TIER_KEY,
    resource_name,
)
from worldline.store.bundle.container_writer import ContainerWriter
from worldline.store.bundle.index import IndexBuilder
from worldline.store.bundle.packed import PackedRecording
from worldline.store.bundle.pictures import PICTURES, pixels_only, thumb_name
from worldline.store.bundle.snapshots import Snapshots
from worldline.store.bundle.squeeze import Squeeze
from worldline.store.forget import availability
from worldline.store.note_lines import read_lines
from worldline.store.notes import stored
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.verdicts import Verification
from worldline.store.verify import Reading, verify

MOST_PICTURE_BYTES = 64 << 20  # of a picture that a thumbnail is made of
Exporter = Callable[[Recording], Iterator[bytes]]
Watch = Callable[[int], None]


class Packed(NamedTuple):
    """What was packed: the file, its size and entries, the raw size of the log, and the names that were left out.

    `withheld` are restricted contents, kept back for sharing; `expired` ones were gone before.
    """

    path: Path
    size: int
    entries: int
    raw: int
    withheld: list[str]
    expired: list[str]


def pack(
    recording: Recording,
    target: Path,
    *,
    share: bool = False,
    exports: Mapping[str, Exporter] | None = None,
    thumbnail: Callable[[bytes], bytes | None] | None = None,
    watch: Watch = lambda size: None,
) -> Packed:
    """Pack a sealed recording (a directory, or a bundle) into `target`.

    With `share` the contents of the restricted tier and their key are left out, and listed; so is the audit, which says
    who looked at what. Annotations go along, and the media of a bundle. `exports` derive further entries from the log,
    by the entry's name; `thumbnail` makes a small WebP of a picture, or None.
    Raises `Ineligible` for one that is not sealed or does not verify, `UsageError` where `target` exists.
    """
    if recording.manifest is None or isinstance(recording, PackedRecording):
        _refuse_unfit(recording, verify(recording))
    taken = UsageError(f"{target} exists; a bundle is never overwritten", path=str(target))
    if os.path.lexists(target):
        raise taken
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with ContainerWriter(temporary) as writer:
            packing = _Packing(recording, writer, share)
            packing.log(watch)
            packing.contents(thumbnail)
            for name, export in (exports or {}).items():
                writer.deflate(name, export(recording))
            packing.media()
            packing.tail()
            left_out = packing.withheld
            size = writer.finish(str(recording.fingerprint), tuple(left_out))
        layout.place(temporary, target)
        layout.sync_directory(target.parent)
    except FileExistsError:
        raise taken from None
    finally:
        temporary.unlink(missing_ok=True)
    return Packed(target, size, len(writer.entries), packing.raw, [name for name, _, _ in left_out], packing.expired)


class _Packing:
    """One packing under way."""

    def __init__(self, recording: Recording, writer: ContainerWriter, share: bool) -> None:
        assert recording.manifest is not None, "only what is sealed is packed"
        self._recording, self._manifest, self._writer = recording, recording.manifest, writer
        self._share = share
        # Before any content is looked at: what is removed meanwhile is missed, not passed over in silence.
        self._expiry = _expiry_of(recording)
        self._beside = {name: _lines_of(recording, name) for name in layout.BESIDE if not (share and name == AUDIT)}
        self._index = IndexBuilder()
        self.withheld: list[tuple[str, int, str]] = []
        self.expired: list[str] = []

    @property
    def raw(self) -> int:
        """The raw size of the log so far."""
        return self._index.raw

    def log(self, watch: Watch) -> None:
        """The log, and what its rows say of snapshots. Of a directory what is packed is what verifies: in one pass."""
        recording = self._recording
        adding = self._writer.begin(EVENTS, DEFLATED)
        with Squeeze(adding.part) as squeeze:
            block: list[bytes] = []

            def row(event: Event) -> None:
                if self._index.rows and self._index.begins_block:
                    raw = b"".join(block)
                    block.clear()
                    squeeze.block(raw)
                    watch(len(raw))
                self._index.row(event, self._index.borders)  # where the block will begin is known later
                block.append(event.raw)

            if isinstance(recording, PackedRecording):
                for event in RowReader(recording.files()):
                    row(event)
            else:
                _refuse_unfit(recording, verify(recording, reading=Reading(recording, rows=row)))
            squeeze.block(b"".join(block), last=True)
        adding.end()
        stored = self._index.index().blocks.stored
        stored[:] = [squeeze.offsets[number] for number in stored]
        if ROW in self._index.index().kinds.name or self._index.index().kinds.others:
            snapshots = Snapshots(recording)
            for event in RowReader(recording.files()):
                if (made := snapshots.row(event)) is not None:
                    self._writer.deflate(made[0], [made[1]])

    def contents(self, thumbnail: Callable[[bytes], bytes | None] | None) -> None:
        """Every content that is here and may go along, and the key of the restricted ones with them."""
        for name, size, media_type, tier, _ in self._manifest.blobs:
            reference = {"name": name, "size": size, "type": media_type, "tier": tier}
            state = availability.state_of(self._recording, reference, read=False)
            if state == availability.EXPIRED:
                self.expired.append(name)
            elif state == availability.WITHHELD or (self._share and tier == layout.RESTRICTED):
                self.withheld.append((name, size, media_type))
            else:
                self._content(reference)
                if thumbnail is not None and media_type in PICTURES and tier == layout.ORDINARY:
                    self._thumb(reference, thumbnail)
        if self._recording.tier_key is not None and not self._share:
            self._writer.store(TIER_KEY, [self._recording.tier_key])

    def _content(self, reference: dict[str, object]) -> None:
        name, media_type = str(reference["name"]), str(reference["type"])
        parts = self._recording.stream_blob(reference)
        put = self._writer.store if media_type in PICTURES else self._writer.deflate
        put(resource_name(name, media_type), parts)

    def _thumb(self, reference: dict[str, object], thumbnail: Callable[[bytes], bytes | None]) -> None:
        size = reference["size"]
        if not isinstance(size, int) or size > MOST_PICTURE_BYTES:
            return
        made = thumbnail(self._recording.blob(reference))
        if made is not None and pixels_only(made):
            self._writer.store(thumb_name(str(reference["name"])), [made])

    def media(self) -> None:
        """The media of a bundle, which show ordinary pictures alone (`engine.media`)."""
        recording = self._recording
        if not isinstance(recording, PackedRecording):
            return
        for entry in recording.container.entries:
            if entry.name.startswith(MEDIA):
                put = self._writer.store if entry.method == STORED else self._writer.deflate
                put(entry.name, recording.content_of(entry))

    def tail(self) -> None:
        """What a reader asks for first."""
        if self._expiry:
            self._writer.deflate(EXPIRY, [self._expiry])
        self._index.result = _result_of(self._recording)
        self._writer.deflate(INDEX, [encode_json(self._index.index())])
        self._writer.store(MANIFEST, [self._recording.manifest_line or b""])
        for name, lines in self._beside.items():
            if lines:
                self._writer.deflate(name, [lines])


def _refuse_unfit(recording: Recording, verification: Verification) -> None:
    """Raise `Ineligible` for a recording that is not sealed, or does not verify."""
    if recording.manifest is None or not verification.ok:
        why = verification.problems[0].detail if verification.problems else "it is not sealed"
        raise Ineligible(f"cannot pack {recording.path}: {why}", reasons=[p.detail for p in verification.problems])


def _result_of(recording: Recording) -> str:
    """The bytes of result.json, which is UTF-8."""
    if isinstance(recording, PackedRecording):
        return recording.index.result
    return (recording.attempt / layout.RESULT).read_text("utf-8")


def _lines_of(recording: Recording, name: str) -> bytes:
    """The lines that people wrote beside the recording; what a crash left of one is none."""
    data = stored(recording, name)
    return data[: read_lines(data, name, None).size]


def _expiry_of(recording: Recording) -> bytes:
    """The records of what was removed since the seal; none is no bytes."""
    if isinstance(recording, PackedRecording):
        entry = recording.entries.get(EXPIRY)
        return b"".join(recording.content_of(entry)) if entry is not None else b""
    path = recording.attempt / layout.EXPIRY
    return path.read_bytes() if path.is_file() else b""
