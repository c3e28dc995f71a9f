"""Where a secret stands in an attempt, in the snapshots of its workspace and in the folder that a branch worked in.

Every file is looked through and every file's name, for every spelling of `store.secrets.forms`.

Files are read in parts; memory stays near one part's. What is compressed, encrypted, in an image or split by the agent
cannot be seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from worldline.model import events
from worldline.model.holds import is_hash, is_size
from worldline.model.manifest import MOST_BYTES, unseal
from worldline.store import layout
from worldline.store.forget.kept import KeptSnapshots
from worldline.store.forget.quarantine import CONTAINED, MOST_PLACES, Place
from worldline.store.rows import RowReader
from worldline.store.secrets.forms import all_forms
from worldline.store.secrets.scanner import Scanner
from worldline.store.secrets.vault import Vault
from worldline.store.verdicts import collect_blobs

_PART = 1 << 20
_LONGEST = 2 * events.MAX_ROW
_KINDS = {layout.RESULT: "result", layout.PROGRESS: "result", layout.STAGED: "manifest", layout.MANIFEST: "manifest"}


class Searched(msgspec.Struct):
    """What a search found. `places` are the first of `count`. `contents` are the names of the contents that hold the
    secret: for comparing, never for writing down. `files` and `bytes` were looked through; `unscanned` bodies are there
    that nobody could look into when they were recorded.
    """

    places: list[Place] = []
    count: int = 0
    contents: set[str] = set()
    files: int = 0
    bytes: int = 0
    unscanned: int = 0

    @property
    def full(self) -> bool:
        """Whether further places are only counted."""
        return len(self.places) >= MOST_PLACES

    def add(self, place: Place) -> None:
        """One more place."""
        self.count += 1
        if not self.full:
            self.places.append(place)

    def also(self, other: Searched) -> None:
        """What was found elsewhere."""
        for place in other.places:
            self.add(place)
        self.count += other.count - len(other.places)
        self.contents |= other.contents
        self.files, self.bytes = self.files + other.files, self.bytes + other.bytes


class Search:
    """Looks for one secret. Raises `SecretRefused` where the value is too short, `UsageError` for no label."""

    def __init__(self, label: str, value: str) -> None:
        self.vault = Vault({label: value})
        self._scanner = Scanner({label: all_forms(value)})

    def attempt(self, attempt: Path) -> Searched:
        """Search the directory of an attempt, whatever its state."""
        found = Searched(places=[], contents=set())
        named: dict[str, int] = {}
        for path in sorted(attempt.rglob("*")):
            name = str(path.relative_to(attempt))
            self._name(name, found)
            if path.is_symlink():
                self._name(str(path.readlink()), found)
            elif path.is_file():
                self._file(attempt, path, name, named, found)
        line = layout.read_bounded(attempt / layout.MANIFEST, MOST_BYTES)
        with suppress(ValueError):
            unscanned: Any = unseal(line or b"")[0].secrets.get("unscanned")
            found.unscanned = unscanned if is_size(unscanned) else 0
        return found

    def beside(self, run: Path) -> Searched:
        """Search the files in the run's own directory: results, signatures."""
        found = Searched(places=[], contents=set())
        for path in sorted(run.iterdir()):
            self._name(path.name, found)
            if path.is_file() and not path.is_symlink() and path.name != CONTAINED:
                self._file(run, path, path.name, {}, found, "result" if path.suffix == ".json" else "file")
        return found

    def snapshots(self, kept: KeptSnapshots, names: Iterable[str]) -> Searched:
        """Search snapshots: each content once, under the first path that it has."""
        found, seen = Searched(places=[], contents=set()), set[str]()
        for snapshot in sorted(names):
            for path, content in kept.contents(snapshot):
                place = Path(kept.store.path(content))
                if content in seen or not place.is_file():
                    continue
                seen.add(content)
                found.files, found.bytes = found.files + 1, found.bytes + place.stat().st_size
                for offset in self._offsets(_parts(place)):
                    found.contents.add(content)
                    found.add(Place("snapshot", f"{snapshot}/{self._shown(path)}", None, offset))
        return found

    def folder(self, folder: Path) -> Searched:
        """Search the folder that a branch worked in."""
        found = Searched(places=[], contents=set())
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            self._name(name, found)
            if path.is_symlink():
                self._name(str(path.readlink()), found)
            elif path.is_file():
                found.files, found.bytes = found.files + 1, found.bytes + path.stat().st_size
                for offset in self._offsets(_parts(path)):
                    found.add(Place("workspace", self._shown(name), None, offset))
        return found

    def _name(self, name: str, found: Searched) -> None:
        for _ in self._offsets([os.fsencode(name)]):
            found.add(Place("name", self._shown(name)))

    def _file(
        self, top: Path, path: Path, name: str, named: dict[str, int], found: Searched, other: str = "file"
    ) -> None:
        """Search the bytes of a file; `named` fills with the rows that name contents, once one is needed."""
        found.files, found.bytes = found.files + 1, found.bytes + path.stat().st_size
        folder, rows, shown = name.split("/")[0], _Rows(path), self._shown(name)
        for offset in self._offsets(_parts(path)):
            if folder == layout.BLOBS and is_hash(path.name):
                if not named:
                    named |= _naming_rows(top)
                found.contents.add(path.name)
                found.add(Place("content", shown.rpartition("/")[0].rpartition("/")[0], named.get(path.name), offset))
            elif folder in (layout.CHUNKS, layout.TAIL):
                found.add(Place("row", shown, None if found.full else rows.at(offset), offset))
            else:
                found.add(Place(_KINDS.get(name, other), shown, None, offset))

    def _offsets(self, parts: Iterable[bytes]) -> Iterator[int]:
        """The first byte of every place where the secret stands in a stream."""
        held, at = b"", 0
        for part, last in _marked(parts):
            held += part
            limit = len(held) if last else self._scanner.undecided(held)
            done = 0
            for hit in self._scanner.hits(held) if limit else ():
                if hit.start >= limit:
                    break
                yield at + hit.start
                done = hit.end
            cut = max(limit, done)
            held, at = held[cut:], at + cut

    def _shown(self, name: str) -> str:
        """A file's name without the secret."""
        return self.vault.redact_text(os.fsencode(name).decode("utf-8", "replace"))


def _parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while part := file.read(_PART):
            yield part


def _marked(parts: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The parts, and an empty last one that says so."""
    for part in parts:
        yield part, False
    yield b"", True


class _Rows:
    """Tells which row stands at an offset of a log's file; the offsets asked for ascend."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begins, self._line = 0, b""

    def at(self, offset: int) -> int | None:
        """The row's seq; None where none can be read there."""
        with self._path.open("rb") as file:
            file.seek(self._begins)
            self._line = file.readline(_LONGEST)
            while self._line and self._begins + len(self._line) <= offset:
                self._begins += len(self._line)
                self._line = file.readline(_LONGEST)
        try:
            return events.read(self._line).seq
        except ValueError:
            return None


def _naming_rows(attempt: Path) -> dict[str, int]:
    """The first row that names each content."""
    rows: dict[str, int] = {}
    for event in RowReader(layout.log_files(attempt)):
        named: dict[str, dict[str, Any]] = {}
        collect_blobs(event.data, named)
        for name in named:
            rows.setdefault(name, event.seq)
    return rows
