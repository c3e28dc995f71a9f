"""What the panel's list of runs says beside `listed`, kept in `<store>/.facets`: models, tools, permissions, trouble.

It takes a look into each log, so it is kept: derived, deletable at any time, and believed under the same conditions as
the catalogue of `listed`. Only runs that are sealed and published are kept.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from worldline.store import layout
from worldline.store.forget.quarantine import CONTAINED
from worldline.store.listed import FACETS, read_cache, settled, stamps_of, write_cache
from worldline.store.recording import Recording
from worldline.store.seal import alone

_HEAD = b"worldline-facets/1 "


class Facets(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What stands in one run. `tokens` are input and output; `trouble` is the first row that says that something went
    wrong, `trouble_step` its step; `parent` is where a branch left; `cut` says that only the log's beginning was read.
    """

    model: str | None = None
    tools: list[str] = []
    permissions: dict[str, int] = {}
    tokens: tuple[int, int] | None = None
    cost: float | None = None
    error: str | None = None
    trouble: int | None = None
    trouble_step: int | None = None
    parent: dict[str, Any] | None = None
    cut: bool = False


class _Line(msgspec.Struct, frozen=True, array_like=True):
    attempt: str
    result: str
    stamps: list[int]
    facets: Facets


class KeptFacets:
    """The facets of a store's runs. `get` gives what still holds; what was read since `begin` is kept by `save`."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._lines = read_cache(store / FACETS, _HEAD, _Line)
        self._fresh: dict[str, _Line] = {}
        self._before: int | None = None
        self._draft = store / f"{FACETS}.{os.getpid()}.{threading.get_ident()}.tmp"

    def get(self, run: str) -> Facets | None:
        """What was kept of a run, where nothing has changed since."""
        line = self._lines.get(run)
        return line.facets if line is not None and self._holds(run, line) else None

    def begin(self) -> None:
        """Before runs are read: take the file system's time."""
        with suppress(OSError):  # a store that cannot be written to is read each time
            self._before = settled(self._draft)

    def keep(self, recording: Recording, facets: Facets) -> None:
        """Keep what was read of a run since `begin`, where all that it depends on can be told by its stamps."""
        published = recording.published if recording.manifest is not None else None
        if self._before is None or published is None:
            return
        try:
            stamps = stamps_of(str(recording.run_directory), recording.attempt_id, published.name)
            own = os.stat(recording.attempt / layout.RESULT).st_ino
        except OSError:  # it is gone meanwhile
            return
        contained = os.path.lexists(recording.run_directory / CONTAINED)
        if stamps[-2] == own and max(stamps[1::2]) < self._before and not contained:
            self._fresh[recording.run_id] = _Line(recording.attempt_id, published.name, stamps, facets)

    def save(self) -> None:
        """Write what holds, where more is known than stands there."""
        if self._before is None:
            return
        try:
            if self._fresh:
                with alone(self._store):  # who forgets a run waits, or has changed it before
                    known = {**self._lines, **self._fresh}
                    lines = {run: line for run, line in known.items() if self._holds(run, line)}
                    write_cache(self._draft, self._store / FACETS, _HEAD, lines)
        except OSError:  # full, or not ours: it is derived, and read anew next time
            return
        finally:
            self._draft.unlink(missing_ok=True)

    def _holds(self, run: str, line: _Line) -> bool:
        try:
            return stamps_of(f"{self._store.absolute()}/{run}", line.attempt, line.result) == line.stamps
        except (OSError, ValueError):  # gone; a name that no file can have
            return False
