"""Agents in which the cause is harder to see, or is not there: recoveries, retries, workers side by side, no fault."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.attribution.chance import Dice
from benchmarks.attribution.running import Crashed


@dataclass(frozen=True)
class RecoveredMistake:
    """A mistake at `mistake`, a rare rescue at `rescue`, and then a second mistake at `fault` that is the end of it."""

    length: int
    mistake: int
    rescue: int
    fault: int
    start: str = "begun"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if number == self.mistake:
            return "wounded" if dice.happens(0.5) else "sound"
        if number == self.rescue and state == "wounded":
            return "rescued" if dice.happens(1 / 16) else "lost"
        if number == self.fault and state == "rescued" and dice.happens(0.2):
            return "lost again"
        return state

    def passed(self, state: str, dice: Dice) -> bool:
        return state in ("sound", "rescued")


@dataclass(frozen=True)
class Declines:
    """Every step is right or wrong, and the majority decides: no step is the cause."""

    length: int
    odds: float = 0.55
    start: int = 0

    def step(self, number: int, state: int, dice: Dice) -> int:
        return state + (1 if dice.happens(self.odds) else -1)

    def passed(self, state: int, dice: Dice) -> bool:
        return state > 0


@dataclass(frozen=True)
class Retries:
    """Asks a service up to `tries` times in a row from step `first`, each time with the same words, then gives up."""

    length: int
    first: int
    tries: int = 4
    odds: float = 0.5
    start: str = "not asked"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if self.first <= number < self.first + self.tries and state != "answered":
            return "answered" if dice.happens(self.odds) else "no answer"
        return state

    def passed(self, state: str, dice: Dice) -> bool:
        return state == "answered"


@dataclass(frozen=True)
class Workers:
    """`count` workers side by side, taking turns step by step; at step `fault` one of them may spoil its part."""

    length: int
    fault: int
    odds: float
    count: int = 4

    @property
    def start(self) -> tuple[str, ...]:
        return ("working",) * self.count

    def step(self, number: int, state: tuple[str, ...], dice: Dice) -> tuple[str, ...]:
        mine = number % self.count
        if number == self.fault and dice.happens(self.odds):
            return (*state[:mine], "spoiled", *state[mine + 1 :])
        return state

    def passed(self, state: tuple[str, ...], dice: Dice) -> bool:
        return "spoiled" not in state


@dataclass(frozen=True)
class MostlyTools:
    """Three of five steps are tools that always do the same; the others draw words, and one of them chooses wrongly."""

    length: int
    fault: int
    odds: float
    start: tuple[str, int] = ("fine", 0)

    def decides(self, number: int) -> bool:
        """Whether step `number` is the policy's, not a tool's."""
        return number % 5 in (0, 2)

    def step(self, number: int, state: tuple[str, int], dice: Dice) -> tuple[str, int]:
        how, words = state
        if not self.decides(number):
            return how, (words * 2 + 1) % 4
        if number == self.fault and dice.happens(self.odds):
            how = "wrong"
        return how, dice.pick((0.25, 0.25, 0.25, 0.25))

    def essence(self, state: tuple[str, int]) -> str:
        """What decides: not the words."""
        return state[0]

    def passed(self, state: tuple[str, int], dice: Dice) -> bool:
        return state[0] == "fine"


@dataclass(frozen=True)
class Paraphrases:
    """Says the same in other words at each step and carries all it said along; only step `fault` decides."""

    length: int
    fault: int
    odds: float
    words: int = 3
    start: tuple[str, ...] = ()

    def step(self, number: int, state: tuple[str, ...], dice: Dice) -> tuple[str, ...]:
        said = f"wording {dice.pick((1 / self.words,) * self.words)}"
        if number == self.fault and dice.happens(self.odds):
            said = "a wrong turn, " + said
        return (*state, said)

    def essence(self, state: tuple[str, ...]) -> bool:
        """What decides: whether the wrong turn was taken."""
        return any(said.startswith("a wrong turn") for said in state)

    def passed(self, state: tuple[str, ...], dice: Dice) -> bool:
        return not self.essence(state)


@dataclass(frozen=True)
class AlwaysWrong:
    """Errs at step `fault` whatever it draws: bad policy, no bad luck. There is no chance of success to lose."""

    length: int
    fault: int
    start: tuple[str, int] = ("fine", 0)

    def step(self, number: int, state: tuple[str, int], dice: Dice) -> tuple[str, int]:
        return ("wrong" if number >= self.fault else state[0]), dice.pick((0.5, 0.5))

    def essence(self, state: tuple[str, int]) -> str:
        """What decides: not the words."""
        return state[0]

    def passed(self, state: tuple[str, int], dice: Dice) -> bool:
        return state[0] == "fine"


@dataclass(frozen=True)
class Crashes:
    """Like `WrongFile`, on a machine that dies under `crashes` of all whole runs, at any step."""

    length: int
    fault: int
    odds: float
    crashes: float
    start: str = "reading"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if dice.happens(1 - (1 - self.crashes) ** (1 / self.length)):
            raise Crashed(f"at step {number}")
        if number != self.fault:
            return state
        return "wrong file" if dice.happens(self.odds) else "right file"

    def passed(self, state: str, dice: Dice) -> bool:
        return state == "right file"


@dataclass(frozen=True)
class Flat:
    """Draws words and decides nothing: the outcome is chance outside, the verifier's or the world's."""

    length: int
    rate: float
    start: int = 0

    def step(self, number: int, state: int, dice: Dice) -> int:
        return dice.pick((0.25, 0.25, 0.25, 0.25))

    def essence(self, state: int) -> str:
        """What decides: nothing."""
        return "words"

    def passed(self, state: int, dice: Dice) -> bool:
        return dice.happens(self.rate)


@dataclass(frozen=True)
class Wanders:
    """A walk over a few situations. Step i goes on by the law `plan[i]`, -1 for none; `rates` is how each ends well."""

    plan: tuple[int, ...]
    laws: tuple[tuple[tuple[float, ...], ...], ...]
    rates: tuple[float, ...]
    start: int = 0

    @property
    def length(self) -> int:
        return len(self.plan)

    def step(self, number: int, state: int, dice: Dice) -> int:
        law = self.plan[number]
        return state if law < 0 else dice.pick(self.laws[law][state])

    def passed(self, state: int, dice: Dice) -> bool:
        return dice.happens(self.rates[state])
