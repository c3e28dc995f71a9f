"""The bounds of a recording, watched row by row: what came past one is not kept, or the recording ends there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from worldline.engine.spec import Bounds
from worldline.errors import BoundReached

if TYPE_CHECKING:
    from worldline.engine.recorder import Recorder


class Watch:
    """Watches one recorder.

    `any` says whether there is a bound; `reached` is set once no further row may come, `ended_by` once one wanted to.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.any = bounds != Bounds(past=bounds.past)
        self.reached: BoundReached | None = None
        self.ended_by: BoundReached | None = None
        self._lost = False
        self._lock = threading.Lock()

    def check(self) -> None:
        """Before a row: raises `BoundReached` where the recording ended before it."""
        if self.reached is not None:
            self.ended_by = self.reached
            raise self.reached

    def passed(self, recorder: Recorder) -> None:
        """A row was appended. Past a bound that stops, `reached` says so; past one that loses, contents end here."""
        if not self.any or self.reached or self._lost:
            return
        bounds, log = self._bounds, recorder.log
        counts: dict[str, tuple[float, float | None]] = {
            "rows": (log.seq, bounds.rows),
            "log_bytes": (log.bytes, bounds.log_bytes),
            "content_bytes": (recorder.keep.size, bounds.content_bytes),
            "seconds": (recorder.clock() / 1e9, bounds.seconds),
        }
        over = [(name, limit) for name, (count, limit) in counts.items() if limit is not None and count >= limit]
        if over:
            self._pass(recorder, *over[0])

    def _pass(self, recorder: Recorder, name: str, limit: float) -> None:
        with self._lock:
            if self.reached or self._lost:
                return
            if self._bounds.past == "stop":
                said = f"the recording came to its bound of {limit:,} {name}"
                self.reached = BoundReached(said, bound=name, limit=limit)
                return
            self._lost = True
        recorder.keep.keeps = False
        what = f"contents past {limit:,} {name}"
        recorder.append("meta", "loss", {}, {"what": what, "bound": name, "limit": limit})
