"""What a panel shows: one run, two beside each other, or the runs of a store; and the run that an id of its page means.

An id is one of those that the server itself gave: of the runs that were named, and of the runs and bundles that stand
in the store. No part of a request is ever made into a path.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from worldline import __version__
from worldline.errors import RecordingNotFound, WorldlineError
from worldline.model.ids import is_id
from worldline.store.bundle.packed import PackedRecording
from worldline.store.catalog import BUNDLE, runs
from worldline.store.recording import Recording
from worldline.store.studies.folder import kept_rollouts
from worldline.view.opened import Opened, opened

RUN, COMPARE, RUNS = "run", "compare", "runs"
MOST_OPEN = 32  # runs whose index is kept


class Shown:
    """The runs that were named, or else a store. `closing` ends what follows them."""

    def __init__(self, named: Sequence[Recording], store: Path | None, closing: threading.Event) -> None:
        self.store = store if store is not None else _store_of(named)
        self._closing = closing
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Opened] = OrderedDict()
        self._named: dict[str, Opened] = {}
        for recording in named:
            self._named[self._id_of(recording)] = opened(recording, closing)
        self.mode = (RUNS, RUN, COMPARE)[min(len(named), 2)]

    def _id_of(self, recording: Recording) -> str:
        """The id of a run that was named; of two that are one run (and its redaction) each has its own."""
        found = recording.run_id
        return found if found not in self._named else f"{found}~{len(self._named) + 1}"

    @property
    def ids(self) -> list[str]:
        """The ids of the runs that were named."""
        return list(self._named)

    def session(self, *, fork: bool) -> dict[str, Any]:
        """`GET api/session`."""
        return {
            "version": __version__,
            "mode": self.mode,
            "runs": self.ids,
            "features": {"fork": fork, "notes": True, "live": True},
            "store": str(self.store) if self.store is not None else "",
            "about": dict(self._abouts()),
        }

    def _abouts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Of each run named what `r/<id>/about` answers, so that the page need not ask; of one refused none."""
        for name, run in self._named.items():
            with suppress(WorldlineError, OSError):  # asked for itself it says why
                yield name, run.about()

    def run(self, name: str) -> Opened:
        """The run that an id of the page means. Raises `RecordingNotFound`, or what opening raises."""
        if name in self._named:
            return self._named[name]
        with self._lock:
            if name in self._open:
                self._open.move_to_end(name)
                return self._open[name]
        found = opened(self._in_store(name), self._closing)
        with self._lock:
            self._open[name] = found
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        return found

    def _in_store(self, name: str) -> Recording:
        """The run or the bundle of this name, found among those that stand there."""
        store = self.store
        if store is not None and is_id(name, "run"):
            for path in (*runs(store), *kept_rollouts(store)):
                if path.name == name:
                    return Recording(path)
        if store is not None and name.endswith(BUNDLE) and store.is_dir():
            for path in store.iterdir():
                if path.name == name and path.is_file():
                    return PackedRecording(str(path))
        raise RecordingNotFound("there is no such run in what this panel shows", name=name[:200])


def _store_of(named: Sequence[Recording]) -> Path | None:
    """Where the runs that were named stand, with what left them and what they left; None for a URL."""
    for recording in named:
        if not isinstance(recording, PackedRecording):
            return recording.run_directory.parent
    paths = [Path(recording.source.name) for recording in named if isinstance(recording, PackedRecording)]
    return next((path.absolute().parent for path in paths if path.is_file()), None)
