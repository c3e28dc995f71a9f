"""Writing a container: entries one after the other, then what makes them canonical (`container`).

A header is written over its place once the sizes behind it are known; nothing is held in memory but one part.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
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
        if len(self.entries) == container.MOST_ENTRIES - 1:
            raise Ineligible(f"a bundle has at most {container.MOST_ENTRIES:,} entries", reasons=["too many contents"])
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


def deflated(parts: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Content and its stored bytes, part by part."""
    squeeze = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    for part in parts:
        yield part, squeeze.compress(part)
    yield b"", squeeze.flush()
