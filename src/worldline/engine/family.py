"""The family of a run: all that left the same oldest ancestor, over the store. Who has fired an effect of a given key?

An effect that a user named by a key is the same effect on every branch: what one of them let happen, no other lets
happen again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from worldline.engine.cassette import Cassette
from worldline.engine.gate import Fired
from worldline.engine.lineage import attempts_in, genesis_of
from worldline.errors import ReadError
from worldline.store import layout
from worldline.store.recording import Recording

if TYPE_CHECKING:
    from worldline.engine.fork_point import ForkPoint
    from worldline.engine.recorder import Recorder


class Relatives:
    """The runs that a branch shares its oldest ancestor with, itself included. They are looked up when asked for."""

    def __init__(self, recorder: Recorder, point: ForkPoint) -> None:
        self._store = layout.homes(point.parent.run_directory)[-1]
        self._genesis = genesis_of(point.parent)
        self._recorder = recorder

    def fired(self, key: str) -> Fired | None:
        """The effect of a declared key that happened in one of them: one that ended, else one nobody knows of."""
        found: Fired | None = None
        for recording in self._members():
            for fired in _with_key(recording, key):
                if fired.ended:
                    return fired
                found = found or fired
        return found

    def _members(self) -> Iterator[Recording]:
        for store in (self._store, *studies_of(self._store)):
            for recording in attempts_in(store):
                if genesis_of(recording) == self._genesis:
                    yield recording


def studies_of(store: Path) -> list[Path]:
    """The folders of the studies beside the runs of a store; what their rollouts let happen has happened, too."""
    folder = store / layout.STUDIES
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _with_key(recording: Recording, key: str) -> Iterator[Fired]:
    """The calls of this key that went out live."""
    try:
        live = {
            event.call
            for event in recording.events()
            if event.keys.get("idempotency_key") == key and event.keys.get("mode") == "live"
        }
        if live:
            yield from (Fired(e, recording) for e in Cassette(recording).exchanges if e.call in live)
    except ReadError:  # a damaged relative: what can be read of it was looked at
        return
