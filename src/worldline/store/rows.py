"""Reading a log's files row by row: the longest good content, always, and every damage with its place.

A row is good when its bytes hash to what stands in it, linked to the row before. After a damaged line the chain goes on
from the hash that line still carries, so one changed row costs one row, not the rest of the story.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from worldline.model import events
from worldline.model.events import Event


class Damage(msgspec.Struct, frozen=True):
    """One damaged place. `offset` is the byte in `file`; `seq` is the row expected there.

    Kinds: `changed` (hash), `malformed`, `order` (a row out of place), `gap` (rows missing before it), `zeros` (NUL
    padding, as file systems leave after a crash), `torn` (the last line is cut).
    """

    kind: str
    file: str
    offset: int
    seq: int
    detail: str


class _Line(msgspec.Struct, frozen=True):
    file: str
    offset: int
    raw: bytes


class RowReader:
    """Iterates over the good rows of `files`, in order; `damages` fills up on the way, `head` and `seq` follow."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = list(files)
        self.damages: list[Damage] = []
        self.seq = 0  # the row expected next
        self.head: bytes | None = events.GENESIS
        self.leaf = b""
        self.bytes = 0  # of good rows

    def __iter__(self) -> Iterator[Event]:
        for line in self._lines():
            event = self._read(line)
            if event is not None:
                self.bytes += len(line.raw)
                yield event

    def _lines(self) -> Iterator[_Line]:
        for path in self._files:
            with path.open("rb") as file:
                offset = 0
                while raw := _read_line(file):
                    yield _Line(path.name, offset, raw)
                    offset += len(raw)

    def _read(self, line: _Line) -> Event | None:
        raw = line.raw
        try:
            event = events.read(raw)
        except ValueError as error:
            self._damaged(line, *_describe(raw, str(error)))
            # The hash that the line still carries, if it does, is what the next row links to.
            self.head, self.seq = _carried(raw), self.seq + 1
            return None
        if event.seq != self.seq:
            if event.seq < self.seq:
                self._damaged(line, "order", f"row {event.seq} stands where row {self.seq} belongs")
                return None
            if not (self.damages and self.head is None):
                self._damaged(line, "gap", f"rows {self.seq} to {event.seq - 1} are missing")
            self.head = None
        self.seq = event.seq + 1
        before, self.head = self.head, bytes.fromhex(event.h)
        self.leaf = events.leaf(raw[: -events.SUFFIX])
        if before is not None and events.link(before, self.leaf) != self.head:
            self._damaged(line, "changed", f"the hash of row {event.seq} does not match", event.seq)
            return None
        return event

    def _damaged(self, line: _Line, kind: str, detail: str, seq: int | None = None) -> None:
        self.damages.append(Damage(kind, line.file, line.offset, self.seq if seq is None else seq, detail))


def _read_line(file: BinaryIO) -> bytes:
    """The next line, LF included; a line longer than a row may be comes whole up to its LF, NUL padding by itself."""
    raw = file.readline(events.MAX_ROW + 1)
    if raw[:1] == b"\0" and (text := raw.lstrip(b"\0")):
        file.seek(-len(text), 1)
        return raw[: len(raw) - len(text)]
    return raw


def _describe(raw: bytes, error: str) -> tuple[str, str]:
    if not raw.strip(b"\0"):
        return "zeros", f"{len(raw):,} NUL bytes: padding that a crash left"
    if raw[-1:] != b"\n":
        return "torn", "the line is cut before its end"
    return "malformed", error


def _carried(raw: bytes) -> bytes | None:
    digest = raw[-events.SUFFIX + 6 : -3]
    if raw[-events.SUFFIX : -events.SUFFIX + 6] == b',"h":"' and raw[-3:] == b'"}\n':
        try:
            return bytes.fromhex(digest.decode("ascii"))
        except (UnicodeDecodeError, ValueError):
            return None
    return None
