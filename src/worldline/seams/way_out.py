"""The way out of recorded answers over HTTP: each in the record's order, concurrent ones a little apart.

Answers that leave within microseconds of each other may overtake one another in the client: in its sockets, threads or
event loop. So each waits until the one before has been out for a moment, where several are on their way at once.
"""

from __future__ import annotations

import asyncio

from worldline.engine import clock
from worldline.engine.boundary import Served, its_turn

SPACING_SECONDS = 0.005


class WayOut:
    """Shared by all answers of one run. Lives in one event loop."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()  # fair: first come, first out
        self._last = 0
        self._under_way = 0

    async def wait(self, answer: Served) -> None:
        """Return when `answer`, or the last of it, may be written."""
        self._under_way += 1
        try:
            await its_turn(answer)
            async with self._one:
                left = SPACING_SECONDS - (clock.monotonic_ns() - self._last) / 1e9
                if left > 0 and self._under_way > 1:
                    await asyncio.sleep(left)
                self._last = clock.monotonic_ns()
        finally:
            self._under_way -= 1
