"""Reading a log's files row by row: the longest good content, always, and every damage with its place.

A row is good when its bytes hash to what stands in it, linked to the row before. After a damaged line the chain goes on
from the hash that the line still carries, or from the one its bytes give, so one damaged row costs one row, not the
rest of the story. Behind a hole the first row cannot be checked against its neighbour before; the one after it can.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Literal, NamedTuple, Protocol

import msgspec

from worldline.model import events
from worldline.model.events import Event

_LONGEST = 2 * events.MAX_ROW  # a cut row and the good one behind it
_HEADS = 8  # how many damaged lines back a row may still link to
_SYNCED = 65_536  # how many rows back a `sync` mark is still compared
_START = b'{"seq":'
_BUFFERED = 256 << 10  # bytes that are read from a file at once


class Damage(msgspec.Struct, frozen=True):
    """One damaged place. `offset` is the byte in `file`; `seq` is the row expected there.

    Kinds: `changed` (hash), `malformed`, `order` (a row out of place), `gap` (rows missing before it), `zeros` (NUL
    padding, as file systems leave after a crash), `torn` (the file ends inside a line), `unfit` (the row is what was
    written, but its fields are not what a reader can make sense of; `Recording.events` leaves it out).
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
    torn: bool


class LogFile(Protocol):
    """A file of the log: a path, or what stands for one in a bundle."""

    @property
    def name(self) -> str:
        """Its name, for reports."""

    def open(self, mode: Literal["rb"], buffering: int) -> BinaryIO:
        """Open it for reading bytes, some `buffering` at once."""


class RowReader:
    """Iterates over the good rows of `files`, in order; `damages` fills up on the way, `head` and `seq` follow."""

    def __init__(self, files: Iterable[LogFile]) -> None:
        self._files = list(files)
        self.damages: list[Damage] = []
        self.seq = 0  # one more than the last good row's
        self.head = events.GENESIS  # the last good row's hash
        self.leaf = b""
        self.bytes = 0  # of good rows
        self.at = ("", 0)  # file and byte of the last good row
        self.false_sync: int | None = None  # the first row whose `sync` names other rows than those before it
        self._hashes: deque[str] = deque(maxlen=_SYNCED)  # of the last good rows: `sync` names how they start
        self._heads = [events.GENESIS]  # what the next row may link to; several after a damaged line
        self._verified = 0  # one more than the seq of the last row that linked
        self._unread = 0  # damaged lines since the last good row: each may have been one
        self._hole = False  # whether what stood directly before is unknown

    def __iter__(self) -> Iterator[Event]:
        files = iter(self._files)
        for path in files:
            with path.open("rb", _BUFFERED) as file:
                name, offset = path.name, 0
                while raw := file.readline(_LONGEST):
                    event = self._next(raw)
                    if event is None:
                        yield from self._looked_at(_Log(path, file, offset, raw, files))
                        return
                    self.at = name, offset
                    offset += len(raw)
                    yield event

    def _next(self, raw: bytes) -> Event | None:
        """The row of a line that is good and the next one, as long as nothing is damaged; None of any other line.

        What `_read` finds of such a line, at a third of the time: it looks at no line around it.
        """
        leaf = events.leaf(raw[: -events.SUFFIX])
        head = events.link(self.head, leaf)
        if raw[-events.SUFFIX :] != events.suffix(head):
            return None
        try:
            event = events.read_hashed(raw)
        except ValueError:
            return None
        if event.seq != self.seq:
            return None
        if event.sync is not None:
            self._check_sync(event)
        self._hashes.append(event.h)
        self.seq, self.leaf, self.head = event.seq + 1, leaf, head
        self.bytes += len(raw)
        return event

    def _looked_at(self, log: _Log) -> Iterator[Event]:
        """The good rows from the first line on that is not: each line is seen with the one behind it."""
        self._heads, self._verified = [self.head], self.seq
        lines = log.lines()
        line = next(lines, None)
        while line is not None:
            after = next(lines, None)
            event = self._read(line, after)
            if event is not None:
                self.bytes += len(line.raw)
                self.at = line.file, line.offset
                yield event
            line = after

    def _read(self, line: _Line, after: _Line | None) -> Event | None:
        try:
            event = events.read(line.raw)
        except ValueError as error:
            self._unreadable(line, str(error))
            return None
        leaf = events.leaf(line.raw[: -events.SUFFIX])
        linked = any(events.link(head, leaf).hex() == event.h for head in self._heads)
        kind, detail = self._objection(event, linked, after)
        if kind:
            self._damaged(line, kind, detail, event.seq if kind == "changed" else self.seq + self._unread)
        # A gap speaks of the rows before this one, unless nothing at all vouches for the row itself.
        if kind in ("changed", "order") or (kind == "gap" and not (linked or self._hole or after)):
            self._unread, self._hole = self._unread + 1, False
            self._remember(events.link(self._heads[-1], leaf), bytes.fromhex(event.h))
            return None
        self._check_sync(event)
        self._hashes.append(event.h)
        self.seq, self.leaf, self.head = event.seq + 1, leaf, bytes.fromhex(event.h)
        self._heads, self._unread, self._hole = [self.head], 0, False
        if linked:
            self._verified = self.seq
        return event

    def _check_sync(self, event: Event) -> None:
        if event.sync is not None and self.false_sync is None and not self.damages:
            n, start = event.sync
            back = event.seq - n
            if not 0 < n <= event.seq or (back < len(self._hashes) and self._hashes[-1 - back][:16] != start):
                self.false_sync = event.seq

    def _objection(self, event: Event, linked: bool, after: _Line | None) -> tuple[str, str]:
        """What is wrong with a row's place or bytes: a kind of damage and its detail; an empty kind is nothing."""
        expected = self.seq + self._unread
        misplaced = "order", f"row {event.seq} stands where row {expected} belongs"
        if event.seq < (self._verified if linked else self.seq):
            return misplaced
        if not linked:
            changed = "changed", f"the hash of row {event.seq} does not match"
            if event.seq == expected and not self._hole:
                return changed
            following = _seq(after)
            if following is not None and following != event.seq + 1:
                return misplaced if following == expected else changed
        if event.seq > expected:
            return "gap", f"rows {expected} to {event.seq - 1} are missing"
        return "", ""

    def _unreadable(self, line: _Line, error: str) -> None:
        if _is_padding(line.raw):
            kind, detail = "zeros", f"{len(line.raw):,} NUL bytes: padding that a crash left"
        elif line.torn:
            kind, detail = "torn", "the line is cut before its end"
        else:
            kind, detail = "malformed", error
        self._damaged(line, kind, detail, self.seq + self._unread)
        carried = events.carried(line.raw)
        self._hole = carried is None
        if carried is not None:  # what it says its hash is, and what it is if only that text was damaged
            self._remember(events.link(self._heads[-1], events.leaf(line.raw[: -events.SUFFIX])), carried)
        if kind == "malformed":  # behind padding and cut files only a gap says how many rows are lost
            self._unread += 1

    def _remember(self, *heads: bytes) -> None:
        self._heads = [*self._heads, *heads][-_HEADS:]

    def _damaged(self, line: _Line, kind: str, detail: str, seq: int) -> None:
        self.damages.append(Damage(kind, line.file, line.offset, seq, detail))


