"""The executor for work that waits: jobs are tasks of one event loop, which has a thread of its own.

Async work runs in the loop, other work in threads beside it. Suits agents whose time goes into waiting for a provider.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Sequence
from typing import Any

from worldline.engine.executors.executor import Done, Heard, Job, Work, lost_by, nobody
from worldline.engine.threads import in_thread
from worldline.errors import Cancelled

DEFAULT_FLIGHT = 16


class Tasks:
    """Carries out jobs as tasks, at most `flight` at once."""

    def __init__(self, work: Work, flight: int = DEFAULT_FLIGHT) -> None:
        self._work = work
        self.flight = max(1, flight)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ended: queue.SimpleQueue[tuple[int, Done] | None] | None = None

    def submit(self, batch: Sequence[Job], heard: Heard = nobody) -> list[Done]:
        """All of them, `flight` at once. Raises `Cancelled`, or what `heard` raises."""
        if not batch:
            return []
        loop = self._running()
        ended = self._ended = queue.SimpleQueue()
        whole = asyncio.run_coroutine_threadsafe(self._all(batch, ended), loop)
        results: list[Done | None] = [None] * len(batch)
        try:
            for _ in batch:
                told = ended.get()
                if told is None:
                    raise Cancelled("cancelled while a batch ran")
                results[told[0]] = told[1]
                heard(*told)
        finally:
            whole.cancel()  # of a batch that is through nothing is left to cancel
            self._ended = None
        return [done for done in results if done is not None]

    def cancel(self) -> None:
        """Cancel the tasks; what runs in a thread runs to its end, unheard."""
        ended = self._ended
        if ended is not None:
            ended.put(None)

    def close(self) -> None:
        """End the loop and its thread."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _all(self, batch: Sequence[Job], ended: queue.SimpleQueue[tuple[int, Done] | None]) -> None:
        room = asyncio.Semaphore(self.flight)

        async def one(index: int, job: Job) -> None:
            async with room:
                ended.put((index, await self._carried_out(job)))

        await asyncio.gather(*(one(index, job) for index, job in enumerate(batch)))

    async def _carried_out(self, job: Job) -> Done:
        try:
            if inspect.iscoroutinefunction(self._work) or inspect.iscoroutinefunction(
                getattr(self._work, "__call__", None)  # noqa: B004 - whether it is async, not whether it can be called
            ):
                value = self._work(job.spec)
            else:
                value = await in_thread(self._work, job.spec)
            if inspect.isawaitable(value):
                value = await value
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a job may raise anything: it is lost, and says why
            return lost_by(job.key, error)
        return Done(job.key, value)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="worldline-executor", daemon=True)
            self._thread.start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(_gathered(left))


async def _gathered(left: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*left, return_exceptions=True)
