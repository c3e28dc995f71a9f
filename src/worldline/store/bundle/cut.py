"""A bundle that is cut, as a download that broke off leaves it: its log stands in front, and is read as far as it goes.

What there is of it are rows, checked by their chain. Its manifest, its index and its contents stand behind the log and
are taken for gone, so nothing of it can be verified as sealed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from worldline.errors import CutShort, Damaged
from worldline.model.events import Event
from worldline.model.manifest import Manifest
from worldline.store.bundle.blocks import BlockCheck
from worldline.store.bundle.container import EVENTS, FORMAT, LOG_HEADER, STORED, Container, Entry
from worldline.store.bundle.entries import FIRST_STEP, STEP, Entries, PackedLog
from worldline.store.bundle.index import Index
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording
from worldline.store.rows import Damage, RowReader
from worldline.store.source import FileSource, Source, Tailed, UrlSource


class CutRecording(PackedRecording):
    """What is readable of a cut bundle; `problem` says where it ends.

    Raises `CutShort` where no row of it can be read, and what opening raises for what is no cut bundle.
    """

    def __init__(self, name: str, problem: CutShort) -> None:
        source: UrlSource | FileSource = UrlSource(name) if "://" in name else FileSource(Path(name))
        self.inode = source.inode if isinstance(source, FileSource) else None
        self.source: Source = Tailed(source)
        self.problem = problem
        self.attempt = Path(name)
        self.damages = []
        self.reader = None
        self._seal_problem = None
        if self.source.size < LOG_HEADER:
            raise problem
        head = self.source.read(0, LOG_HEADER)
        (method,), (crc,) = struct.unpack("<H", head[8:10]), struct.unpack("<I", head[14:18])
        size, stored = struct.unpack("<2Q", head[-16:])
        self._stored = min(stored, self.source.size - LOG_HEADER)
        self.container = Container(FORMAT, (Entry(EVENTS, method, size, stored, crc, ""),), "")
        self._entries = Entries(self.source, self.container)
        self.entries = self._entries.by_name
        if next(iter(RowReader(self.files())), None) is None:
            raise problem

    def log(self, check: BlockCheck | None = None) -> PackedLog:
        """The log as far as it goes."""
        return PackedLog(self._readable())

    def _readable(self) -> Iterator[bytes]:
        stored = self.entries[EVENTS].method == STORED
        inflate, at, end, step = zlib.decompressobj(-zlib.MAX_WBITS), LOG_HEADER, LOG_HEADER + self._stored, FIRST_STEP
        while at < end:
            pending = self.source.read(at, min(step, end - at))
            at, step = at + len(pending), min(STEP, step * 2)
            if stored:
                yield pending
            while pending and not stored and not inflate.eof:
                try:
                    data = inflate.decompress(pending, STEP)
                except zlib.error as error:
                    raise Damaged(f"{self.source.name}: {error}", file=self.source.name, offset=at) from None
                pending = inflate.unconsumed_tail
                if data:
                    yield data

    def events(self, through: Callable[[RowReader], Iterable[Event]] = iter) -> Iterator[Event]:
        """The good rows up to the cut, which is among the damages then."""
        yield from super().events(through)
        seq = self.reader.seq if self.reader is not None else 0
        self.damages = [*self.damages, Damage("cut", self.source.name, self.source.size, seq, str(self.problem))]

    def event(self, seq: int) -> Event | None:
        """Row `seq`, or None."""
        return next((event for event in self.events() if event.seq == seq), None)

    def event_at(self, t: int) -> Event | None:
        """The last row at or before `t`, or None."""
        last = None
        for event in self.events():
            if event.t > t:
                break
            last = event
        return last

    @property
    def manifest(self) -> Manifest | None:
        """None: it stands behind the log."""
        return None

    @property
    def seal_problem(self) -> str | None:
        """Why there is no seal."""
        return f"the file is cut at byte {self.source.size:,}"

    @cached_property
    def index(self) -> Index:
        """There is none. Raises `CutShort`."""
        raise self.problem

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Nothing: the result stands behind the log."""
        return {}


def open_readable(opens: Callable[[], Recording], name: str) -> Recording:
    """What `opens` gives, and where that is a cut bundle what is readable of it."""
    try:
        return opens()
    except CutShort as problem:
        return CutRecording(str(problem.facts.get("file") or name), problem)


def packed_again(recording: PackedRecording) -> PackedRecording:
    """The bundle that stands at a name now, or what is readable of it."""
    try:
        return PackedRecording(recording.source.name)
    except CutShort as problem:
        return CutRecording(recording.source.name, problem)