class _Log(NamedTuple):
    """The log from one place on: an open file, the line that was read there, and the files behind it."""

    path: LogFile
    file: BinaryIO
    offset: int
    raw: bytes
    files: Iterator[LogFile]

    def lines(self) -> Iterator[_Line]:
        """Its lines, each with its place, cut where two stand in one."""
        yield from _lines(self.path.name, self.file, self.offset, self.raw)
        for path in self.files:
            with path.open("rb", _BUFFERED) as file:
                yield from _lines(path.name, file)


def _lines(name: str, file: BinaryIO, offset: int = 0, begun: bytes = b"") -> Iterator[_Line]:
    while raw := _read_line(file, begun):
        begun = b""
        whole = raw[-1:] == b"\n" or len(raw) >= _LONGEST
        parts = _parts(raw)
        for part in parts:
            yield _Line(name, offset, part, part is parts[-1] and not whole)
            offset += len(part)


def _read_line(file: BinaryIO, begun: bytes = b"") -> bytes:
    """The next line, LF included, or as much of it as two rows may take. Behind NUL padding a row comes whole."""
    raw = begun or file.readline(_LONGEST)
    if raw[:1] == b"\0" and raw[-1:] != b"\n" and not _is_padding(raw):
        raw += file.readline(_LONGEST)
    return raw


def _parts(raw: bytes) -> list[bytes]:
    """One line as its parts: where a row was cut before its LF, padding and the next good row stand behind it."""
    if _is_padding(raw):
        return [raw]
    at = raw.rfind(_START, 1)
    if at < 0 or _is_row(raw) or not _is_row(raw[at:]):
        at = len(raw)
    text = raw[:at].rstrip(b"\0")
    return [part for part in (text, raw[len(text) : at], raw[at:]) if part]


def _is_padding(raw: bytes) -> bool:
    """Whether a line is NUL bytes alone: compared, since stripping them takes many times as long."""
    return raw[:1] == b"\0" and raw == bytes(len(raw))


def _is_row(raw: bytes) -> bool:
    try:
        events.read(raw)
    except ValueError:
        return False
    return True


def _seq(line: _Line | None) -> int | None:
    """The seq that a line says, None where it says none."""
    try:
        return None if line is None else events.read(line.raw).seq
    except ValueError:
        return None
