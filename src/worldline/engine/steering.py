"""Steering: what a study does to single calls of a branch that is live, where a plan of the whole fork cannot say it.

A branch asks its steering before a model call or a tool goes out. What it gives stands in the record as a mock, with
its reason: whoever reads the branch sees what was not the agent's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

import msgspec

from worldline.engine.boundary import RecordBoundary
from worldline.engine.content import Content
from worldline.engine.crossing import Call, Keyed, Live, Served
from worldline.engine.order import at_once
from worldline.model.effects import Mode


class Answered(msgspec.Struct, frozen=True):
    """A model's answer that is given in place of asking: the head as a finished row has it, and the body in pieces."""

    head: dict[str, Any]
    pieces: list[bytes]
    why: str


class Steering(Protocol):
    """Decides about the calls of one live branch. `step` is the number of the step that the call belongs to."""

    def decision(self, step: int, call: Call, known: Keyed) -> Answered | None:
        """The answer to give; None where the model is asked."""

    def action(self, step: int, call: Call, known: Keyed) -> Content | None:
        """The result to give; None where the gate decides."""


class GivenAnswer(Served):
    """A model's answer that no model gave."""

    def __init__(self, call: str, data: Mapping[str, Any], pieces: list[bytes]) -> None:
        self.call = call
        self.data = data
        self._pieces = pieces

    def content(self) -> Content | None:
        """None: it is a response."""
        return None

    def pieces(self) -> list[tuple[bytes, bool]]:
        """The body."""
        return [(piece, True) for piece in self._pieces]

    def turn(self, into: Future[None] | None = None) -> Future[None]:
        """At once: nothing came before it."""
        return at_once(into)

    def leaves(self) -> bool:
        """At once."""
        return True


class GivenResult(Served):
    """A tool's result that no tool gave."""

    def __init__(self, call: str, content: Content) -> None:
        self.call = call
        self.data: Mapping[str, Any] = {}
        self._content = content

    def content(self) -> Content | None:
        """The result."""
        return self._content

    def pieces(self) -> list[tuple[bytes, bool]]:
        """None: it is a result."""
        return []

    def turn(self, into: Future[None] | None = None) -> Future[None]:
        """At once."""
        return at_once(into)

    def leaves(self) -> bool:
        """At once."""
        return True


class Steered:
    """Carries out what a steering says, for one branch whose first live step is `first`."""

    def __init__(self, door: RecordBoundary, steering: Steering, first: int) -> None:
        self._door = door
        self._steering = steering
        self._first = first

    def decision(self, call: Call) -> Served | None:
        """The answer given in place of asking, recorded; None where the model is asked."""
        if call.parent is not None:  # inside a tool: no decision of the run's own
            return None
        known = self._door.known(call)
        counter = self._door.recorder.tally.counter
        answered = self._steering.decision(self._first + counter.upcoming(call.lane, known.key) - 1, call, known)
        if answered is None:
            return None
        live = self._door.started(call, known, Mode.MOCK)
        for piece in answered.pieces:
            live.chunk(piece)
        data = {**answered.head, "complete": True}
        live.finish({**data, "mocked": answered.why})
        return GivenAnswer(live.call, data, answered.pieces)

    def action(self, call: Call) -> Served | None:
        """The result given in place of running a tool, recorded; None where the gate decides."""
        known = self._door.known(call)
        step = self._first + max(0, self._door.recorder.tally.counter.steps - 1)
        content = self._steering.action(step, call, known)
        if content is None:
            return None
        live: Live = self._door.started(call, known, Mode.MOCK)
        live.finish({"mocked": "by the study"}, content)
        return GivenResult(live.call, content)
