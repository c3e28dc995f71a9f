"""Reading the entries of a bundle: stored bytes checked, contents inflated in parts of bounded size, never held whole.

The first parts are small and the later ones larger, so that whoever needs only a beginning reads little more than that.
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from worldline.errors import Damaged
from worldline.store.bundle.container import EVENTS, STORED, Container, Entry, local_header
from worldline.store.source import Source

FIRST_STEP, STEP = 64 << 10, 1 << 20


class Entries:
    """The entries of a source whose container is known, by name."""

    def __init__(self, source: Source, container: Container) -> None:
        self._source = source
        self._offsets = container.offsets()
        self.by_name = {entry.name: entry for entry in container.entries}

    def stored(self, entry: Entry) -> Iterator[bytes]:
        """The stored bytes of an entry, its header and digest checked. Raises `Damaged`."""
        begins, digest = self._offsets[entry.name], hashlib.sha256()
        if self._source.read(begins - entry.header_size, entry.header_size) != local_header(entry):
            raise self._broken(entry, "its header is not its own")
        for part in self._parts(begins, begins + entry.stored):
            digest.update(part)
            yield part
        if digest.hexdigest() != entry.sha256:
            raise self._broken(entry, "not the bytes that were packed")

    def content(
        self, entry: Entry, through: Callable[[Iterator[bytes]], Iterator[bytes]] = lambda parts: parts
    ) -> Iterator[bytes]:
        """The content of an entry, checked, in parts of bounded size; never more than its size says.

        Its stored bytes pass `through` a function on their way.
        """
        parts = through(self.stored(entry))
        return parts if entry.method == STORED else self._inflated(parts, entry, entry.size)

    def content_from(self, entry: Entry, stored: int, left: int) -> Iterator[bytes]:
        """The last `left` bytes of a content, behind the full flush at byte `stored`: no digest speaks for them."""
        begins = self._offsets[entry.name]
        if not 0 <= stored < entry.stored or left < 0:
            raise self._broken(entry, f"nothing begins at its byte {stored:,}")
        return self._inflated(self._parts(begins + stored, begins + entry.stored), entry, left)

    def _parts(self, at: int, end: int) -> Iterator[bytes]:
        step = FIRST_STEP
        while at < end:
            yield self._source.read(at, min(step, end - at))
            at, step = at + step, min(STEP, step * 2)

    def _inflated(self, parts: Iterator[bytes], entry: Entry, left: int) -> Iterator[bytes]:
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        for part in parts:
            pending = part
            while pending and not inflate.eof:
                try:
                    data = inflate.decompress(pending, STEP)
                except zlib.error as error:
                    raise self._broken(entry, str(error)) from None
                pending, left = inflate.unconsumed_tail, left - len(data)
                if left < 0:
                    raise self._broken(entry, "larger than it says")
                if data:
                    yield data
            if pending or inflate.unused_data:
                raise self._broken(entry, "bytes behind its end")
        if left or not inflate.eof:
            raise self._broken(entry, "shorter than it says")

    def _broken(self, entry: Entry, detail: str) -> Damaged:
        return Damaged(
            f"{self._source.name}: {entry.name}: {detail}",
            file=self._source.name,
            offset=self._offsets[entry.name],
            entry=entry.name,
            state="corrupt",
        )


class PackedLog:
    """The log of a bundle as a file that rows are read from; what is wrong with its bytes ends it early (`failure`).

    `crc` and `size` are of the content as far as it was read.
    """

    name = EVENTS

    def __init__(self, parts: Iterator[bytes], watch: Callable[[bytes], None] = lambda part: None) -> None:
        self._parts = parts
        self._watch = watch
        self.failure: Damaged | None = None
        self.crc = self.size = 0

    def open(self, mode: str, buffering: int = STEP) -> BinaryIO:
        """The raw rows, once; they come in parts of their own."""
        return io.BufferedReader(_Inflating(self), STEP)

    def next_part(self) -> bytes:
        """The next bytes, or none at the end."""
        try:
            part = next(self._parts, b"")
        except Damaged as error:
            self.failure = error
            return b""
        self._watch(part)
        self.crc, self.size = zlib.crc32(part, self.crc), self.size + len(part)
        return part


class _Inflating(io.RawIOBase):
    def __init__(self, log: PackedLog) -> None:
        self._log = log
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._left = self._left or self._log.next_part()
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size
