"""One reader over a recording, live or sealed: its header, its rows, its contents, its state.

Reading opens the longest good content, always; `damages` says what was not good. A recording is named by its run
directory, an attempt directory, or the published result file.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import Damaged, NewerFormat, NotARecording, RecordingNotFound
from worldline.model import upcast, values
from worldline.model.events import Event
from worldline.model.manifest import FORMAT, READABLE, Manifest, unseal
from worldline.store import layout
from worldline.store.blobs import read_tier_key, stream_blob
from worldline.store.rows import Damage, LogFile, RowReader

JSON = "application/json"
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

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run_directory.name

    @property
    def attempt_id(self) -> str:
        """The id of the attempt."""
        return self.attempt.name

    def files(self) -> Sequence[LogFile]:
        """The log's files in order: its chunks, then the tail where there is one."""
        return self._paths()

    def _paths(self) -> list[Path]:
        folder = self.attempt / layout.CHUNKS
        chunks = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
        return [path for path in (*chunks, self.attempt / layout.TAIL) if path.is_file()]

    @property
    def log_bytes(self) -> int:
        """The size of the log's files."""
        return sum(path.stat().st_size for path in self._paths())

    def events(self) -> Iterator[Event]:
        """The good rows, in order, as the newest format has them. When it ends, `damages` holds what was not good."""
        reader = RowReader(self.files())
        for event in reader:
            yield upcast.header(event) if event.name == "meta/header" else event
        self.reader, self.damages = reader, reader.damages

    @cached_property
    def header(self) -> Event:
        """Row 0. Raises `Damaged` where it cannot be read, `NewerFormat` where this version cannot read the rest."""
        first = next(iter(RowReader(self.files())), None)
        if first is None or first.name != "meta/header":
            raise Damaged(f"{self.attempt}: the first row is no header", file=str(self.attempt), offset=0, seq=0)
        written = first.data.get("format")
        if written not in READABLE:
            raise NewerFormat(
                f"{self.attempt} is in the format {written!r}, this version reads {FORMAT}; upgrade worldline",
                format=written,
            )
        return upcast.header(first)

    @cached_property
    def manifest_line(self) -> bytes | None:
        """The manifest as it stands there, or None where there is none."""
        path = self.attempt / layout.MANIFEST
        return path.read_bytes() if path.is_file() else None

    @cached_property
    def manifest(self) -> Manifest | None:
        """The sealed manifest, or None where there is none, or where it is not what was sealed (`seal_problem`)."""
        if self.manifest_line is None:
            return None
        try:
            sealed, self._fingerprint = unseal(self.manifest_line)
        except ValueError as error:
            self._seal_problem = str(error)
            return None
        return upcast.manifest(sealed)

    @property
    def seal_problem(self) -> str | None:
        """Why the manifest that stands there cannot be believed; None where it can, or where there is none."""
        return self._seal_problem if self.manifest is None else None

    @property
    def fingerprint(self) -> str | None:
        """The seal: SHA-256 in hex, the run's fingerprint."""
        return self._fingerprint if self.manifest is not None else None

    @property
    def live(self) -> bool:
        """Whether a writer holds it now (on this host)."""
        try:
            descriptor = os.open(self.attempt / layout.LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
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
        """`complete`, `partial`, `sanitized-partial`, `running`, `interrupted` (its writer died) or `damaged`."""
        if self.manifest is not None:
            return self.manifest.disposition
        if self.seal_problem is not None:
            return "damaged"
        return "running" if self.live else "interrupted"

    @property
    def published(self) -> Path | None:
        """The result that this attempt published: the same file as its own `result.json`, or a copy of it."""
        results = sorted(self.run_directory.glob("*.json"))
        return next((result for result in results if _publishes(self.attempt, result)), None)

    @property
    def path(self) -> Path:
        """What people name it by: the published result, or the run's directory where nothing is published."""
        return self.published or self.run_directory

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `result.json` says, or while there is none the latest `progress.json`, or nothing."""
        for name in (layout.RESULT, layout.PROGRESS):
            try:
                if (self.attempt / name).is_file():
                    return msgspec.json.decode((self.attempt / name).read_bytes(), type=dict[str, Any])
            except (FileNotFoundError, msgspec.DecodeError):  # replaced or removed meanwhile, or damaged
                continue
        return {}

    @cached_property
    def tier_key(self) -> bytes | None:
        """The key that names the contents of the restricted tier; None where there is none, or it was left out."""
        return read_tier_key(self.attempt)

    def stream_blob(self, reference: dict[str, Any]) -> Iterator[bytes]:
        """The bytes of a blob in parts. Raises `Damaged` at its end where they are not what was written, or missing."""
        return stream_blob(self.attempt, reference)

    def blob(self, reference: dict[str, Any]) -> bytes:
        """The bytes of a blob, checked. Raises `Damaged`."""
        return b"".join(self.stream_blob(reference))

    def content(self, value: Any) -> bytes:
        """The bytes of a text as rows carry it: a string, `$b64`, `$wtf8`, or a blob of the bytes or of such a form.

        None are left of what the capture level `refs` withheld.
        """
        if isinstance(value, dict) and "$withheld" in value:
            return b""
        if isinstance(value, dict) and "$blob" in value:
            data = self.blob(value["$blob"])
            return self.content(msgspec.json.decode(data)) if value["$blob"]["type"] == JSON else data
        text = values.restore(value)
        if isinstance(text, bytes):
            return text
        return str(text).encode("utf-8", "surrogatepass")

    def encoded(self, value: Any) -> tuple[bytes, str]:
        """A recorded value as JSON text and its media type, from the row or from its blob."""
        if isinstance(value, dict) and "$blob" in value:
            return self.blob(value["$blob"]), value["$blob"]["type"]
        return msgspec.json.encode(value), JSON

    def value(self, value: Any) -> Any:
        """The Python value that was recorded, loaded from its blob where it is one."""
        if not (isinstance(value, dict) and "$blob" in value):
            return values.restore(value)
        loaded = msgspec.json.decode(self.blob(value["$blob"]))
        return values.unflatten(loaded) if value["$blob"]["type"] == DEEP else values.restore(loaded)

    def loaded(self, value: Any) -> Any:
        """JSON that a row carries inline or as a blob, as it was written: nothing in it is unescaped."""
        if isinstance(value, dict) and "$blob" in value:
            return msgspec.json.decode(self.blob(value["$blob"]))
        return value


def _find_attempt(path: Path) -> Path:
    """The attempt directory that `path` names: itself, a run's published or newest attempt, or a result's."""
    if not path.exists():
        raise RecordingNotFound(f"no recording at {path}", path=str(path))
    if path.is_file() and path.suffix == ".json" and (path.parent / layout.ATTEMPTS).is_dir():
        for attempt in layout.attempts(path.parent):
            if _publishes(attempt, path):
                return attempt.absolute()
        raise NotARecording(f"{path} is the result of no attempt beside it", path=str(path))
    if (path / layout.OPEN).exists() or (path / layout.CHUNKS).is_dir():
        return path.absolute()
    found = list(layout.attempts(path))
    if not found:
        inside = f"; `worldline list {path}` looks for some inside" if path.is_dir() else ""
        raise NotARecording(f"{path} is no recording{inside}", path=str(path))
    results = list(path.glob("*.json"))
    published = [attempt for attempt in found if any(_publishes(attempt, result) for result in results)]
    begun = [attempt for attempt in found if (attempt / layout.OPEN).exists()]
    return (published or begun or found)[-1].absolute()


def _publishes(attempt: Path, result: Path) -> bool:
    """Whether `result` is the attempt's own. In a copied store links are files of their own, with the same bytes."""
    own = attempt / layout.RESULT
    if not own.is_file() or not result.is_file():
        return False
    staged = (attempt / layout.MANIFEST).exists() or (attempt / layout.STAGED).exists()
    return own.samefile(result) or (staged and own.stat().st_nlink == 1 and own.read_bytes() == result.read_bytes())
