"""`ask`: an agent that may not go on by itself asks for permission and waits; a replay serves the recorded answer.

Whoever watches the run answers (`worldline view RUN --live`). The rows and the waiting are the recorder's
(`engine.asking`); this is how a line of code comes to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from worldline.engine import boundary as doors
from worldline.engine.asking import DENIED, GRANTED, NAME, NOBODY, Asking, Decision, Request
from worldline.engine.boundary import Boundary, Call, inside
from worldline.engine.content import Content
from worldline.errors import UsageError
from worldline.seams.lanes import lane

LONGEST_CAPABILITY = 200  # characters
LONGEST_REASON = 2_000
LONGEST_WAIT = 1e6  # seconds: what an operating system waits for at most is not much more
UNASKED = Decision(DENIED, NOBODY, "nothing records here, so nobody can be asked", 0.0)


class Answer(msgspec.Struct, frozen=True):
    """What was answered. It is true where it was granted.

    `decision` is `granted` or `denied`; `by` says who decided (`nobody` where the default did), `reason` why, in their
    words; `waited` is in seconds.
    """

    decision: str
    by: str
    reason: str | None
    waited: float

    @property
    def granted(self) -> bool:
        """Whether it was granted."""
        return self.decision == GRANTED

    def __bool__(self) -> bool:
        return self.granted


class Question:
    """One question, checked before anything is recorded. Raises `UsageError` for what cannot be asked."""

    def __init__(
        self,
        capability: str,
        *,
        reason: str | None = None,
        timeout: float | None = None,
        default: str = DENIED,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        _check(capability, reason, timeout, default)
        said = {**(facts or {}), **({"reason": reason} if reason is not None else {})}
        self._facts = Content.of(said)
        self._capability = capability
        self._timeout = timeout
        self._default = default

    def unasked(self) -> Answer:
        """The answer where nothing records: the default."""
        return Answer(self._default, NOBODY, UNASKED.reason, 0.0)

    def ask(self, boundary: Boundary) -> Answer:
        """Ask through the door, and wait."""

        def asked() -> dict[str, Any]:
            if not isinstance(boundary, Asking):
                return _told(self._nobody())
            return _told(boundary.asks.ask(self._request()))

        return Answer(**doors.call(boundary, self._crossing(), asked))

    async def ask_async(self, boundary: Boundary) -> Answer:
        """The same for a loop."""

        async def asked() -> dict[str, Any]:
            if not isinstance(boundary, Asking):
                return _told(self._nobody())
            return _told(await boundary.asks.ask_async(self._request()))

        return Answer(**await doors.acall(boundary, self._crossing(), asked))

    def _nobody(self) -> Decision:
        return msgspec.structs.replace(UNASKED, decision=self._default)

    def _crossing(self) -> Call:
        """What a replay finds the answer by: how long somebody would wait, and for what, is no part of the question."""
        here = lane()
        inputs = Content.of({"lane": here, "capability": self._capability, "facts": self._facts.value()})
        return Call(kind="observation", name=NAME, inputs=inputs, lane=here, parent=inside.get())

    def _request(self) -> Request:
        """The request, inside its crossing: its id is the crossing's."""
        return Request(
            id=str(inside.get()),
            lane=lane(),
            capability=self._capability,
            facts=self._facts.value(),
            timeout=self._timeout,
            default=self._default,
        )


def _check(capability: Any, reason: Any, timeout: Any, default: Any) -> None:
    if not isinstance(capability, str) or not 0 < len(capability) <= LONGEST_CAPABILITY:
        raise UsageError(f"a capability is a text of up to {LONGEST_CAPABILITY} characters, not {capability!r:.80}")
    if reason is not None and not (isinstance(reason, str) and len(reason) <= LONGEST_REASON):
        raise UsageError(f"a reason is a text of up to {LONGEST_REASON:,} characters")
    if timeout is not None and not (isinstance(timeout, int | float) and 0 < timeout <= LONGEST_WAIT):
        raise UsageError(f"a timeout is in seconds, or None to wait as long as it takes; not {timeout!r}")
    if default not in (GRANTED, DENIED):
        raise UsageError(f"the default is {GRANTED} or {DENIED}, not {default!r}", default=default)


def _told(decision: Decision) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.structs.asdict(decision)
    return told
