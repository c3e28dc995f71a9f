"""The executor that spreads jobs over processes. Each process is a group of its own, so that nothing of it outlives it.

Processes are spawned, never forked: the caller has threads. A process that dies loses the job it had and is replaced;
one that says that its job left something behind is replaced, too, and one that does not come to an end is killed. When
the caller itself dies its processes see it and end, with all they started.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

import msgspec

from worldline.engine import clock
from worldline.engine.executors.executor import Done, Heard, Job, Work, nobody
from worldline.errors import Cancelled, UsageError

_soiled = False


class _Told(msgspec.Struct, frozen=True):
    """What a process says: that it begins a job, or what came of it; `last` where it takes no more."""

    done: Done | None = None
    last: bool = False


def replace_this_process() -> None:
    """Say, in a process of the pool, that its job left something running: it is ended and another takes its place."""
    global _soiled
    _soiled = True


def in_pool() -> bool:
    """Whether this process is one of a pool, and with that the head of a group of its own."""
    return multiprocessing.parent_process() is not None and os.getpgrp() == os.getpid()


class Processes:
    """Carries out jobs in up to `flight` processes. `work` must be picklable: it is sent there once for each.

    A job that takes longer than `limit` seconds is lost, and its process killed. Raises `UsageError` for work that
    cannot be sent.
    """

    def __init__(self, work: Work, flight: int | None = None, limit: float | None = None) -> None:
        self._work = work
        self._limit = limit
        self.flight = max(1, flight or os.cpu_count() or 1)
        self._workers: list[_Worker] = []
        self._awake, self._wake = multiprocessing.Pipe(duplex=False)
        self._closed = False
        atexit.register(self.close)

    def submit(self, batch: Sequence[Job], heard: Heard = nobody) -> list[Done]:
        """All of them, `flight` at once. Raises `Cancelled`, or what `heard` raises."""
        results: list[Done | None] = [None] * len(batch)
        waiting = deque(enumerate(batch))
        busy: dict[_Worker, tuple[int, Job]] = {}
        while self._awake.poll():  # an old cancellation, of a batch that was through
            self._awake.recv_bytes()
        try:
            while waiting or busy:
                while waiting and len(busy) < self.flight:
                    worker = self._idle(busy)
                    if worker.give(waiting[0][1]):
                        busy[worker] = waiting.popleft()
                    else:
                        self._drop(worker)
                for worker, done in self._ended(busy):
                    index, _ = busy.pop(worker)
                    results[index] = done
                    heard(index, done)
        except BaseException:
            for worker in busy:
                self._drop(worker)
            raise
        return [done for done in results if done is not None]

    def cancel(self) -> None:
        """End the processes that work; the batch raises `Cancelled`."""
        self._wake.send_bytes(b"cancel")

    def close(self) -> None:
        """End every process, with all it started."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        for worker in list(self._workers):
            self._drop(worker)
        self._awake.close()
        self._wake.close()

    @property
    def pids(self) -> list[int]:
        """The processes there are."""
        return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    def _idle(self, busy: dict[_Worker, tuple[int, Job]]) -> _Worker:
        found = next((worker for worker in self._workers if worker not in busy), None)
        if found is None:
            found = _Worker(self._work)
            self._workers.append(found)
        return found

    def _ended(self, busy: dict[_Worker, tuple[int, Job]]) -> list[tuple[_Worker, Done]]:
        """Wait until some have ended, or their time is over, and what came of them."""
        ready = wait([self._awake, *(worker.pipe for worker in busy)], self._patience(busy))
        if self._awake in ready:
            self._awake.recv_bytes()
            raise Cancelled("cancelled while a batch ran")
        found = []
        for worker in [worker for worker in busy if worker.pipe in ready]:
            job = busy[worker][1]
            told = worker.told()
            if told is None:
                self._drop(worker)
                found.append((worker, Done(job.key, lost=f"its process ended ({worker.how_it_ended()})")))
                continue
            if told.done is None:
                worker.due = None if self._limit is None else clock.monotonic_ns() + int(self._limit * 1e9)
                continue
            worker.due = None
            if told.last:
                self._drop(worker)
            found.append((worker, told.done))
        for worker in [worker for worker in busy if worker.due is not None and worker.due <= clock.monotonic_ns()]:
            self._drop(worker)
            lost = f"it did not end within {self._limit:g} s, and its process was killed"
            found.append((worker, Done(busy[worker][1].key, lost=lost, over=True)))
        return found

    def _patience(self, busy: dict[_Worker, tuple[int, Job]]) -> float | None:
        """Seconds until the time of one of them is over; None where there is no limit."""
        due = [worker.due for worker in busy if worker.due is not None]
        return max(0.0, (min(due) - clock.monotonic_ns()) / 1e9) if due else None

    def _drop(self, worker: _Worker) -> None:
        if worker in self._workers:
            self._workers.remove(worker)
        worker.end()


class _Worker:
    """One process and the pipe to it. `due` is when the job that it has must have ended."""

    due: int | None = None

    def __init__(self, work: Work) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self.process: SpawnProcess = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(work, theirs), name="worldline-worker"
        )
        try:
            self.process.start()
        except (pickle.PicklingError, AttributeError, TypeError, ImportError) as error:
            self.pipe.close()
            raise UsageError(
                f"the work cannot be sent to another process: {error}; name the function as module:function, or use "
                "the inline executor"
            ) from error
        finally:
            theirs.close()

    def give(self, job: Job) -> bool:
        """Send a job; False where nobody is there any more."""
        try:
            self.pipe.send_bytes(msgspec.json.encode(job))
        except OSError:
            return False
        return True

    def told(self) -> _Told | None:
        """What it says; None where it has ended."""
        try:
            return msgspec.json.decode(self.pipe.recv_bytes(), type=_Told)
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """Kill its whole group and reap it."""
        self.pipe.close()
        pid = self.process.pid
        if pid is not None:
            with suppress(ProcessLookupError, PermissionError):  # not yet a group of its own, or gone already
                os.killpg(pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()

    def how_it_ended(self) -> str:
        """Its exit code, or the signal."""
        code = self.process.exitcode
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit {code}"


def _serve(work: Work, pipe: Connection[Any, Any]) -> None:
    """In the process: do one job after the other until nobody asks any more."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller hears it and decides
    threading.Thread(target=_ends_with_its_parent, name="worldline-parent", daemon=True).start()
    from worldline.engine.executors.inline import Inline

    inline = Inline(work)
    while True:
        try:
            job = msgspec.json.decode(pipe.recv_bytes(), type=Job)
        except (EOFError, OSError):
            return
        pipe.send_bytes(msgspec.json.encode(_Told()))
        (done,) = inline.submit([job])
        pipe.send_bytes(msgspec.json.encode(_Told(done, _soiled)))
        if _soiled:
            return


def _ends_with_its_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)
