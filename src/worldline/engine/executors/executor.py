"""What an executor is: it is given a batch of jobs and gives what came of each, in the order in which they were asked.

A job is bytes in and bytes out, so that it may cross to another process. Who asks many questions decides by index and
never by who ended first: what ends early is not a fair sample (a failing agent ends early). What is lost on the way (a
process that was killed, a machine that is full) is no answer, and is asked again with the same key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

RETRIES = 2  # that a lost job is asked again


class Job(msgspec.Struct, frozen=True):
    """One question. `key` names it (a journal knows it by that), `spec` is what the work is given."""

    key: str
    spec: bytes


class Done(msgspec.Struct, frozen=True):
    """What came of a job: `value`, or why it was `lost`. `tries` counts how often it was asked.

    `over` says that it was lost because its time was over: it would be again, so it is not asked again.
    """

    key: str
    value: bytes | None = None
    lost: str | None = None
    tries: int = 1
    over: bool = False


Work = Callable[[bytes], "bytes | Awaitable[bytes]"]
Heard = Callable[[int, Done], None]
"""Is told of each job as it ends, with its index in the batch; always in the thread that submitted."""


class Executor(Protocol):
    """Carries out batches. `submit` blocks; whatever is raised while it waits ends what still runs."""

    def submit(self, batch: Sequence[Job], heard: Heard = ...) -> list[Done]:
        """What came of each job, in the order of the batch. Raises `Cancelled`, or what `heard` raises."""

    def cancel(self) -> None:
        """End what runs; the batch that is under way raises `Cancelled`. May be called from any thread."""

    def close(self) -> None:
        """Let go of everything: no process, thread or child is left. May be called again."""


def nobody(index: int, done: Done) -> None:
    """Hears of a job and does nothing."""


def lost_by(key: str, error: BaseException) -> Done:
    """A job whose work raised."""
    return Done(key, lost=f"{type(error).__name__}: {error}"[:500])


def settle(executor: Executor, batch: Sequence[Job], heard: Heard = nobody, retries: int = RETRIES) -> list[Done]:
    """Submit a batch, and what was lost of it again with the same key, at most `retries` times.

    `heard` is told of each job once: of its answer, or of its last loss. Raises what `submit` raises.
    """
    results: list[Done | None] = [None] * len(batch)
    due = list(range(len(batch)))
    for attempt in range(1, retries + 2):

        def hear(index: int, done: Done, due: list[int] = due, attempt: int = attempt) -> None:
            if done.lost is None or done.over or attempt == retries + 1:
                told = msgspec.structs.replace(done, tries=attempt)
                results[due[index]] = told
                heard(due[index], told)

        executor.submit([batch[index] for index in due], hear)
        due = [index for index in due if results[index] is None]
        if not due:
            break
    return [done for done in results if done is not None]
