"""One run as the server gives it: a bundle whole, by ranges; a directory file by file, sealed, growing or left behind.

Nothing is kept of a run but its index, so what the page gets is what stands there in that moment. A directory is opened
anew for each request: it may be sealed, moved into quarantine or lose contents to their retention meanwhile.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from worldline.engine.export import EXPORTS
from worldline.errors import Damaged, NewerFormat, UsageError
from worldline.model.ids import short
from worldline.store import layout, notes
from worldline.store.bundle.cut import CutRecording, packed_again
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording
from worldline.store.seek import JoinedLog
from worldline.store.source import FileSource, Source
from worldline.store.verify import verify
from worldline.view.answers import JSON, LINES, Answer, Bytes, Stream, etag_of, held, missing, of_file, said
from worldline.view.contents import Contents
from worldline.view.follow import follow
from worldline.view.indexed import Indexed
from worldline.view.studied import studied

BUNDLE_TYPE = "application/zip"
_BESIDE = (layout.ANNOTATIONS, layout.AUDIT)


class Opened(Protocol):
    """A run that is open. `get` answers what stands behind `r/<id>/`, and None where nothing does."""

    def recording(self) -> Recording:
        """The recording as it stands there now. Raises what opening raises."""

    def about(self) -> dict[str, Any]:
        """What `r/<id>/about` answers. Raises what opening raises."""

    def get(self, words: list[str], query: Mapping[str, str], headers: Mapping[str, str]) -> Answer | None:
        """The answer to a GET."""


def opened(recording: Recording, closing: threading.Event) -> Opened:
    """The run of a recording. `closing` ends what follows it."""
    return Bundle(recording) if isinstance(recording, PackedRecording) else Directory(recording.attempt, closing)


def about(recording: Recording, kind: str) -> dict[str, Any]:
    """What the page's first line says; as far as it can be read of a damaged run, or of one in a newer format."""
    facts: dict[str, Any] = {"kind": kind, "label": _label(recording), "disposition": None, "trouble": None}
    try:
        facts |= {"disposition": recording.disposition, "sealed": recording.manifest is not None}
        facts |= {"run": recording.run_id, "attempt": recording.attempt_id, "outcome": recording.summary.get("outcome")}
        header = recording.header.data
        facts |= {"task": header["task"]["text"], "session": header["session"], "parent": header.get("parent")}
        facts["expired"] = len(recording.expiry.removals)
    except (Damaged, NewerFormat) as error:
        facts["trouble"] = {"error": error.kind, "what": str(error)}
    return facts


def _label(recording: Recording) -> str:
    if isinstance(recording, PackedRecording):
        return recording.source.name.rstrip("/").rpartition("/")[2] or recording.source.name
    return f"run {short(recording.run_id)}"


def _of_every_run(recording: Recording, words: list[str]) -> Answer | None:
    """What a bundle and a directory answer in the same way."""
    match words:
        case ["verify"]:
            found = verify(recording, exports=EXPORTS)
            verdicts = {"ok": found.ok, "verdicts": found.verdicts, "problems": found.problems, "facts": found.facts}
            return said(verdicts)
        case ["annotations"]:
            return said(notes.annotations(recording))
        case ["audit"]:
            return said(notes.audits(recording))
        case ["study"]:
            return said(studied(recording))
        case [name] if name in _BESIDE:
            return held(notes.stored(recording, name), LINES)
    return None


