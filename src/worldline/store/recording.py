"""One reader over a recording, live or sealed: its header, its rows, its contents, its state.

Reading opens the longest good content, always; `damages` says what was not good. A recording is named by its run
directory, an attempt directory, or the published result file.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import Damaged, NewerFormat, NotARecording, RecordingNotFound
from worldline.model import fields, upcast, values
from worldline.model.events import Event
from worldline.model.manifest import FORMAT, MOST_BYTES, READABLE, Manifest, unseal
from worldline.store import layout
from worldline.store.blobs import blob_file, read_tier_key, stream_blob
from worldline.store.forget import quarantine
from worldline.store.forget.availability import MISSING, Expiry, absent, expiry_of
from worldline.store.rows import Damage, LogFile, RowReader
from worldline.store.seek import SeekableLog

JSON = "application/json"
DEEP = "application/x-worldline-deep+json"
MOST_LOADED = 256 << 20  # bytes of a content that is loaded whole; larger ones are streamed
MOST_RESULT = 64 << 20  # bytes of result.json and progress.json
# the media type of values that nest too deep for a row (model.values.flatten)


class Recording:
    """One attempt as it stands on disk. Raises `RecordingNotFound`, `NotARecording`, `NewerFormat` or `Contained`."""

    def __init__(self, path: Path | str) -> None:
        self.attempt = _find_attempt(Path(path))
        self.run_directory = self.attempt.parent.parent.parent
        self.damages: list[Damage] = []
        self.reader: RowReader | None = None  # of the last complete pass over the rows
        self._seal_problem: str | None = None
        self._expiry: tuple[Any, Expiry] | None = None
        self._seekable: SeekableLog | None = None

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
        return layout.log_files(self.attempt)

    @property
    def log_bytes(self) -> int:
        """The size of the log's files."""
        return sum(path.stat().st_size for path in layout.log_files(self.attempt))

    def events(self, through: Callable[[RowReader], Iterable[Event]] = iter) -> Iterator[Event]:
        """The good rows, in order, as the newest format has them. When it ends, `damages` holds what was not good.

        Who reads for another reason, too, gives the function `through` which the rows pass on their way.
        """
        reader, unfit = RowReader(self.files()), []
        for event in through(reader):
            if wrong := fields.problem(event):
                unfit.append(Damage("unfit", *reader.at, event.seq, wrong))
            else:
                yield _present(event)
        self.reader, self.damages = reader, [*reader.damages, *unfit]

    def event(self, seq: int) -> Event | None:
        """Row `seq` as `events` gives it, found without reading those before; None where no good row is that."""
        found = self._sought.by_seq(seq)
        return None if found is None or found.event.seq != seq else fit(found.event)

    def event_at(self, t: int) -> Event | None:
        """The last row at or before `t` (ns since the run began) as `events` gives it, or None."""
        log = self._sought
        found = log.by_time(t)
        while found is not None and (event := fit(found.event)) is None:
            found = log.by_seq(found.event.seq - 1)
        return None if found is None else event

    @property
    def _sought(self) -> SeekableLog:
        """The log to be sought in: of a sealed attempt, whose log stays as it is, the same each time."""
        if self.manifest is None:
            return SeekableLog.of(self.attempt)
        if self._seekable is None:
            self._seekable = SeekableLog.of(self.attempt)
        return self._seekable

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
        wrong = fields.problem(first)
        opened = {} if wrong else {key: self.loaded(value) for key, value in first.data.items()}
        if wrong := wrong or fields.unfit(first.name, opened):
            raise Damaged(f"{self.attempt}: the header cannot be: {wrong}", file=str(self.attempt), offset=0, seq=0)
        return upcast.header(fields.present(msgspec.structs.replace(first, data=opened)))

    @cached_property
    def manifest_line(self) -> bytes | None:
        """The manifest as it stands there, or None where there is none."""
        return layout.read_bounded(self.attempt / layout.MANIFEST, MOST_BYTES)

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
        lock = self.attempt / layout.LOCK
        return lock.is_file() and layout.is_held(lock)

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
        return next((result for result in results if publishes(self.attempt, result)), None)

    @property
    def path(self) -> Path:
        """What people name it by: the published result, or the run's directory where nothing is published."""
        return self.published or self.run_directory

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `result.json` says, or while there is none the latest `progress.json`, or nothing."""
        for name in (layout.RESULT, layout.PROGRESS):
            try:
                data = layout.read_bounded(self.attempt / name, MOST_RESULT)
            except FileNotFoundError:  # replaced or removed meanwhile
                continue
            if data is not None and (summary := summary_of(data)):
                return summary
        return {}

    @cached_property
    def tier_key(self) -> bytes | None:
        """The key that names the contents of the restricted tier; None where there is none, or it was left out."""
        return read_tier_key(self.attempt)

    @property
    def expiry(self) -> Expiry:
        """What was removed since it was sealed, and whether the records of that hold. Read anew when there are more."""
        path = self.attempt / layout.EXPIRY
        state = path.lstat() if os.path.lexists(path) else None
        stamp = state and (state.st_ino, state.st_size, state.st_mtime_ns)
        if self._expiry is None or self._expiry[0] != stamp:
            self._expiry = stamp, expiry_of(self.attempt, self.manifest, self.fingerprint)
        return self._expiry[1]

    def stored_size(self, reference: dict[str, Any]) -> int | None:
        """How many bytes stand there under a blob's name; None where nothing does. Raises `Damaged` for no name."""
        path = blob_file(self.attempt, reference)
        return path.stat().st_size if path.is_file() else None

    def stream_blob(self, reference: dict[str, Any]) -> Iterator[bytes]:
        """The bytes of a blob in parts. Raises `Damaged` at its end where they are not what was written.

        So it does at once where they are not there; its `state` is `missing` then, or `expired` as declared.
        """
        try:
            yield from stream_blob(self.attempt, reference)
        except Damaged as error:
            if error.facts.get("state") != MISSING or self.stored_size(reference) is not None:
                raise
            raise absent(self, reference["name"], str(error.facts["file"])) from None

    def blob(self, reference: dict[str, Any]) -> bytes:
        """The bytes of a blob, checked. Raises `Damaged`, also where there are more than can be loaded whole."""
        parts, size, most = [], 0, min(reference.get("size", MOST_LOADED), MOST_LOADED)
        for part in self.stream_blob(reference):
            size += len(part)
            if size > most:
                what = f"the content {reference['name'][:12]} has over {most:,} bytes"
                raise Damaged(what, blob=reference["name"], state="corrupt")
            parts.append(part)
        return b"".join(parts)

    def _json(self, reference: dict[str, Any]) -> Any:
        try:
            return msgspec.json.decode(self.blob(reference))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            what = f"the content {reference['name'][:12]} is no JSON: {error}"
            raise Damaged(what, blob=reference["name"], state="corrupt") from None

    def content(self, value: Any) -> bytes:
        """The bytes of a text as rows carry it: a string, `$b64`, `$wtf8`, or a blob of the bytes or of such a form.

        None are left of what the capture level `refs` withheld.
        """
        if isinstance(value, dict) and "$withheld" in value:
            return b""
        if (reference := _reference(value)) is not None:
            if reference["type"] != JSON:
                return self.blob(reference)
            value = self._json(reference)
        text = _restored(value)
        if isinstance(text, bytes):
            return text
        return str(text).encode("utf-8", "surrogatepass")

    def encoded(self, value: Any) -> tuple[bytes, str]:
        """A recorded value as JSON text and its media type, from the row or from its blob."""
        if (reference := _reference(value)) is not None:
            return self.blob(reference), reference["type"]
        return msgspec.json.encode(value), JSON

    def value(self, value: Any) -> Any:
        """The Python value that was recorded, loaded from its blob where it is one."""
        reference = _reference(value)
        if reference is None:
            return _restored(value)
        return _restored(self._json(reference), reference["type"] == DEEP)

    def loaded(self, value: Any) -> Any:
        """JSON that a row carries inline or as a blob, as it was written: nothing in it is unescaped."""
        reference = _reference(value)
        return value if reference is None else self._json(reference)


