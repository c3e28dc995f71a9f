"""Reading a bundle: the same `Recording` over one file or URL. Only what is asked for is read, nothing is held whole.

Opening reads the tail and checks it (`container.open_container`); rows come block by block, contents one by one, each
checked against the digest of its stored bytes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import Damaged, NotARecording
from worldline.model import events
from worldline.model.events import Event
from worldline.model.manifest import MOST_BYTES
from worldline.store import layout
from worldline.store.blobs import KEY_BYTES, naming
from worldline.store.bundle import index_0
from worldline.store.bundle.blocks import BlockCheck
from worldline.store.bundle.container import (
    EVENTS,
    EXPIRY,
    INDEX,
    MANIFEST,
    TIER_KEY,
    Entry,
    content_named,
    open_container,
)
from worldline.store.bundle.entries import Entries, PackedLog
from worldline.store.bundle.index import FORMAT, Index
from worldline.store.forget.availability import WITHHELD, Expiry, absent, read_expiry
from worldline.store.recording import Recording, fit, summary_of
from worldline.store.rows import LogFile
from worldline.store.source import FileSource, Source, Tailed, UrlSource

MOST_INDEX_BYTES = 64 << 20
MOST_EXPIRY_BYTES = 128 << 20


def is_packed(name: str) -> bool:
    """Whether a name can only mean a bundle: a URL, or a file that begins as a ZIP does."""
    if name.startswith(("http://", "https://")):
        return True
    path = Path(name)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def open_recording(name: str | Path) -> Recording:
    """The recording that a path or URL names: a directory, a published result, or a bundle."""
    return PackedRecording(str(name)) if is_packed(str(name)) else Recording(name)


class PackedRecording(Recording):
    """A recording in a bundle. Raises `NotARecording` or `Damaged` where its tail is not one's."""

    def __init__(self, name: str) -> None:
        source: UrlSource | FileSource = UrlSource(name) if "://" in name else FileSource(Path(name))
        self.inode = source.inode if isinstance(source, FileSource) else None  # (device, inode) of a file
        self.source: Source = Tailed(source)
        self.container = open_container(self.source)
        self._entries = Entries(self.source, self.container)
        self.entries = self._entries.by_name
        for needed in (EVENTS, INDEX, MANIFEST):
            if needed not in self.entries:
                raise NotARecording(f"{name} holds no {needed}", path=name)
        self.attempt = Path(name)  # for what is said of it
        self.damages = []
        self.reader = None
        self._seal_problem = None

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.manifest.run if self.manifest is not None else str(self.header.data.get("run"))

    @property
    def attempt_id(self) -> str:
        """The id of the attempt."""
        return self.manifest.attempt if self.manifest is not None else str(self.header.data.get("attempt"))

    @property
    def path(self) -> Path:
        """The bundle's file, or its URL as a path."""
        return Path(self.source.name)

    @property
    def way_in(self) -> str:
        """What to do where only a run of a store will do, for messages."""
        return f"`worldline unpack {shlex.quote(self.source.name)}` makes it a run of a store"

    def files(self) -> list[LogFile]:
        """The log, as one file."""
        return [self.log()]

    def log(self, check: BlockCheck | None = None) -> PackedLog:
        """The log from its first byte; what is read of it goes through `check`, too."""
        entry = self.entries[EVENTS]
        if check is None:
            return PackedLog(self.content_of(entry))
        return PackedLog(self._entries.content(entry, check.stored), check.content)

    @property
    def log_bytes(self) -> int:
        """The raw size of the log."""
        return self.entries[EVENTS].size

    @cached_property
    def manifest_line(self) -> bytes:
        """The manifest as it was packed, as much of it as can be read: what is wrong then shows in its seal."""
        parts: list[bytes] = []
        with suppress(Damaged):
            parts.extend(self._bounded(MANIFEST, MOST_BYTES))
        return b"".join(parts)

    @cached_property
    def index(self) -> Index:
        """The index; a hint, checked against the rows by `verify`. Raises `Damaged` where it cannot be read."""
        packed = self.packed_index
        return packed.upcast() if isinstance(packed, index_0.Index0) else packed

    @cached_property
    def packed_index(self) -> Index | index_0.Index0:
        """The index in the form in which it was packed. Raises `Damaged`."""
        data = b"".join(self._bounded(INDEX, MOST_INDEX_BYTES))
        old = data.startswith(b'{"format":"%s"' % index_0.FORMAT.encode())
        found: Index | index_0.Index0
        try:
            found = msgspec.json.decode(data, type=index_0.Index0) if old else msgspec.json.decode(data, type=Index)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Damaged(f"{self.source.name}: the index cannot be read: {error}", file=self.source.name) from None
        lengths = {len(column) for column in msgspec.structs.astuple(found.blocks)}
        if found.format not in (FORMAT, index_0.FORMAT) or len(lengths) != 1 or 0 in lengths:
            raise Damaged(f"{self.source.name}: the index cannot be read: no such columns", file=self.source.name)
        return found

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `result.json` said; nothing where it cannot be read."""
        with suppress(Damaged):
            return summary_of(self.index.result.encode("utf-8", "surrogatepass"))
        return {}

    @property
    def live(self) -> bool:
        """A bundle is never written live."""
        return False

    @property
    def disposition(self) -> str:
        """As sealed, or `damaged`."""
        return self.manifest.disposition if self.manifest is not None else "damaged"

    @property
    def published(self) -> Path | None:
        """The bundle itself stands for what was published."""
        return self.path

    @cached_property
    def tier_key(self) -> bytes | None:
        """The key of the restricted tier; None where it was left out."""
        entry = self.entries.get(TIER_KEY)
        return b"".join(self.content_of(entry)) if entry is not None and entry.size == KEY_BYTES else None

    @cached_property
    def expiry(self) -> Expiry:
        """What the records of removals in the bundle authorise, as far as they can be read."""
        parts: list[bytes] = []
        with suppress(Damaged):
            parts.extend(self._bounded(EXPIRY, MOST_EXPIRY_BYTES) if EXPIRY in self.entries else ())
        return read_expiry(b"".join(parts), self.manifest, self.fingerprint)

    @cached_property
    def withheld(self) -> frozenset[str]:
        """The names of the contents that were left out and listed."""
        return frozenset(name for name, _, _ in self.container.withheld)

    def stored(self, entry: Entry) -> Iterator[bytes]:
        """The stored bytes of an entry, its header and digest checked. Raises `Damaged`."""
        return self._entries.stored(entry)

    def content_of(self, entry: Entry) -> Iterator[bytes]:
        """The content of an entry, checked, in parts of bounded size. Raises `Damaged`."""
        return self._entries.content(entry)

    def _bounded(self, name: str, most: int) -> Iterator[bytes]:
        entry = self.entries[name]
        if entry.size > most:
            raise Damaged(f"{self.source.name}: {name} of {entry.size:,} bytes", file=self.source.name, entry=name)
        return self.content_of(entry)

    def block(self, number: int) -> bytes:
        """The raw rows of one block of the log, inflated alone: for those who look at one place. Not checked whole."""
        blocks = self.index.blocks
        ends = blocks.raw[number + 1] if number + 1 < len(blocks.raw) else self.log_bytes
        size, parts = ends - blocks.raw[number], []
        for part in self._from_block(number):
            parts.append(part[:size])
            size -= len(part)
            if size <= 0:
                break
        return b"".join(parts)

    def rows_from(self, seq: int) -> Iterator[Event]:
        """The rows from `seq` on, found by the index, without those before. Each is read, none is checked by a chain.

        Raises `Damaged` where the index leads to no such row.
        """
        number = self.index.blocks.of_seq(seq)
        with PackedLog(self._from_block(number)).open("rb") as rows:
            for line in iter(lambda: rows.readline(2 * events.MAX_ROW), b""):
                try:
                    event = events.read(line)
                except ValueError as error:
                    raise Damaged(f"{self.source.name}: behind block {number}: {error}", block=number) from None
                if event.seq >= seq:
                    yield event

    def event(self, seq: int) -> Event | None:
        """Row `seq`, found by the index, or None. Raises `Damaged` where that leads to no row."""
        found = next(self.rows_from(seq), None)
        return None if found is None or found.seq != seq else fit(found)

    def event_at(self, t: int) -> Event | None:
        """The last row at or before `t` (ns since the run began), found by the index, or None. Raises `Damaged`."""
        last = None
        for event in self.rows_from(self.index.blocks.seq[self.index.blocks.of_time(t)]):
            if event.t > t:
                break
            last = fit(event) or last
        return last

    def _from_block(self, number: int) -> Iterator[bytes]:
        blocks = self.index.blocks
        left = self.log_bytes - blocks.raw[number]
        return self._entries.content_from(self.entries[EVENTS], blocks.stored[number], left)

    @cached_property
    def _contents(self) -> dict[str, Entry]:
        """The entries of contents by the content's name, whatever media type it was packed as."""
        named = ((content_named(entry.name), entry) for entry in self.container.entries)
        return {name: entry for name, entry in named if name is not None}

    def entry_of(self, reference: dict[str, Any]) -> Entry | None:
        """The entry of a content, or None where the bundle has none."""
        return self._contents.get(str(reference["name"]))

    def stored_size(self, reference: dict[str, Any]) -> int | None:
        """The size of a content as the bundle has it, or None where it has none."""
        entry = self.entry_of(reference)
        return None if entry is None else entry.size

    def stream_blob(self, reference: dict[str, Any]) -> Iterator[bytes]:
        """A content's bytes. Raises `Damaged` with `state` `withheld`, `expired`, `missing` or `corrupt`."""
        name, tier = str(reference["name"]), reference.get("tier", layout.ORDINARY)
        entry = self.entry_of(reference)
        if entry is None and name in self.withheld:
            raise Damaged(f"the content {name[:12]} was left out of the bundle", blob=name, state=WITHHELD)
        if entry is None:
            raise absent(self, name, self.source.name)
        digest = naming(tier, self.tier_key)
        for part in self.content_of(entry):
            digest.update(part)
            yield part
        if digest.hexdigest() != name:
            raise Damaged(f"the content {name[:12]} is not what was written", blob=name, state="corrupt")
