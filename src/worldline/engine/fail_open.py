"""Failing open: the door of a recording that never ends its agent, also where nothing more can be written.

A recording fails closed: what cannot be put on record does not cross. One that was declared `fail_open` lets its agent
go on, as if nobody recorded, when a write or a sync has failed. What is on record up to there stays what it was; what
comes behind it is on no record. Such a run is never sealed by its recorder, and since its header says `fail_open`,
nobody takes what the record lacks for what did not happen.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from worldline.engine.asking import NOBODY, Asks, Decision, Open, Request
from worldline.engine.boundary import RecordBoundary
from worldline.engine.content import Content
from worldline.engine.crossing import Call, Live
from worldline.engine.recorder import Recorder
from worldline.errors import AttemptClosed, LogBroken, RecordError

_log = logging.getLogger("worldline")
GONE = (LogBroken, AttemptClosed)  # nothing more can be written: the disk failed, or the run has been sealed
_NOT_ASKED = "the request can no longer be recorded"


class Losses:
    """What a recording lost by failing open. Safe from several threads.

    `why` is the failure, None while there was none; `calls` counts the calls whose beginning or end is on no record.
    """

    def __init__(self) -> None:
        self.why: Exception | None = None
        self.calls = 0
        self._lock = threading.Lock()

    def met(self, error: Exception, calls: int = 0) -> None:
        """Something was not recorded; the first time it is said."""
        with self._lock:
            first, self.why = self.why is None, self.why or error
            self.calls += calls
        if first:
            _log.warning("%s; the agent goes on, and what it does from here on is on no record", error)


class FailOpenBoundary(RecordBoundary):
    """Records as any recording does, and lets pass what it cannot record."""

    def __init__(self, recorder: Recorder, seen: Iterable[str] = ()) -> None:
        super().__init__(recorder, seen)
        self.losses = Losses()
        self.asks = _FailOpenAsks(recorder, self.losses)

    def begin(self, call: Call) -> Live:  # type: ignore[override]  # it may be none of a recording
        """The call, live; on record where that can be."""
        try:
            live = super().begin(call)
        except GONE as error:
            self.losses.met(error, calls=1)
            return _Passing(self.recorder.next_call(), None, self.losses)
        return _Passing(live.call, live, self.losses)

    def note(self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """A row that is no crossing, where it can be written."""
        try:
            super().note(kind, src, lane, keys, data)
        except GONE as error:
            self.losses.met(error)


class _Passing(Live):
    """A call that goes on whether what comes of it can be recorded or not; `inner` is None of one that is not."""

    def __init__(self, call: str, inner: Live | None, losses: Losses) -> None:
        self.call = call
        self._inner = inner
        self._losses = losses

    def encoded(self, encoding: str) -> None:
        self._record("encoded", encoding)

    def chunk(self, data: bytes, ends_chunk: bool = True) -> None:
        self._record("chunk", data, ends_chunk)

    def due(self) -> None:
        self._record("due")

    def finish(self, data: Mapping[str, Any], result: Content | None = None) -> None:
        self._record("finish", data, result)

    def fail(self, error: Mapping[str, Any]) -> None:
        self._record("fail", error)

    def abandon(self, why: str) -> None:
        self._record("abandon", why)

    def _record(self, verb: str, *said: Any) -> None:
        if self._inner is None:
            return
        try:
            getattr(self._inner, verb)(*said)
        except GONE as error:
            self._inner = None
            self._losses.met(error, calls=1)


class _FailOpenAsks(Asks):
    """Requests for permission: one that cannot be recorded is answered by its default, and nobody is asked."""

    def __init__(self, recorder: Recorder, losses: Losses) -> None:
        super().__init__(recorder)
        self._losses = losses

    def ask(self, request: Request) -> Decision:
        try:
            return super().ask(request)
        except GONE as error:
            return self._unasked(request, error)

    async def ask_async(self, request: Request) -> Decision:
        try:
            return await super().ask_async(request)
        except GONE as error:
            return self._unasked(request, error)

    def _unrecorded(self, waiting: Open, made: Decision, error: RecordError) -> None:
        """An answer counts, whether it can be written or not: whoever gave it must not be passed over."""
        if not isinstance(error, GONE):
            super()._unrecorded(waiting, made, error)
        self._losses.met(error)

    def _unasked(self, request: Request, error: Exception) -> Decision:
        self._losses.met(error)
        return Decision(request.default, NOBODY, _NOT_ASKED, 0.0)
