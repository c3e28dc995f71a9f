"""The states of an environment, and which may follow which.

    COLD -> RUNNING <-> QUIESCED -> SNAPSHOTTED        GATED -> RESEEDED -> LIVE -> CLOSED        any -> LOST

What was forked or restored has been lived before: it is GATED, and LIVE can only be reached through RESEEDED. After a
snapshot an environment goes on as what it was, RUNNING or LIVE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from worldline.errors import StateRefused


class State(StrEnum):
    """What may be done with an environment now."""

    COLD = "cold"
    RUNNING = "running"
    QUIESCED = "quiesced"
    SNAPSHOTTED = "snapshotted"
    GATED = "gated"
    RESEEDED = "reseeded"
    LIVE = "live"
    CLOSED = "closed"
    LOST = "lost"


AWAKE = frozenset({State.RUNNING, State.LIVE})
STILL = frozenset({State.QUIESCED, State.SNAPSHOTTED})
_NEXT: dict[State, frozenset[State]] = {
    State.COLD: frozenset({State.RUNNING}),
    State.RUNNING: frozenset({State.QUIESCED, State.GATED}),
    State.QUIESCED: frozenset({State.SNAPSHOTTED, State.GATED, *AWAKE}),
    State.SNAPSHOTTED: frozenset({State.SNAPSHOTTED, State.GATED, *AWAKE}),
    State.GATED: frozenset({State.RESEEDED, State.GATED}),
    State.RESEEDED: frozenset({State.LIVE, State.GATED}),
    State.LIVE: frozenset({State.QUIESCED, State.GATED}),
    State.CLOSED: frozenset({State.CLOSED}),
    State.LOST: frozenset({State.CLOSED}),
}


class Life:
    """The state of one environment. `name` is what its errors call it. Raises `StateRefused` for what cannot follow."""

    def __init__(self, name: str, state: State = State.COLD) -> None:
        self.name = name
        self.state = state

    def to(self, state: State) -> None:
        """Go over into another state; LOST and CLOSED can follow any that is not over."""
        over = state in (State.LOST, State.CLOSED) and self.state is not State.CLOSED
        if not over and state not in _NEXT[self.state]:
            what = f"{self.name} is {self.state} and cannot become {state}"
            if state is State.LIVE:
                what += ": it goes live only once it is reseeded"
            raise StateRefused(what, state=str(self.state), asked=str(state))
        self.state = state

    def expect(self, *states: State) -> None:
        """Raise `StateRefused` where the environment is in none of these states."""
        if self.state not in states:
            allowed = " or ".join(sorted(states))
            raise StateRefused(f"{self.name} is {self.state}, not {allowed}", state=str(self.state), asked=allowed)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Hold it still: QUIESCED inside, and behind it what it was. Inside another one it changes nothing."""
        if self.state in STILL:
            yield
            return
        before = self.state
        self.to(State.QUIESCED)
        try:
            yield
        finally:
            if self.state in STILL:  # else it was restored, lost or closed meanwhile
                self.to(before)
