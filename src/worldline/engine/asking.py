"""Asking for permission: a paused agent asks whoever watches its run, and the record says who answered, why and when.

The question is a crossing of the kind `observation` named `permission`, so a replay serves the recorded answer and asks
nobody. What is asked and what is answered stands in `permission` rows as well: `requested`, then `granted` or `denied`,
with `escalated` in between where somebody passed it on. Requests are kept on the recorder's side, which the other
processes of the run reach through the door.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import msgspec

from worldline.engine import clock
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.threads import in_thread
from worldline.errors import AlreadyAnswered, RecordError, UsageError, WorldlineError

NAME = "permission"  # of the crossing
GRANTED, DENIED, ESCALATED = DECISIONS = ("granted", "denied", "escalated")
MOST_REASON = 2_000  # characters of why somebody decided so
NOBODY = "nobody"  # who answered where the default did
_NOBODY_WAITS = "the agent no longer waits for it"
_REMEMBERED = 4096  # answered requests whose answer a second viewer is told

_log = logging.getLogger("worldline")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked. `id` is the crossing's call; `facts` is JSON (an object); `timeout` is in seconds."""

    id: str
    lane: str
    capability: str
    facts: dict[str, Any]
    timeout: float | None = None
    default: str = DENIED


class Decision(msgspec.Struct, frozen=True):
    """What was decided: `granted` or `denied`, by whom, why, and after how many seconds."""

    decision: str
    by: str
    reason: str | None
    waited: float


class Asker(Protocol):
    """Takes requests and waits for their answer. Raises what recording raises."""

    def ask(self, request: Request) -> Decision:
        """Ask, and wait."""

    async def ask_async(self, request: Request) -> Decision:
        """The same, without holding up the loop."""


@runtime_checkable
class Asking(Protocol):
    """A boundary behind which somebody can be asked: one that records."""

    asks: Asker


class Open:
    """A request that waits, once its row is written. The answer is set once, behind a row of its own."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.seq = -1
        self.began = 0
        self.answer: Future[Decision] = Future()
        self.given_up = False


class Asks:
    """The open requests of a recording. Safe from several threads; the first answer counts."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._open: dict[int, Open] = {}
        self._over: dict[int, str] = {}

    def ask(self, request: Request) -> Decision:
        """Record the request and wait for its answer; the default where none comes in time."""
        waiting = self._begin(Open(request))
        try:
            return waiting.answer.result(request.timeout)
        except TimeoutError:
            return self._too_late(waiting)
        except WorldlineError:
            raise
        except BaseException:
            self._withdraw(waiting)
            raise

    async def ask_async(self, request: Request) -> Decision:
        """The same for a loop: its other tasks go on."""
        waiting = Open(request)
        answer = asyncio.shield(asyncio.wrap_future(waiting.answer))
        try:
            await in_thread(self._begin, waiting)
            return await asyncio.wait_for(answer, request.timeout)
        except TimeoutError:
            return await in_thread(self._too_late, waiting)
        except asyncio.CancelledError:
            self._withdraw(waiting)
            raise

    def answer(self, seq: int, decision: str, *, by: str, via: str | None = None, reason: str | None = None) -> None:
        """Answer the request of row `seq`. `escalated` passes it on: it stays open.

        Raises `AlreadyAnswered` where another was first or nobody waits any more, `UsageError` for what is no answer or
        no request, and what recording raises.
        """
        if decision not in DECISIONS:
            raise UsageError(f"an answer is one of {', '.join(DECISIONS)}, not {decision!r}", decision=decision)
        if reason is not None and len(reason) > MOST_REASON:
            raise UsageError(f"a reason has at most {MOST_REASON:,} characters, this one {len(reason):,}")
        with self._lock:
            waiting = self._open.get(seq)
            if waiting is None:
                raise self._no_request(seq)
            self._decide(waiting, decision, by, via, reason)

    def close(self) -> None:
        """The run ends: nobody can answer any more, so the defaults do."""
        with self._lock:
            for waiting in list(self._open.values()):
                if waiting.given_up:
                    continue
                with suppress(RecordError):  # the future has it, and sealing says it again
                    self._decide(
                        waiting, waiting.request.default, NOBODY, None, "the run ended before anybody answered"
                    )

    def _begin(self, waiting: Open) -> Open:
        request = waiting.request
        asked = {**request.facts, "id": request.id, "timeout": request.timeout, "default": request.default}
        told = Content.of({name: value for name, value in asked.items() if value is not None})
        with self._lock:  # an answer may come as soon as the row can be read
            row = self._recorder.append(
                "permission",
                "requested",
                {},
                {"capability": request.capability, "facts": told},
                request.lane,
                durable=True,
            )
            waiting.seq, waiting.began = row.seq, clock.monotonic_ns()
            if waiting.given_up:
                self._over[row.seq] = _NOBODY_WAITS
            else:
                self._open[row.seq] = waiting
        run = self._recorder.run
        _log.warning("the agent asks for permission and waits; `worldline view %s --live` answers it", run)
        return waiting

    def _decide(self, waiting: Open, decision: str, by: str, via: str | None, reason: str | None) -> Decision:
        """Write the answer's row, durable, then let the agent go on. The lock is held."""
        request = waiting.request
        waited = max(0, clock.monotonic_ns() - waiting.began)
        facts = {"id": request.id, "asked": waiting.seq, "by": by, "via": via, "reason": reason, "waited_ns": waited}
        told = Content.of({name: value for name, value in facts.items() if value is not None})
        made = Decision(decision, by, reason, waited / 1e9)
        try:
            self._recorder.append(
                "permission",
                decision,
                {},
                {"capability": request.capability, "facts": told},
                request.lane,
                durable=True,
            )
        except RecordError as error:
            self._unrecorded(waiting, made, error)
        if decision != ESCALATED:
            self._end(waiting, f"{decision} by {by}")
            waiting.answer.set_result(made)
        return made

    def _unrecorded(self, waiting: Open, made: Decision, error: RecordError) -> None:
        """What was decided cannot be written. Raises why: the recording is over, and whoever waits is told, too."""
        self._end(waiting, str(error))
        waiting.answer.set_exception(error)
        raise error

    def _end(self, waiting: Open, how: str) -> None:
        del self._open[waiting.seq]
        if len(self._over) == _REMEMBERED:
            del self._over[next(iter(self._over))]
        self._over[waiting.seq] = how

    def _too_late(self, waiting: Open) -> Decision:
        """The default, unless an answer came in the last moment."""
        request = waiting.request
        with self._lock:
            if waiting.seq in self._open:
                why = f"nobody answered within {request.timeout:g} s"
                return self._decide(waiting, request.default, NOBODY, None, why)
        return waiting.answer.result()

    def _withdraw(self, waiting: Open) -> None:
        """Nobody waits any more; where the row is only being written, from then on."""
        waiting.given_up = True
        with self._lock:
            if waiting.seq in self._open:
                self._end(waiting, _NOBODY_WAITS)

    def _no_request(self, seq: int) -> WorldlineError:
        how = self._over.get(seq)
        if how is None:
            return UsageError(f"row {seq:,} is no request for permission that waits for an answer", seq=seq)
        return AlreadyAnswered(f"the request of row {seq:,} is answered already: {how}", seq=seq, answer=how)
