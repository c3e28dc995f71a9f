"""The crossings of a recording one after the other, for exporters: each as it ends, at last those that never did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from worldline.engine.excerpts import Excerpts
from worldline.engine.exchanges import Exchange, fold
from worldline.model.events import Event
from worldline.store import layout
from worldline.store.recording import Recording

READ = 1 << 20  # bytes of a row's field that stands in a content


class Crossings:
    """Iterates over a recording's crossings. `header` is the first row's data, `last` the time of the last row (ns)."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._excerpts = Excerpts(recording, READ)
        self.header: dict[str, Any] = {}
        self.last = 0

    def __iter__(self) -> Iterator[Exchange]:
        under_way: dict[str, Exchange] = {}
        for event in self._recording.events():
            self.last = event.t
            if event.name == "meta/header":
                self.header = self._opened(event)
            exchange = fold(event, under_way, self._opened)
            if exchange is None:
                continue
            exchange.chunks.clear()
            if exchange.finished == event.seq:
                del under_way[exchange.call]
                yield exchange
        yield from under_way.values()

    def _opened(self, event: Event) -> dict[str, Any]:
        """A row's data, without what stands in a restricted content: it may have been left out where this is read."""
        open_to_all = {key: value for key, value in event.data.items() if not _is_restricted(value)}
        return self._excerpts.opened(msgspec.structs.replace(event, data=open_to_all))

    def wall(self, t: int) -> int:
        """Unix ns of a row's time."""
        return int(self.header.get("t0_wall") or 0) + t


def _is_restricted(value: Any) -> bool:
    reference = value.get("$blob") if isinstance(value, dict) else None
    return isinstance(reference, dict) and reference.get("tier") == layout.RESTRICTED
