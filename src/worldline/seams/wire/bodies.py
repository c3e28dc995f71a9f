"""How the body of a response is read, by its framing (RFC 9112, 6.3): in transfer chunks, by its length, or to the end.

Each reader is fed what came and gives back the pieces that this completes. None of them waits, and what stands before a
fault is given out before it.
"""

from __future__ import annotations

import re
from typing import Protocol

from worldline.seams.wire.http import Piece, ResponseHead

HELD_MAX = 256 * 1024
"""Bytes of one unfinished transfer chunk that are held back; a longer chunk is given in parts."""

LINE_MAX = 256 * 1024
"""Bytes that the line of a chunk's size may have, and all trailers together."""

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,20})(?:;[^\n]*?)?[ \t]*")
_BLANK = re.compile(rb"\n\r?\n")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\0\r\n]*")


class Body(Protocol):
    """A body on its way in. `ended` once it is whole; `fault` says what in it is no HTTP/1.1."""

    ended: bool
    fault: str | None

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces that `data` completes."""

    def close(self) -> list[Piece]:
        """The connection ended: what was held back. `ended` where that is how the body ends."""

    def rest(self) -> bytes:
        """What came behind the end of the body."""


def body_of(head: ResponseHead) -> Body:
    """The reader for a response's body."""
    if head.framing == "chunked":
        return Chunked()
    return Plain(0 if head.framing == "none" else head.length)


class Plain:
    """A body of `length` bytes, or, without one, up to the end of the connection: a piece is what one read gave."""

    fault: str | None = None

    def __init__(self, length: int | None) -> None:
        self._left = length
        self._rest = b""
        self.ended = length == 0

    def feed(self, data: bytes) -> list[Piece]:
        """What came, as one piece."""
        if self._left is not None:
            data, self._rest = data[: self._left], self._rest + data[self._left :]
            self._left -= len(data)
            self.ended = self._left == 0
        return [Piece(data, True)] if data else []

    def close(self) -> list[Piece]:
        """The end of a body without a length."""
        self.ended = self.ended or self._left is None
        return []

    def rest(self) -> bytes:
        """What came behind the length."""
        return self._rest


class Chunked:
    """A body in transfer chunks: each is one piece, given out with its last byte, before its line end came."""

    def __init__(self) -> None:
        self.ended = False
        self.fault: str | None = None
        self._came = bytearray()
        self._left = 0  # bytes of the chunk that are to come
        self._held = bytearray()  # those of it that came
        self._line_end = b""  # what of the line end behind a chunk is to come
        self._trailers = False

    def feed(self, data: bytes) -> list[Piece]:
        """The chunks that end in what came, and parts of one that is too long to be held."""
        self._came += data
        pieces: list[Piece] = []
        at = 0
        while not self.ended and self.fault is None:
            before = at
            if self._left:
                at = self._data(at, pieces)
            elif self._line_end:
                at = self._behind(at)
            elif self._trailers:
                at = self._end(at)
            else:
                at = self._size(at)
            if at == before:
                break
        del self._came[:at]
        return pieces

    def close(self) -> list[Piece]:
        """The part of a chunk in which the connection ended."""
        held, self._held = bytes(self._held), bytearray()
        return [Piece(held, False)] if held else []

    def rest(self) -> bytes:
        """What came behind the last trailer."""
        return bytes(self._came) if self.ended else b""

    def _data(self, at: int, pieces: list[Piece]) -> int:
        part = self._came[at : at + self._left]
        self._left -= len(part)
        self._held += part
        if part and (not self._left or len(self._held) > HELD_MAX):
            pieces.append(Piece(bytes(self._held), not self._left))
            self._held.clear()
            self._line_end = b"" if self._left else b"\r\n"
        return at + len(part)

    def _behind(self, at: int) -> int:
        found = bytes(self._came[at : at + len(self._line_end)])
        if not self._line_end.startswith(found):
            self.fault = "a chunk is longer than its size says"
        self._line_end = self._line_end[len(found) :]
        return at + len(found)

    def _size(self, at: int) -> int:
        end = self._came.find(b"\r\n", at)
        if end < 0:
            self._bound(at)
            return at
        size = _SIZE.fullmatch(self._came, at, end)
        if size is None:
            self.fault = f"{bytes(self._came[at : min(end, at + 40)])!r} is no size of a chunk"
            return at
        self._left = int(size[1], 16)
        self._trailers = self._left == 0
        return end + 2

    def _end(self, at: int) -> int:
        if self._came.startswith((b"\r\n", b"\n"), at):
            self.ended = True
            return self._came.index(b"\n", at) + 1
        blank = _BLANK.search(self._came, at)
        if blank is None:
            self._bound(at)
            return at
        lines = bytes(self._came[at : blank.start()]).split(b"\n")
        if not all(_TRAILER.fullmatch(line.removesuffix(b"\r")) for line in lines):
            self.fault = "what stands behind its last chunk are no trailers"
            return at
        self.ended = True
        return blank.end()

    def _bound(self, at: int) -> None:
        if len(self._came) - at > LINE_MAX:
            self.fault = "the line of a chunk's size, or its trailers, do not end"
