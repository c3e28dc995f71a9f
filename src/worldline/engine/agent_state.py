"""The agent's half of a checkpoint: plain data under a versioned schema, never code that is looked up or run.

    class Chat:
        schema = "shop-agent/2"
        def dump(self): return {"messages": self.messages, "turn": self.turn}
        def load(self, state): self.messages, self.turn = state["messages"], state["turn"]

    old = Upcasters()
    old.add("shop-agent/1", lambda state: {**state, "turn": len(state["messages"]) // 2})

An agent without `dump` is rebuilt: it is driven through the prefix again, which is served from the record. A state that
another version wrote is raised by its upcasters, one version at a time; the record stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from worldline.engine.content import Content
from worldline.errors import Ineligible, NewerFormat, UsageError
from worldline.model.checkpoint import DUMPED, REDRIVEN, AgentHalf

_SCHEMA = re.compile(r"([a-z0-9][a-z0-9._-]{0,63})/([1-9][0-9]{0,8})")

Raise = Callable[[Any], Any]  # a state of one version to the next one's; it makes a new value


class AgentState(Protocol):
    """An agent whose state can be taken and given back."""

    @property
    def schema(self) -> str:
        """Name and version of what `dump` gives: `name/3`."""

    def dump(self) -> Any:
        """Its state: what a tool could be called with (text, numbers, lists, dictionaries, bytes ...)."""

    def load(self, state: Any) -> None:
        """Go on from a state that `dump` gave, of the same version."""


class Dumped(msgspec.Struct, frozen=True):
    """An agent's state that was dumped already, perhaps in another process."""

    schema: str
    state: Any

    def dump(self) -> Any:
        """It."""
        return self.state

    def load(self, state: Any) -> None:
        """Nobody is here to go on from it."""
        raise UsageError("a state that was dumped elsewhere is given back there")


class Upcasters:
    """What raises the states of older versions of schemas."""

    def __init__(self) -> None:
        self._steps: dict[tuple[str, int], Raise] = {}

    def add(self, schema: str, raised: Raise) -> None:
        """Raise a state of this schema to the next version. Raises `UsageError` where that is known already."""
        key = split_schema(schema)
        if key in self._steps:
            raise UsageError(f"what raises a state of {schema} was given before", schema=schema)
        self._steps[key] = raised

    def raised(self, state: Any, written: str, wanted: str) -> Any:
        """A state of the schema `written` as `wanted` has it.

        Raises `NewerFormat` for a later version, `Ineligible` for another schema, or one from which no way leads.
        """
        (name, version), (asked, target) = split_schema(written), split_schema(wanted)
        if name != asked:
            reason = f"the agent's state was written as {written}, and this agent reads {wanted}"
            raise Ineligible(reason, reasons=[reason])
        if version > target:
            raise NewerFormat(f"the agent's state is {written}, this agent reads up to {wanted}", format=written)
        for number in range(version, target):
            step = self._steps.get((name, number))
            if step is None:
                reason = f"nothing raises a state of {name}/{number} to {name}/{number + 1}: give an upcaster"
                raise Ineligible(reason, reasons=[reason])
            state = step(state)
        return state


def split_schema(schema: str) -> tuple[str, int]:
    """Name and version of a schema. Raises `UsageError` for what is none."""
    match = _SCHEMA.fullmatch(schema)
    if match is None:
        raise UsageError(f"a schema is a name and a version (shop-agent/2), not {schema!r:.80}", schema=schema)
    return match[1], int(match[2])


def half_of(agent: AgentState | None, seq: int) -> tuple[AgentHalf, Content | None]:
    """The agent's half at a row, and its state where it has one. Raises `ValueRefused` where that is no data."""
    if agent is None:
        return AgentHalf(type=REDRIVEN, seq=seq), None
    split_schema(agent.schema)
    return AgentHalf(type=DUMPED, seq=seq, schema=agent.schema), Content.of(agent.dump())


def give_back(agent: AgentState, half: AgentHalf, state: Any, upcasters: Upcasters | None = None) -> None:
    """Let an agent go on from what was dumped. Raises what `Upcasters.raised` raises, `Ineligible` without a state."""
    if half.type != DUMPED or half.schema is None:
        reason = f"the checkpoint holds no state of the agent ({half.type}): drive it through the prefix again"
        raise Ineligible(reason, reasons=[reason])
    agent.load((upcasters or Upcasters()).raised(state, half.schema, agent.schema))
