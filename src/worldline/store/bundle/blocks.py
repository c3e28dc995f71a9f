"""Whether the blocks of a bundle's log are what its index says: each inflated alone gives the same as in its place.

Checked in the one pass in which the log is read: its stored bytes go through a second inflater that forgets at every
border, and what both give is compared block by block.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

STEP = 1 << 20


class BlockCheck:
    """Fed with the stored bytes of the log and with its content. `stored` and `raw` are where blocks begin in both."""

    def __init__(self, stored: list[int], raw: list[int]) -> None:
        self._possible = stored[:1] == [0] == raw[:1] and all(a < b for c in (stored, raw) for a, b in pairwise(c))
        self._borders = stored[1:]
        self._alone = _Spans(raw)
        self._inside = _Spans(raw)
        self._at = self._number = 0
        self._inflate: Any = zlib.decompressobj(-zlib.MAX_WBITS)

    def stored(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        """The stored bytes, on their way to the reader."""
        for part in parts:
            yield part
            if self._possible:
                self._look_at(part)

    def _look_at(self, part: bytes) -> None:
        while part:
            border = self._borders[self._number] if self._number < len(self._borders) else None
            here = part if border is None else part[: border - self._at]
            part, self._at = part[len(here) :], self._at + len(here)
            try:
                while here:
                    self._alone.add(self._inflate.decompress(here, STEP))
                    here = self._inflate.unconsumed_tail
            except zlib.error:
                self._possible = False
                return
            if self._at == border:
                self._number += 1
                self._alone.next()
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)

    def content(self, part: bytes) -> None:
        """The content, as it comes out in its place."""
        if self._possible:
            self._inside.cut(part)

    @property
    def fits(self) -> bool:
        """Whether every block was what the index says, once all was read."""
        return self._possible and self._alone.crcs == self._inside.crcs


class _Spans:
    """Sizes and CRCs of the spans of a content."""

    def __init__(self, raw: list[int]) -> None:
        self._sizes = [end - begin for begin, end in pairwise(raw)]
        self.crcs: list[tuple[int, int]] = [(0, 0)]

    def add(self, part: bytes) -> None:
        """More of the span under way."""
        size, crc = self.crcs[-1]
        self.crcs[-1] = size + len(part), zlib.crc32(part, crc)

    def next(self) -> None:
        """The next span begins."""
        self.crcs.append((0, 0))

    def cut(self, part: bytes) -> None:
        """More of the content, cut where the spans end."""
        while len(self.crcs) <= len(self._sizes):
            room = self._sizes[len(self.crcs) - 1] - self.crcs[-1][0]
            self.add(part[:room])
            part = part[room:]
            if len(part) == 0 and self.crcs[-1][0] < self._sizes[len(self.crcs) - 1]:
                return
            self.next()
        self.add(part)
