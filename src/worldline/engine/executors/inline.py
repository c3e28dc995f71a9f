"""The executor that does everything here, one job after the other: no process, no thread; what others are held to."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Sequence

from worldline.engine.executors.executor import Done, Heard, Job, Work, lost_by, nobody
from worldline.errors import Cancelled


class Inline:
    """Carries out jobs in the calling thread. `flight` is 1 by nature."""

    flight = 1

    def __init__(self, work: Work) -> None:
        self._work = work
        self._cancelled = False

    def submit(self, batch: Sequence[Job], heard: Heard = nobody) -> list[Done]:
        """One job after the other, in the order of the batch. Raises `Cancelled`, or what `heard` raises."""
        self._cancelled = False
        results = []
        for index, job in enumerate(batch):
            if self._cancelled:
                raise Cancelled(f"cancelled before job {index + 1} of {len(batch)}")
            done = self._carried_out(job)
            results.append(done)
            heard(index, done)
        return results

    def _carried_out(self, job: Job) -> Done:
        try:
            value = self._work(job.spec)
            return Done(job.key, asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a job may raise anything: it is lost, and says why
            return lost_by(job.key, error)

    def cancel(self) -> None:
        """Stop before the next job."""
        self._cancelled = True

    def close(self) -> None:
        """Nothing is held."""


async def _awaited(value: Awaitable[bytes]) -> bytes:
    return await value