def _present(event: Event) -> Event:
    """A row as the newest format has it."""
    return upcast.header(event) if (event.kind, event.src) == ("meta", "header") else fields.present(event)


def fit(event: Event) -> Event | None:
    """The same; None of a row whose fields are not what a reader can make sense of."""
    return _present(event) if fields.problem(event) is None else None


def _reference(value: Any) -> dict[str, Any] | None:
    """The content that a value stands for; None for one that is itself. Raises `Damaged` for what names none."""
    if not (isinstance(value, dict) and "$blob" in value):
        return None
    if not fields.is_reference(value):
        raise Damaged("a recorded value names a content as none is named", state="corrupt")
    reference: dict[str, Any] = value["$blob"]
    return reference


def summary_of(data: bytes) -> dict[str, Any]:
    """What the bytes of a `result.json` or `progress.json` say; nothing where they are no such thing."""
    try:
        said = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return said if fields.unfit_result(said) is None else {}


def _restored(value: Any, deep: bool = False) -> Any:
    """A value out of its written form. Raises `Damaged` where that is none."""
    try:
        return values.unflatten(value) if deep else values.restore(value)
    except ValueError as error:
        raise Damaged(f"a recorded value cannot be read: {error}", state="corrupt") from None


def _find_attempt(path: Path) -> Path:
    """The attempt directory that `path` names: itself, a run's published or newest attempt, or a result's."""
    quarantine.refuse_moved(path)
    if not path.exists():
        raise RecordingNotFound(f"no recording at {path}", path=str(path))
    if path.is_file() and path.suffix == ".json" and (path.parent / layout.ATTEMPTS).is_dir():
        for attempt in layout.attempts(path.parent):
            if publishes(attempt, path):
                quarantine.refuse(path.parent, attempt.name)
                return attempt.absolute()
        raise NotARecording(f"{path} is the result of no attempt beside it", path=str(path))
    if (path / layout.OPEN).exists() or (path / layout.CHUNKS).is_dir():
        quarantine.refuse(path.absolute().parent.parent.parent, path.name)
        return path.absolute()
    contained = quarantine.register_of(path).rows
    found = [attempt for attempt in layout.attempts(path) if attempt.name not in contained]
    results = list(path.glob("*.json"))
    published = [attempt for attempt in found if any(publishes(attempt, result) for result in results)]
    if not published:
        quarantine.refuse(path)
    if not found:
        inside = f"; `worldline list {path}` looks for some inside" if path.is_dir() else ""
        raise NotARecording(f"{path} is no recording{inside}", path=str(path))
    begun = [attempt for attempt in found if (attempt / layout.OPEN).exists()]
    return (published or begun or found)[-1].absolute()


def publishes(attempt: Path, result: Path) -> bool:
    """Whether `result` is the attempt's own. In a copied store links are files of their own, with the same bytes."""
    own = attempt / layout.RESULT
    if not own.is_file() or not result.is_file():
        return False
    staged = (attempt / layout.MANIFEST).exists() or (attempt / layout.STAGED).exists()
    return own.samefile(result) or (
        staged and own.stat().st_nlink == 1 and filecmp.cmp(own, result, shallow=False)  # read in parts
    )
