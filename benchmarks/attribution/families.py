"""The families of the suite: an agent with its fault in a place drawn by chance, and a failing run of the wanted kind.

Everything follows from the suite's seed, the family's name, the number of steps and the number of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import NamedTuple

from benchmarks.attribution import further, planted
from benchmarks.attribution.chance import Keyed, key
from benchmarks.attribution.program import Program, Walk
from benchmarks.attribution.running import Agent, Recorded, Rollouts, failing
from benchmarks.attribution.truth import Truth, Values, truth

LENGTHS = (20, 50, 100, 200)
FLAKY = 0.4  # how many situations of a random law end well, or badly, only nearly always
SEED = 1  # the public seed; another one makes other places, runs and draws

States = tuple[Hashable, ...]


class Places:
    """Where the faults of a run of `length` steps come to stand."""

    def __init__(self, length: int, dice: Keyed) -> None:
        self.length = length
        self.dice = dice
        self.low, self.high = max(1, length // 10), length * 9 // 10

    def anywhere(self) -> int:
        """Not quite at the ends."""
        return self.dice.between(self.low, self.high)

    def early(self) -> int:
        """In the first half."""
        return self.dice.between(self.low, self.length // 2)

    def late(self) -> int:
        """In the second half."""
        return self.dice.between(self.length // 2, self.high)


class Family(NamedTuple):
    """One kind of agent. `group` is what its cells count for, `marked` a state that the failing run went through."""

    name: str
    group: str
    make: Callable[[Places], Agent]
    marked: str | None = None
    least: float = 0.0  # the least drop that the largest one must be, for there to be a fault to find

    def wanted(self, agent: Agent) -> Callable[[States], bool] | None:
        """What a failing run of this kind looks like."""
        if self.marked is not None:
            return lambda states: self.marked in states
        if self.least:
            values = known(agent)
            return lambda states: truth(Recorded(agent, states), values).largest >= self.least
        return None


def wandering(places: Places) -> Agent:
    """A random law: 3 to 8 steps at which five situations turn into each other, half of the rows by chance."""
    dice, count = places.dice, 5
    turns = sorted({dice.between(1, places.length - 1) for _ in range(dice.between(3, 9))})

    def row(own: int) -> tuple[float, ...]:
        if dice.happens(0.5):
            return tuple(float(other == own) for other in range(count))
        weights = [(-math.log(1 - dice.uniform())) ** 2 for _ in range(count)]
        return tuple(weight / sum(weights) for weight in weights)

    laws = tuple(tuple(row(own) for own in range(count)) for _ in turns)
    plan = tuple(turns.index(number) if number in turns else -1 for number in range(places.length))

    def rate(well: bool) -> float:
        return abs(well - (0.1 * dice.uniform() if dice.happens(FLAKY) else 0.0))

    rates = (rate(False), rate(True), *(rate(dice.happens(0.5)) for _ in range(count - 2)))
    return further.Wanders(plan, laws, rates)


PLANTED = "planted"
HARDER = "harder"
RANDOM = "random"
FLAT = "flat"
SYSTEMATIC = "systematic"
GRADUAL = "gradual"

FAMILIES = (
    Family("single, V0 = .5", PLANTED, lambda at: planted.WrongFile(at.length, at.anywhere(), 0.5)),
    Family("single, V0 = .8", PLANTED, lambda at: planted.WrongFile(at.length, at.anywhere(), 0.2)),
    Family("single, V0 = .2", PLANTED, lambda at: planted.WrongFile(at.length, at.anywhere(), 0.8)),
    Family("noisy tail .30", PLANTED, lambda at: planted.Slips(at.length, at.anywhere(), 0.5, 0.3)),
    Family("recovery .15", PLANTED, lambda at: planted.Recovers(at.length, at.anywhere(), 0.5, 0.15)),
    Family("recovery .30", PLANTED, lambda at: planted.Recovers(at.length, at.anywhere(), 0.6, 0.30)),
    Family(
        "flaky verifier .05", PLANTED, lambda at: planted.WrongFile(at.length, at.anywhere(), 0.5, 0.05), "wrong file"
    ),
    Family("AND", PLANTED, lambda at: planted.BothGone(at.length, at.early(), at.late(), 0.5)),
    Family("OR", PLANTED, lambda at: planted.EitherBreaks(at.length, at.early(), at.late(), 0.5)),
    Family("butterfly", PLANTED, lambda at: planted.Butterfly(at.length, max(1, at.length // 20), at.late()), "bold"),
    Family("rise and fall", PLANTED, lambda at: planted.RisesAndFalls(at.length, at.early(), at.late()), "good lead"),
    Family("branching", PLANTED, lambda at: planted.Branches(at.length, at.early(), at.late(), 0.6), "short way"),
    Family(
        "recovered mistake",
        HARDER,
        lambda at: further.RecoveredMistake(
            at.length,
            at.dice.between(at.low, at.length // 3),
            at.dice.between(at.length // 3, at.length * 2 // 3),
            at.dice.between(at.length * 2 // 3, at.high),
        ),
        "rescued",
    ),
    Family("retries, one key", HARDER, lambda at: further.Retries(at.length, at.dice.between(at.low, at.high - 4))),
    Family("parallel fan-out", HARDER, lambda at: further.Workers(at.length, at.anywhere(), 0.5)),
    Family("60 % deterministic", HARDER, lambda at: further.MostlyTools(at.length, at.anywhere() // 5 * 5 + 2, 0.5)),
    Family("paraphrase", HARDER, lambda at: further.Paraphrases(at.length, at.anywhere(), 0.5)),
    Family("crashes 2 %", HARDER, lambda at: further.Crashes(at.length, at.anywhere(), 0.5, 0.02)),
    Family("gradual decline", GRADUAL, lambda at: further.Declines(at.length)),
    Family("systematic", SYSTEMATIC, lambda at: further.AlwaysWrong(at.length, at.anywhere())),
    Family("flat .05", FLAT, lambda at: further.Flat(at.length, 0.05)),
    Family("flat .15", FLAT, lambda at: further.Flat(at.length, 0.15)),
    Family("flat .50", FLAT, lambda at: further.Flat(at.length, 0.50)),
    Family("random", RANDOM, wandering, least=0.2),
)
BY_NAME = {family.name: family for family in FAMILIES}


class Case(NamedTuple):
    """A recorded run of a family, with the words its rollouts are keyed by."""

    family: Family
    run: Recorded
    seed: tuple[object, ...]

    @property
    def truth(self) -> Truth:
        """The exact values along it."""
        return truth(self.run, known(self.run.agent))

    @property
    def walk(self) -> Walk:
        """Its program explored."""
        return Walk(known(self.run.agent).program)

    def rollouts(self) -> Rollouts:
        """The rest of the run anew, as often as asked: along the explored program where few steps decide anything,
        else executed. Both come to the same.
        """
        walk = self.walk
        few = walk.deciding(self.run.states) * 4 < self.run.length
        return Rollouts(self.run, self.seed, walk.finished if few else None)


def case(family: Family, length: int, number: int, seed: int = SEED) -> Case:
    """Run `number` of a family with `length` steps: the same for the same seed, on any machine."""
    for attempt in range(1000):
        words = (seed, family.name, length, number, attempt)
        agent = family.make(Places(length, Keyed(key(*words, "places"))))
        if family.least and not 0.1 <= known(agent).at(0, agent.start) < 1 - 1e-9:
            continue  # of a random law: it hardly ever succeeds, or never fails
        try:
            return Case(family, failing(agent, words, family.wanted(agent)), words)
        except ValueError:
            if not family.least:
                raise
    raise ValueError(f"no agent of the family {family.name!r} fails as wanted")


@lru_cache(maxsize=8)
def known(agent: Agent) -> Values:
    """The exact values of an agent, worked out once for those that are equal."""
    return Values(Program(agent))