class Bundle:
    """A run in a bundle: a file, or a URL whose server gives ranges."""

    def __init__(self, recording: PackedRecording) -> None:
        self._recording = recording
        self._path = Path(recording.source.name)
        self._remote = "://" in recording.source.name
        self._source = _InTurn(recording.source)
        self._marked = ("", "")  # the file's state, and the mark that it has in it

    def recording(self) -> Recording:
        """The bundle; the file that stands there now, which may be another one with more notes in it."""
        return self._recording if self._remote else packed_again(self._recording)

    def about(self) -> dict[str, Any]:
        """What the page's first line says."""
        return about(self.recording(), "bundle")

    def get(self, words: list[str], query: Mapping[str, str], headers: Mapping[str, str]) -> Answer | None:
        """The answer to a GET."""
        match words:
            case ["about"]:
                return said(self.about())
            case ["bundle.skn"] if self._remote:
                return Bytes(self._source, BUNDLE_TYPE, etag=f'"{self._recording.container.seal}-{self._source.size}"')
            case ["bundle.skn"]:
                named = {"Content-Disposition": "attachment"}
                return Bytes(FileSource(self._path), BUNDLE_TYPE, etag=self._mark(), headers=named)
            case ["live"]:
                raise UsageError("a bundle is finished: there is nothing to follow")
        if words == ["verify"] and isinstance(found := self.recording(), CutRecording):
            raise found.problem
        with self._source.lock:  # a connection to another server takes one request at a time
            return _of_every_run(self.recording(), words)

    def _mark(self) -> str:
        """Tells the bundle from others by its seal and by where its entries stand.

        A note or a line of the audit trail comes behind them and moves none: a page that writes one still reads on.
        """
        state = etag_of(self._path)
        if self._marked[0] != state:
            container = packed_again(self._recording).container
            offsets = container.offsets()
            places = [(e.name, offsets[e.name], e.stored) for e in container.entries if e.name not in _BESIDE]
            cut = state if not container.seal else ""  # of one that is cut, a longer one is another
            digest = hashlib.sha256(repr((container.seal, places, cut)).encode("utf-8")).hexdigest()
            self._marked = (state, f'"{digest[:32]}"')
        return self._marked[1]


class _InTurn:
    """A source for several threads."""

    def __init__(self, inner: Source) -> None:
        self.name, self.size = inner.name, inner.size
        self.lock = threading.RLock()
        self._inner = inner

    def read(self, offset: int, size: int) -> bytes:
        """Read, one at a time."""
        with self.lock:
            return self._inner.read(offset, size)


class Directory:
    """One attempt in its directory."""

    def __init__(self, attempt: Path, closing: threading.Event) -> None:
        self._attempt = attempt
        self._closing = closing
        self._index = Indexed(attempt)
        self._contents = Contents(attempt)
        self._sealed: tuple[str, Recording] | None = None

    def recording(self) -> Recording:
        """The attempt as it stands there now; of a sealed one what was read of its manifest is kept."""
        found = Recording(self._attempt)  # raises where it is in quarantine by now
        try:
            seal = etag_of(self._attempt / layout.MANIFEST)
        except FileNotFoundError:
            return found
        if self._sealed is None or self._sealed[0] != seal:
            self._sealed = seal, found
        return self._sealed[1]

    def about(self) -> dict[str, Any]:
        """What the page's first line says."""
        recording = self.recording()
        return about(recording, "live" if recording.live and recording.manifest is None else "directory")

    def get(self, words: list[str], query: Mapping[str, str], headers: Mapping[str, str]) -> Answer | None:
        """The answer to a GET."""
        recording = self.recording()
        match words:
            case ["about"]:
                return said(self.about())
            case ["index.json"]:
                return held(self._index.data(), JSON)
            case [layout.MANIFEST | layout.RESULT as name]:
                return self._file(name, JSON)
            case [layout.EXPIRY]:
                return self._file(layout.EXPIRY, LINES)
            case ["events.jsonl"]:
                # What grows is another body with every row, though the bytes before stay: it has no name.
                sealed = etag_of(self._attempt / layout.MANIFEST) if recording.manifest is not None else None
                return Bytes(JoinedLog(self._attempt), LINES, etag=sealed)
            case ["contents", name]:
                return self._contents.get(recording, name, query.get("type"))
            case ["live"]:
                return self._follow(query, headers)
        return _of_every_run(recording, words)

    def _file(self, name: str, media_type: str) -> Bytes:
        path = self._attempt / name
        if path.is_symlink() or not path.is_file():
            return missing("lost", f"The run has no {name}, or not yet.")
        return of_file(path, media_type)

    def _follow(self, query: Mapping[str, str], headers: Mapping[str, str]) -> Stream:
        """From the row that the client asks for, or behind the last one that it had before its connection broke."""
        had, asked = headers.get("last-event-id", ""), query.get("from", "0")
        if not (asked.isascii() and asked.isdigit() and len(asked) < 19):
            raise UsageError(f"from= is the number of a row, not {asked[:40]!r}")
        known = had.isascii() and had.isdigit() and len(had) < 19
        return Stream(follow(self._attempt, int(had) + 1 if known else int(asked), self._closing))
