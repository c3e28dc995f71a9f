"""Executing the agents of the suite: once for the run that failed, then anew from any of its steps.

An agent is a program that is called a step at a time. What a step returns is what the agent knows then; a held prefix
is that of the recorded run, as a checkpoint would restore it, and the rest is executed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import NamedTuple, Protocol

from benchmarks.attribution.chance import STRIDE, Dice, Keyed, key
from worldline.analysis.attribution.asking import Draw, Outcome

GoingOn = Callable[[int, Hashable, Keyed], bool | None]
"""What executes from a step on, with what was known before it; `finished` of an agent is one."""

TRIES = 20_000  # executions after which a run of the wanted kind is given up


class Crashed(Exception):
    """The sandbox under the agent died: nothing is known of how the run would have ended."""


class Agent(Protocol):
    """A program of `length` steps."""

    @property
    def length(self) -> int:
        """How many steps it takes."""
        ...

    @property
    def start(self) -> Hashable:
        """What it knows before its first step."""
        ...

    def step(self, number: int, state: Hashable, dice: Dice) -> Hashable:
        """Do step `number`: decide by the policy, act; returns what is known then. Raises `Crashed`."""
        ...

    def passed(self, state: Hashable, dice: Dice) -> bool:
        """The verifier's answer about the final state."""
        ...


class Recorded(NamedTuple):
    """A run that failed: `states[i]` is what its agent knew before step i, the last one what it ended with.

    `key` is that of its dice.
    """

    agent: Agent
    states: tuple[Hashable, ...]
    key: int = 0

    @property
    def length(self) -> int:
        """How many steps it took."""
        return len(self.states) - 1


def finished(agent: Agent, at: int, state: Hashable, dice: Keyed) -> bool | None:
    """Execute from step `at` on; how it ended by the verifier, None where it crashed."""
    step = agent.step
    try:
        for number in range(at, agent.length):
            dice.place = number * STRIDE
            state = step(number, state, dice)
    except Crashed:
        return None
    dice.place = agent.length * STRIDE
    return agent.passed(state, dice)


def failing(agent: Agent, seed: object, wanted: Callable[[tuple[Hashable, ...]], bool] | None = None) -> Recorded:
    """Execute the agent until a run fails (of the `wanted` kind, judged by its states): the recorded run."""
    for number in range(TRIES):
        drawn_by = key(seed, "recorded", number)
        dice = Keyed(drawn_by)
        states = [agent.start]
        try:
            for turn in range(agent.length):
                dice.place = turn * STRIDE
                states.append(agent.step(turn, states[-1], dice))
        except Crashed:
            continue
        dice.place = agent.length * STRIDE
        if not agent.passed(states[-1], dice) and (wanted is None or wanted(tuple(states))):
            return Recorded(agent, tuple(states), drawn_by)
    raise ValueError(f"{agent!r} did not fail as wanted in {TRIES:,} executions")


class Rollouts:
    """The rest of a recorded run, executed anew as often as asked, and what that cost; `going_on` executes it."""

    def __init__(self, run: Recorded, seed: object, going_on: GoingOn | None = None) -> None:
        self.run = run
        self.count = 0
        self.steps = 0
        self._seed = seed
        self._going_on = going_on or partial(finished, run.agent)

    def draw(self, batch: list[Draw]) -> list[Outcome]:
        """The outcomes of a batch, in its order: the executor of `drive`."""
        if any(one.do for one in batch):
            raise ValueError("the agents of the suite hold a prefix and nothing else")
        return [self._outcome(one) for one in batch]

    def passes(self, at: int, k: int, tag: str = "") -> bool:
        """Whether the k-th rollout with the steps before `at` held passed; one that crashed did not."""
        return bool(self._executed(Draw(at, k, tag)))

    def _outcome(self, draw: Draw) -> Outcome:
        passed = self._executed(draw)
        live = self.run.length - draw.at
        if passed is None:
            return Outcome(None, live_steps=live, why="the sandbox died")
        return Outcome(passed, float(passed), live_steps=live)

    def _executed(self, draw: Draw) -> bool | None:
        self.count += draw.at < self.run.length  # with everything held only the verifier runs
        self.steps += self.run.length - draw.at
        dice = Keyed(key(self._seed, "rollout", *draw.chance))
        return self._going_on(draw.at, self.run.states[draw.at], dice)
