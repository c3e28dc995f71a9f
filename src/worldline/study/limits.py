"""The time limit of an agent that is a function of this process: as far as Python lets one function end another.

In the main thread an alarm raises in the middle of what it does, whether it computes, sleeps or waits for an answer,
and again where it goes on all the same. In another thread, or beside a loop that runs, it has a thread of its own,
which is left behind: what it computes is ended, what it waits for is not. What swallows everything, and what never
comes back from C, only a process that is killed ends (the processes executor).
"""

from __future__ import annotations

import contextvars
import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from worldline.run import loop_runs, to_its_end

AGAIN_SECONDS = 1.0  # after which an agent that goes on all the same is told again


class TimeOver(BaseException):
    """The agent's time is over. No `Exception`, so that an agent that catches all of those does not go on."""


def bounded(agent: Callable[[], Any], limit: float) -> Callable[[], None]:
    """`agent` (async too) with `limit` seconds of time. The function raises what it raises, or `TimeOver`."""

    def whole() -> None:
        to_its_end(agent)

    def carried() -> None:
        if threading.current_thread() is threading.main_thread() and not loop_runs():
            with _alarm(limit):
                whole()
        else:
            _in_a_thread_of_its_own(whole, limit)

    return carried


def late(limit: float) -> str:
    """What is said of an agent whose time was over."""
    return f"it did not end within {limit:g} s"


@contextmanager
def _alarm(limit: float) -> Iterator[None]:
    rung = over = False

    def ring(number: int, frame: object) -> None:
        nonlocal rung
        if not over:
            rung = True
            raise TimeOver

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit, AGAIN_SECONDS)
    try:
        yield
        over = True
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    if rung:
        raise TimeOver  # it was told, and ended as if nothing had been


def _in_a_thread_of_its_own(whole: Callable[[], None], limit: float) -> None:
    raised: list[BaseException] = []
    context = contextvars.copy_context()

    def carry() -> None:
        try:
            context.run(whole)
        except BaseException as error:  # noqa: BLE001 - an agent may raise anything; it is raised where it was called
            raised.append(error)

    thread = threading.Thread(target=carry, name="worldline-agent", daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TimeOver))
        raise TimeOver
    if raised:
        raise raised[0]
