"""One reader over a recording, live or sealed: its header, its rows, its contents, its state.

Reading opens the longest good content, always; `damages` says what was not good. A recording is named by its run
directory, an attempt directory, or the published result file.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import Damaged, NewerFormat, NotARecording, RecordingNotFound
from worldline.model import values
from worldline.model.events import Event
from worldline.model.manifest import FORMAT, Manifest, unseal
from worldline.store import layout
from worldline.store.blobs import read_blob
from worldline.store.rows import Damage, RowReader

DEEP = "application/x-worldline-deep+json"
# the media type of values that nest too deep for a row (model.values.flatten)


class Recording:
    """One attempt as it stands on disk. Raises `RecordingNotFound`, `NotARecording` or `NewerFormat`."""

    def __init__(self, path: Path | str) -> None:
        self.attempt = _find_attempt(Path(path))
        self.run_directory = self.attempt.parent.parent.parent
        self.damages: list[Damage] = []
        self.reader: RowReader | None = None  # of the last complete pass over the rows
        self._seal_problem: str | None = None

    def files(self) -> list[Path]:
        """The log's files in order: its chunks, then the tail where there is one."""
        folder = self.attempt / layout.CHUNKS
        chunks = sorted(path for path in folder.iterdir() if path.suffix == ".jsonl") if folder.is_dir() else []
        tail = self.attempt / layout.TAIL
        return [*chunks, tail] if tail.exists() else chunks

    def events(self) -> Iterator[Event]:
        """The good rows, in order. When it ends, `damages` holds what was not good."""
        reader = RowReader(self.files())
        yield from reader
        self.reader, self.damages = reader, reader.damages

    @cached_property
    def header(self) -> Event:
        """Row 0. Raises `Damaged` where it cannot be read, `NewerFormat` where this version cannot read the rest."""
        first = next(iter(RowReader(self.files())), None)
        if first is None or first.name != "meta/header":
            raise Damaged(f"{self.attempt}: the first row is no header", file=str(self.attempt), offset=0, seq=0)
        written = first.data.get("format")
        if written != FORMAT:
            raise NewerFormat(
                f"{self.attempt} is in the format {written!r}; this version reads {FORMAT}", format=written
            )
        return first

    @cached_property
    def manifest(self) -> Manifest | None:
        """The sealed manifest, or None where there is none. Raises `Damaged` where its seal does not fit."""
        try:
            line = (self.attempt / layout.MANIFEST).read_bytes()
        except FileNotFoundError:
            return None
        try:
            manifest, self._fingerprint = unseal(line)
        except ValueError as error:
            raise Damaged(f"{self.attempt / layout.MANIFEST}: {error}", file=layout.MANIFEST, offset=0) from None
        return manifest

    @property
    def fingerprint(self) -> str | None:
        """The seal: SHA-256 in hex, the run's fingerprint."""
        return self._fingerprint if self.manifest is not None else None

    @property
    def live(self) -> bool:
        """Whether a writer holds it now (on this host)."""
        try:
            descriptor = os.open(self.attempt / layout.LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    @property
    def disposition(self) -> str:
        """`complete`, `partial`, `sanitized-partial`, `running` or `interrupted` (its writer died)."""
        if self.manifest is not None:
            return self.manifest.disposition
        return "running" if self.live else "interrupted"

    @property
    def published(self) -> Path | None:
        """The result that this attempt published: the link that shares the inode of its own `result.json`."""
        own = self.attempt / layout.RESULT
        if not own.exists():
            return None
        inode = own.stat().st_ino
        for path in sorted(self.run_directory.glob("*.json")):
            if path.stat().st_ino == inode:
                return path
        return None

    @property
    def path(self) -> Path:
        """What people name it by: the published result, or the run's directory where nothing is published."""
        return self.published or self.run_directory

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `result.json` says, or while there is none the latest `progress.json`, or nothing."""
        for name in (layout.RESULT, layout.PROGRESS):
            try:
                return msgspec.json.decode((self.attempt / name).read_bytes(), type=dict[str, Any])
            except (FileNotFoundError, msgspec.DecodeError):
                continue
        return {}

    def content(self, value: Any) -> bytes:
        """The bytes of a text as rows carry it: a string, `$b64`, `$wtf8` or a blob."""
        if isinstance(value, dict) and "$blob" in value:
            return read_blob(self.attempt, value["$blob"])
        text = values.restore(value)
        if isinstance(text, bytes):
            return text
        return str(text).encode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:
        """The Python value that was recorded, loaded from its blob where it is one."""
        if not (isinstance(value, dict) and "$blob" in value):
            return values.restore(value)
        loaded = msgspec.json.decode(read_blob(self.attempt, value["$blob"]))
        return values.unflatten(loaded) if value["$blob"]["type"] == DEEP else values.restore(loaded)

    def loaded(self, value: Any) -> Any:
        """JSON that a row carries inline or as a blob, as it was written: nothing in it is unescaped."""
        if isinstance(value, dict) and "$blob" in value:
            return msgspec.json.decode(read_blob(self.attempt, value["$blob"]))
        return value


def _find_attempt(path: Path) -> Path:
    """The attempt directory that `path` names: itself, a run's published or newest attempt, or a result's."""
    if not path.exists():
        raise RecordingNotFound(f"no recording at {path}", path=str(path))
    if path.is_file() and path.suffix == ".json" and (path.parent / layout.ATTEMPTS).is_dir():
        inode = path.stat().st_ino
        for attempt in layout.attempts(path.parent):
            own = attempt / layout.RESULT
            if own.exists() and own.stat().st_ino == inode:
                return attempt
        raise NotARecording(f"{path} is the result of no attempt beside it", path=str(path))
    if (path / layout.OPEN).exists() or (path / layout.CHUNKS).is_dir():
        return path.absolute()
    found = list(layout.attempts(path))
    if not found:
        raise NotARecording(f"{path} is no recording; `worldline list {path}` looks for some inside", path=str(path))
    sealed = [attempt for attempt in found if _publishes(attempt, path)]
    return (sealed or found)[-1].absolute()


def _publishes(attempt: Path, run: Path) -> bool:
    own = attempt / layout.RESULT
    return (
        own.exists()
        and own.stat().st_nlink > 1
        and any(path.stat().st_ino == own.stat().st_ino for path in run.glob("*.json"))
    )
