"""The index of a run that stands in a directory, made while it is asked for: the same columns as in a bundle.

A directory has none of its own. What is read is the log as it stands in that moment, in one pass and with bounded
memory; what came of it is kept as long as the log is the same. Blocks begin where they would in a bundle, and since
nothing is deflated here `stored` says the same as `raw`: the byte of the log.
"""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from worldline.model import events
from worldline.model.events import encode_json
from worldline.store import layout
from worldline.store.bundle.index import IndexBuilder
from worldline.store.recording import MOST_RESULT
from worldline.store.rows import RowReader
from worldline.store.seek import JoinedLog
from worldline.store.source import Source

_BUFFER = 256 * 1024


class SourceLog:
    """A log that is read from a source, as a file of rows: damages name their byte in the whole log."""

    name = "events.jsonl"

    def __init__(self, source: Source) -> None:
        self._source = source

    def open(self, mode: Literal["rb"] = "rb", buffering: int = _BUFFER) -> BinaryIO:
        """The bytes, from the first one on."""
        return io.BufferedReader(_Reading(self._source), _BUFFER)


class _Reading(io.RawIOBase):
    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._source.size - self._at)
        buffer[:size] = self._source.read(self._at, size)
        self._at += size
        return size


class Indexed:
    """The index of one attempt; made once for as long as its log and its result stay the same."""

    def __init__(self, attempt: Path) -> None:
        self._attempt = attempt
        self._lock = threading.Lock()
        self._of: tuple[int, str] | None = None
        self._data = b""

    def data(self) -> bytes:
        """`index.json`."""
        with self._lock:  # who asks for the same meanwhile waits for it
            result = self._result()
            log = JoinedLog(self._attempt)
            if self._of != (log.size, result):
                self._data = encode_json(index_of(log, result))
                self._of = log.size, result
            return self._data

    def _result(self) -> str:
        """`result.json` as text; of a run without one what its list shows."""
        for name in (layout.RESULT, layout.PROGRESS):
            try:
                found = layout.read_bounded(self._attempt / name, MOST_RESULT)
            except FileNotFoundError:  # replaced in this moment
                continue
            if found is not None:
                return found.decode("utf-8", "replace")
        return ""


def index_of(log: Source, result: str = "") -> Any:
    """The index of a log in a source. What is damaged in it stands in no column."""
    index = _quickly(log, result)
    if index is not None:
        return index
    builder = IndexBuilder(result)
    reader = RowReader([SourceLog(log)])
    for event in reader:
        builder.raw = reader.at[1]  # behind what is damaged, too
        builder.row(event, builder.raw)
    builder.raw = log.size
    return builder.index()


def _quickly(log: Source, result: str) -> Any:
    """The index of a log in which each line is the row that is due there; None where one is not.

    No hash is checked: that is the page's to do, and the index a hint. It takes a fifth of the time.
    """
    builder = IndexBuilder(result)
    with SourceLog(log).open() as rows:
        while line := rows.readline(events.MAX_ROW + 1):
            try:
                row = _read(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return None
            if row.seq != builder.rows or line[-1:] != b"\n":
                return None
            builder.row(_Seen(row, line), builder.raw)  # type: ignore[arg-type] # what of an event the builder asks for
    return builder.index()


class _Row(msgspec.Struct):
    """What an index is made of."""

    seq: int
    t: int
    kind: str
    src: str
    lane: str
    data: msgspec.Raw
    call: str | None = None


_read = msgspec.json.Decoder(_Row).decode
_open = msgspec.json.Decoder(dict[str, Any]).decode
_NOTHING: dict[str, Any] = {}


class _Seen:
    """A row of which no more is read than an index needs; its data only where anything in it may tell of trouble."""

    __slots__ = ("call", "data", "kind", "lane", "name", "raw", "seq", "t")

    def __init__(self, row: _Row, line: bytes) -> None:
        self.seq, self.t, self.kind, self.lane, self.call = row.seq, row.t, row.kind, row.lane, row.call
        self.name = f"{row.kind}/{row.src}"
        self.raw = line
        telling = b'"error"' in line or b'"status"' in line or b'"closed_by"' in line
        self.data = _open(row.data) if telling else _NOTHING
