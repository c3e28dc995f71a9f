"""What the server answers with: a status, a media type, and bytes that are read in parts as they go out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import (
    AlreadyAnswered,
    AnnotationRefused,
    Contained,
    Damaged,
    JoinError,
    NewerFormat,
    ReadError,
    RecordingNotFound,
    UsageError,
    WorldlineError,
)
from worldline.store.source import FileSource, Source

JSON = "application/json; charset=utf-8"
LINES = "application/x-ndjson; charset=utf-8"
STEP = 256 * 1024  # bytes that are held of a body while it goes out
_TODO: dict[type[WorldlineError], tuple[int, str]] = {
    Contained: (410, "A secret was found in it, and it is in quarantine. Nothing opens it any more."),
    RecordingNotFound: (404, "`worldline list` shows the runs of the store."),
    NewerFormat: (422, "Upgrade worldline; what this version understands is shown."),
    Damaged: (422, "`worldline verify` names every place that is not what was written."),
    AnnotationRefused: (409, "Copy the run to a place of your own and annotate it there."),
    AlreadyAnswered: (409, "Somebody else was first; the record says who."),
    JoinError: (410, "The recorder is gone. `worldline reconcile` seals what it left."),
    UsageError: (400, "Reload the page."),
    ReadError: (502, "Look whether the file or the server that holds it is still there."),
}


class Bytes:
    """A body: where it is read from, its media type, and its `etag` where it never changes under the same one."""

    def __init__(
        self,
        source: Source,
        media_type: str,
        *,
        etag: str | None = None,
        headers: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> None:
        self.source = source
        self.media_type = media_type
        self.etag = etag
        self.headers = dict(headers or {})
        self.status = status

    def parts(self, offsets: range) -> Iterator[bytes]:
        """The bytes at `offsets`, in parts. Raises `ReadError` where they are not to be had any more."""
        for begin in range(offsets.start, offsets.stop, STEP):
            yield self.source.read(begin, min(STEP, offsets.stop - begin))


class Stream:
    """Server-Sent Events: `parts` goes on until there are no more, or the client leaves."""

    media_type = "text/event-stream; charset=utf-8"

    def __init__(self, parts: Iterator[bytes]) -> None:
        self.parts = parts


Answer = Bytes | Stream


class Held:
    """Bytes that are in memory already."""

    def __init__(self, data: bytes, name: str = "answer") -> None:
        self.name = name
        self.size = len(data)
        self._data = data

    def read(self, offset: int, size: int) -> bytes:
        """A part of them."""
        return self._data[offset : offset + size]


def said(value: Any, status: int = 200) -> Bytes:
    """A value as JSON."""
    return Bytes(Held(msgspec.json.encode(value, enc_hook=str)), JSON, status=status)


def held(data: bytes, media_type: str, **options: Any) -> Bytes:
    """Bytes from memory, named by their digest."""
    return Bytes(Held(data), media_type, etag=f'"{hashlib.sha256(data).hexdigest()[:32]}"', **options)


def of_file(path: Path, media_type: str, **options: Any) -> Bytes:
    """A file that does not change in place; named by what tells it from another. Raises `RecordingNotFound`."""
    source = FileSource(path)
    return Bytes(source, media_type, etag=etag_of(path), **options)


def etag_of(path: Path) -> str:
    """What tells a file from another, and from itself before it was changed."""
    state = os.stat(path)
    mark = f"{state.st_dev}-{state.st_ino}-{state.st_size}-{state.st_mtime_ns}-{state.st_ctime_ns}"
    return f'"{hashlib.sha256(mark.encode("ascii")).hexdigest()[:32]}"'


def refused(error: WorldlineError, where: str) -> Bytes:
    """An error of ours as the page shows it: what was wrong, where, and what to do."""
    status, todo = next((_TODO[kind] for kind in type(error).__mro__ if kind in _TODO), (500, "Reload the page."))
    facts = {name: str(value)[:500] for name, value in error.facts.items()}
    return said({"error": error.kind, "what": str(error), "where": where, "todo": todo, "facts": facts}, status)


def missing(what: str, why: str, status: int = 404, **more: Any) -> Bytes:
    """Something that is not here, by the word for it, and why."""
    return said({"missing": what, "why": why, **more}, status)
