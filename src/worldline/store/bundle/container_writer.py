"""Writing a container: entries one after the other, then what makes them canonical (`container`).

A header is written over its place once the sizes behind it are known; nothing is held in memory but one part.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from worldline.errors import Ineligible
from worldline.store import layout
from worldline.store.bundle import container
from worldline.store.bundle.container import DEFLATED, STORED, Container, Entry

LEVEL = 6


class ContainerWriter:
    """Writes a new file, readable by its owner only. Raises `FileExistsError` where there is one."""

    def __init__(self, path: Path) -> None:
        self._file = layout.create_for_writing(path)
        self.entries: list[Entry] = []
        self._at = 0

    def __enter__(self) -> ContainerWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        os.close(self._file)

    def store(self, name: str, parts: Iterable[bytes]) -> None:
        """Add an entry whose bytes stand in the file as they are."""
        self.add(name, STORED, ((part, part) for part in parts))

    def deflate(self, name: str, parts: Iterable[bytes]) -> None:
        """Add an entry that is compressed."""
        self.add(name, DEFLATED, deflated(parts))

    def add(self, name: str, method: int, parts: Iterable[tuple[bytes, bytes]]) -> None:
        """Add one entry of (content, stored bytes) pairs. Raises `Ineligible` for one too many."""
        adding = self.begin(name, method)
        for content, data in parts:
            adding.part(content, data)
        adding.end()

    def begin(self, name: str, method: int) -> Adding:
        """Begin one entry, for who has its parts one by one; no other is added before its end. Raises as `add` does."""
        if len(self.entries) == container.MOST_ENTRIES - 1:
            raise Ineligible(f"a bundle has at most {container.MOST_ENTRIES:,} entries", reasons=["too many contents"])
        begins = self._at
        self._at += 30 + len(name) + 20
        return Adding(name, method, self._write, lambda entry: self._ended(entry, begins))

    def copy(self, entry: Entry, parts: Iterable[bytes]) -> None:
        """Add an entry of another container: its header and its stored bytes as they stand there."""
        for part in parts:
            self._write(part)
        self.entries.append(entry)

    def _ended(self, entry: Entry, begins: int) -> None:
        self.entries.append(entry)
        self._overwrite(container.local_header(entry), begins)

    def finish(
        self,
        seal: str,
        withheld: tuple[tuple[str, int, str], ...],
        format: str = container.FORMAT,  # noqa: A002 the container's own word
    ) -> int:
        """Add `container.json` and the directory; returns the file's size, which is on the disk then."""
        data = container.encode(Container(format, tuple(self.entries), seal, withheld))
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


class Adding:
    """An entry under way: what its header has to say is known at its end."""

    def __init__(self, name: str, method: int, write: Callable[[bytes], None], ended: Callable[[Entry], None]) -> None:
        self._name, self._method = name, method
        self._write, self._ended = write, ended
        self._digest = hashlib.sha256()
        self._crc = self._size = self._stored = 0

    def part(self, content: bytes, stored: bytes) -> None:
        """The next bytes of the content, and how they are stored."""
        self._crc = zlib.crc32(content, self._crc)
        self._size += len(content)
        self._stored += len(stored)
        self._digest.update(stored)
        self._write(stored)

    def end(self) -> None:
        """All parts have come."""
        self._ended(Entry(self._name, self._method, self._size, self._stored, self._crc, self._digest.hexdigest()))


def deflated(parts: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Content and its stored bytes, part by part."""
    squeeze = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    for part in parts:
        yield part, squeeze.compress(part)
    yield b"", squeeze.flush()
