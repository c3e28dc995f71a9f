"""Finding a row by its seq or its time without an index, by bisection over the bytes of the log.

A probe is one read: it goes to the next border of two lines and sees with which `seq` and `t` the row there begins. In
a log of a million rows some twenty find the place. What stands there is checked: the row, and the one behind it, are
linked to their neighbours. Where anything is not as in a whole log, the log is read from its beginning instead, and
what is found is what a reader of all rows finds.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from worldline.errors import RecordingNotFound
from worldline.model import events
from worldline.model.events import Event
from worldline.store import layout
from worldline.store.rows import LogFile, RowReader
from worldline.store.source import FileSource, Source

_STEPS = (4096, 28 * 1024, events.MAX_ROW, events.MAX_ROW)  # bytes of the reads that look for a border: over a row
_LONGEST_BEGIN = 64  # bytes
_NEAR = 16 * 1024  # bytes that are read whole in the end
_MOST_OPEN = 64  # chunks that are held open: those in the middles of middles are read again and again
_BEGIN = re.compile(rb'\{"seq":([0-9]{1,19}),"t":([0-9]{1,19}),"dt":')
_AFTER_ALL = 10**19
_SEQ, _T = 1, 2


class Found(NamedTuple):
    """A row, the byte of the log at which it begins (None where the log was read from its beginning), and the reads."""

    event: Event
    offset: int | None
    probes: int


class SeekableLog:
    """A log to be sought in: its bytes, and its files for where they are not whole. Safe from one thread at a time."""

    def __init__(self, source: Source, files: Sequence[LogFile]) -> None:
        self._source = source
        self._files = files

    @classmethod
    def of(cls, attempt: Path) -> SeekableLog:
        """The log of an attempt directory as it stands now; rows that come later are not found."""
        log = JoinedLog(attempt)
        return cls(log, log.files)

    def by_seq(self, seq: int) -> Found | None:
        """The row `seq`, or the last good one before it where there is none; None where the first is behind it."""
        return self._sought(_SEQ, seq)

    def by_time(self, t: int) -> Found | None:
        """The last good row at or before `t` (ns since the run began), or None where the first one is later."""
        return self._sought(_T, t)

    def _sought(self, key: int, wanted: int) -> Found | None:
        search = _Search(self._source, key, wanted)
        try:
            return search.found()
        except _NotWhole:
            last = None
            for event in RowReader(self._files):
                if (event.seq if key == _SEQ else event.t) <= wanted:
                    last = event
            return None if last is None else Found(last, None, search.probes)


class _NotWhole(Exception):
    """Something on the way is not what a whole log has there."""


class _Begin(NamedTuple):
    """Where a row begins, and its key."""

    offset: int
    key: int


class _Search:
    """One search. `key` is which of the two numbers a row begins with is compared; `probes` counts the reads."""

    def __init__(self, source: Source, key: int, wanted: int) -> None:
        self._source = source
        self._key = key
        self._wanted = wanted
        self.probes = 0

    def found(self) -> Found | None:
        """The last row whose key is not above the wanted one. Raises `_NotWhole`."""
        first = self._next_row(0, self._source.size)
        if first is None:
            return None
        if first.offset != 0:
            raise _NotWhole
        if first.key > self._wanted:
            return None
        low, end = first, _Begin(self._source.size, _AFTER_ALL)  # it begins in [low, end)
        while end.offset - low.offset > _NEAR:
            middle = (low.offset + end.offset) // 2
            row = self._next_row(middle, end.offset)
            if row is not None and not low.key <= row.key <= end.key:
                raise _NotWhole
            if row is not None and row.key <= self._wanted:
                low = row
            else:
                end = _Begin(middle, end.key if row is None else row.key)
        return self._among(low.offset, end.offset)

    def _next_row(self, at: int, end: int) -> _Begin | None:
        """The first row that begins in [at, end), or None."""
        begin, data = max(0, at - 1), b""  # whether a row begins at `at` the byte before it says
        for step in _STEPS:
            data += self._read(begin + len(data), step)
            border = data.find(b"\n") + 1 if at else 0
            if border or not at:
                if begin + border >= end:
                    return None
                if match := _BEGIN.match(data, border):
                    return _Begin(begin + border, int(match[self._key]))
                if len(data) - border > _LONGEST_BEGIN:
                    break
            if begin + len(data) >= end:
                return None
        raise _NotWhole

    def _among(self, low: int, end: int) -> Found | None:
        """The last row whose key fits, of those that begin in [low, end), checked with the ones around it."""
        begin = max(0, low - events.SUFFIX)
        data = self._read(begin, end - begin + _STEPS[0])
        before, at = _carried(data[: low - begin]) if low else events.GENESIS, low - begin
        row: tuple[int, bytes, bytes] | None = None  # where it begins, its line, the hash before it
        while begin + at < self._source.size:
            line, data = self._line(begin, data, at)
            match = _BEGIN.match(line)
            if match is None:
                raise _NotWhole
            if int(match[self._key]) > self._wanted:
                _check(line, before)
                break
            row = begin + at, line, before
            at, before = at + len(line), _carried(line)
        if row is None:
            raise _NotWhole
        return Found(_check(row[1], row[2]), row[0], self.probes)

    def _line(self, begin: int, data: bytes, at: int) -> tuple[bytes, bytes]:
        """The line at `at` of `data`, and the data, read on where the line ends behind it. Raises `_NotWhole`."""
        while (border := data.find(b"\n", at)) < 0:
            if begin + len(data) >= self._source.size or len(data) - at > events.MAX_ROW:
                raise _NotWhole
            data += self._read(begin + len(data), events.MAX_ROW)
        return data[at : border + 1], data

    def _read(self, offset: int, size: int) -> bytes:
        self.probes += 1
        return self._source.read(offset, min(size, self._source.size - offset))


def _carried(line: bytes) -> bytes:
    """The hash at the end of a line. Raises `_NotWhole`."""
    h = events.carried(line)
    if h is None:
        raise _NotWhole
    return h


def _check(line: bytes, before: bytes) -> Event:
    """The row of a line that hashes to what it says, behind the one with the hash `before`. Raises `_NotWhole`."""
    try:
        event = events.read(line)
    except ValueError:
        raise _NotWhole from None
    if events.link(before, events.leaf(line[: -events.SUFFIX])).hex() != event.h:
        raise _NotWhole
    return event


class JoinedLog:
    """The files of a log as one source: what `events.jsonl` of a bundle holds, without a line that is being written."""

    def __init__(self, attempt: Path) -> None:
        self.name = str(attempt)
        # The tail first: where it becomes a chunk meanwhile it is seen to be the same file, and none is missed.
        tail = _opened(attempt / layout.TAIL)
        chunks = sorted((attempt / layout.CHUNKS).glob("*.jsonl"))
        states = [path.stat() for path in chunks]
        self.files = list(chunks)
        sizes = [state.st_size for state in states]
        self._open: dict[int, Source] = {}
        self._tail: Source | None = None
        if tail is not None and all((state.st_dev, state.st_ino) != tail.inode for state in states):
            self.files.append(attempt / layout.TAIL)
            sizes.append(tail.size)
            self._tail = tail
        self._begins = [0, *accumulate(sizes)]
        self.size = self._begins[-1]
        self.size -= self._unended()

    def _unended(self) -> int:
        """How many bytes stand behind the last line that is whole; 0 where that is more than a row."""
        behind = min(self.size, 2 * events.MAX_ROW)
        border = self.read(self.size - behind, behind).rfind(b"\n")
        return 0 if border < 0 else behind - border - 1

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes from `offset`, of as many files as it takes. Raises `ReadError`."""
        parts = []
        number = bisect_right(self._begins, offset) - 1
        while size:
            inside = offset - self._begins[number]
            part = min(size, self._begins[number + 1] - offset)
            parts.append(self._file(number).read(inside, part))
            offset, size, number = offset + part, size - part, number + 1
        return b"".join(parts)

    def _file(self, number: int) -> Source:
        if self._tail is not None and number == len(self.files) - 1:
            return self._tail
        source = self._open.pop(number, None) or FileSource(self.files[number])
        if len(self._open) == _MOST_OPEN:
            del self._open[next(iter(self._open))]  # the one whose last use is longest ago
        self._open[number] = source
        return source


def _opened(path: Path) -> FileSource | None:
    try:
        return FileSource(path)
    except RecordingNotFound:
        return None
