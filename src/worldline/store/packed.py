"""Reading a bundle: the same `Recording` over one file or URL. Only what is asked for is read.

Opening reads the tail and checks it (`container.open_container`); rows come block by block, contents one by one, each
checked against the digest of its stored bytes.
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from worldline.errors import Damaged, NotARecording
from worldline.store.container import (
    EVENTS,
    INDEX,
    MANIFEST,
    STORED,
    Entry,
    local_header,
    open_container,
    resource_name,
)
from worldline.store.index import Index
from worldline.store.recording import Recording
from worldline.store.rows import LogFile
from worldline.store.source import FileSource, Source, UrlSource

STEP = 1 << 20
MOST_INDEX_BYTES = 1 << 30


def is_packed(name: str) -> bool:
    """Whether a name can only mean a bundle: a URL, or a file that begins as a ZIP does."""
    if name.startswith(("http://", "https://")):
        return True
    path = Path(name)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def open_recording(name: str | Path) -> Recording:
    """The recording that a path or URL names: a directory, a published result, or a bundle."""
    return PackedRecording(str(name)) if is_packed(str(name)) else Recording(name)


class PackedRecording(Recording):
    """A recording in a bundle. Raises `NotARecording` or `Damaged` where its tail is not one's."""

    def __init__(self, name: str) -> None:
        self.source: Source = UrlSource(name) if "://" in name else FileSource(Path(name))
        self.container = open_container(self.source)
        self.entries = {entry.name: entry for entry in self.container.entries}
        self._offsets = self.container.offsets()
        for needed in (EVENTS, INDEX, MANIFEST):
            if needed not in self.entries:
                raise NotARecording(f"{name} holds no {needed}", path=name)
        self.damages = []
        self.reader = None
        self._seal_problem = None

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return str(self.header.data["run"])

    @property
    def attempt_id(self) -> str:
        """The id of the attempt."""
        return str(self.header.data["attempt"])

    @property
    def path(self) -> Path:
        """The bundle's file, or its URL as a path."""
        return Path(self.source.name)

    def files(self) -> list[LogFile]:
        """The log, as one file."""
        return [_PackedLog(self)]

    @property
    def log_bytes(self) -> int:
        """The raw size of the log."""
        return self.entries[EVENTS].size

    @cached_property
    def manifest_line(self) -> bytes:
        """The manifest as it was packed, as much of it as can be read: what is wrong then shows in its seal."""
        parts: list[bytes] = []
        with suppress(Damaged):
            parts.extend(self.content_of(self.entries[MANIFEST]))
        return b"".join(parts)

    @cached_property
    def index(self) -> Index:
        """The index; a hint, checked against the rows by `verify`. Raises `Damaged` where it cannot be read."""
        entry = self.entries[INDEX]
        if entry.size > MOST_INDEX_BYTES:
            raise Damaged(f"{self.source.name}: an index of {entry.size:,} bytes", file=self.source.name)
        try:
            return msgspec.json.decode(b"".join(self.content_of(entry)), type=Index)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Damaged(f"{self.source.name}: the index cannot be read: {error}", file=self.source.name) from None

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `result.json` said."""
        try:
            return msgspec.json.decode(self.index.result, type=dict[str, Any])
        except msgspec.DecodeError:
            return {}

    @property
    def live(self) -> bool:
        """A bundle is never written live."""
        return False

    @property
    def disposition(self) -> str:
        """As sealed, or `damaged`."""
        return self.manifest.disposition if self.manifest is not None else "damaged"

    @property
    def published(self) -> Path | None:
        """The bundle itself stands for what was published."""
        return self.path

    def stored(self, entry: Entry) -> Iterator[bytes]:
        """The stored bytes of an entry, its header and digest checked. Raises `Damaged`."""
        begins, digest = self._offsets[entry.name], hashlib.sha256()
        if self.source.read(begins - entry.header_size, entry.header_size) != local_header(entry):
            raise self._broken(entry, "its header is not its own")
        for at in range(0, entry.stored, STEP):
            part = self.source.read(begins + at, min(STEP, entry.stored - at))
            digest.update(part)
            yield part
        if digest.hexdigest() != entry.sha256:
            raise self._broken(entry, "not the bytes that were packed")

    def content_of(self, entry: Entry) -> Iterator[bytes]:
        """The content of an entry, checked, in parts of bounded size; never more than its size says."""
        if entry.method == STORED:
            yield from self.stored(entry)
            return
        inflate, left = zlib.decompressobj(-zlib.MAX_WBITS), entry.size
        for part in self.stored(entry):
            pending = part
            while pending and not inflate.eof:
                data = self._inflated(inflate, pending, entry)
                pending, left = inflate.unconsumed_tail, left - len(data)
                if left < 0:
                    raise self._broken(entry, "larger than it says")
                if data:
                    yield data
            if pending or inflate.unused_data:
                raise self._broken(entry, "bytes behind its end")
        if left or not inflate.eof:
            raise self._broken(entry, "shorter than it says")

    def _inflated(self, inflate: Any, data: bytes, entry: Entry) -> bytes:
        try:
            out: bytes = inflate.decompress(data, STEP)
        except zlib.error as error:
            raise self._broken(entry, str(error)) from None
        return out

    def block(self, number: int) -> bytes:
        """The raw rows of one block of the log, inflated alone: for those who look at one place. Not checked whole."""
        entry, blocks = self.entries[EVENTS], self.index.blocks
        begins = blocks.stored[number]
        ends = blocks.stored[number + 1] if number + 1 < len(blocks.stored) else entry.stored
        data = self.source.read(self._offsets[EVENTS] + begins, ends - begins)
        return self._inflated(zlib.decompressobj(-zlib.MAX_WBITS), data, entry)

    def stream_blob(self, reference: dict[str, Any]) -> Iterator[bytes]:
        """A content's bytes. Raises `Damaged` with `state` `withheld`, `missing` or `corrupt`."""
        name = resource_name(str(reference["name"]), str(reference["type"]))
        entry = self.entries.get(name)
        if entry is None:
            withheld = any(left_out == reference["name"] for left_out, _, _ in self.container.withheld)
            state = "withheld" if withheld else "missing"
            raise Damaged(f"the content {reference['name'][:12]} is {state}", blob=reference["name"], state=state)
        digest = hashlib.sha256()
        for part in self.content_of(entry):
            digest.update(part)
            yield part
        if digest.hexdigest() != reference["name"]:
            raise Damaged(
                f"the content {reference['name'][:12]} is not what was written", blob=reference["name"], state="corrupt"
            )

    def _broken(self, entry: Entry, detail: str) -> Damaged:
        return Damaged(
            f"{self.source.name}: {entry.name}: {detail}",
            file=self.source.name,
            offset=self._offsets[entry.name],
            entry=entry.name,
            state="corrupt",
        )


class _PackedLog:
    """The log of a bundle as a file that rows are read from."""

    name = EVENTS

    def __init__(self, recording: PackedRecording) -> None:
        self._recording = recording

    def open(self, mode: str) -> BinaryIO:
        """The raw log; damage in the stored bytes ends it early, as a cut file would."""
        return io.BufferedReader(_Inflating(self._recording), STEP)


class _Inflating(io.RawIOBase):
    def __init__(self, recording: PackedRecording) -> None:
        self._parts = recording.content_of(recording.entries[EVENTS])
        self._left = b""
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            try:
                self._left = next(self._parts)
            except (StopIteration, Damaged):
                return 0
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size
