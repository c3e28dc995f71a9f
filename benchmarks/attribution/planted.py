"""Agents in which one step loses the run, or two do: the families that the targets are about.

Each is a program that is called a step at a time and draws where its policy is not sure. What it knows between steps is
small and plain (words, numbers, tuples), so that it can be recorded, held and counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.attribution.chance import Dice


@dataclass(frozen=True)
class WrongFile:
    """Edits one of two files at step `fault`. Nothing later mends the wrong choice; `flake` is the verifier's error."""

    length: int
    fault: int
    odds: float
    flake: float = 0.0
    start: str = "reading"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if number != self.fault:
            return state
        return "wrong file" if dice.happens(self.odds) else "right file"

    def passed(self, state: str, dice: Dice) -> bool:
        right = state == "right file"
        return right != dice.happens(self.flake) if self.flake else right


@dataclass(frozen=True)
class Slips:
    """Like `WrongFile`, but any step may also slip and spoil the run: `tail` is the chance that one of them does."""

    length: int
    fault: int
    odds: float
    tail: float
    start: str = "fine"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if state == "spoiled":
            return state
        slip = 1 - (1 - self.tail) ** (1 / self.length)
        return "spoiled" if dice.happens(self.odds if number == self.fault else slip) else state

    def passed(self, state: str, dice: Dice) -> bool:
        return state == "fine"


@dataclass(frozen=True)
class Recovers:
    """Loses its way at step `fault` and may notice at any later step: in all with chance `recovery`."""

    length: int
    fault: int
    odds: float
    recovery: float
    start: str = "on the way"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if number == self.fault:
            return "lost" if dice.happens(self.odds) else state
        if state == "lost":
            notices = 1 - (1 - self.recovery) ** (1 / (self.length - self.fault - 1))
            return "on the way" if dice.happens(notices) else state
        return state

    def passed(self, state: str, dice: Dice) -> bool:
        return state == "on the way"


@dataclass(frozen=True)
class BothGone:
    """Two ways to the data: the cache is dropped at `first`, the backup at `second`. It fails when both are gone."""

    length: int
    first: int
    second: int
    odds: float
    start: str = "cache and backup"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if number == self.first and dice.happens(self.odds):
            return "backup"
        if number == self.second and state == "backup" and dice.happens(self.odds):
            return "nothing"
        return state

    def passed(self, state: str, dice: Dice) -> bool:
        return state != "nothing"


@dataclass(frozen=True)
class EitherBreaks:
    """Two places, `first` and `second`, at each of which the run can be lost alone."""

    length: int
    first: int
    second: int
    odds: float
    start: str = "whole"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if number in (self.first, self.second) and state == "whole" and dice.happens(self.odds):
            return f"broken at {number}"
        return state

    def passed(self, state: str, dice: Dice) -> bool:
        return state == "whole"


@dataclass(frozen=True)
class Butterfly:
    """Chooses a plan early; the bold one makes a much later step risky. Drawing the early step anew looks rewarding."""

    length: int
    early: int
    fault: int
    careful_odds: float = 0.10
    bold_odds: float = 0.55
    start: str = "no plan"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if number == self.early:
            return "bold" if dice.happens(0.5) else "careful"
        if number == self.fault and dice.happens(self.bold_odds if state == "bold" else self.careful_odds):
            return "crushed"
        return state

    def passed(self, state: str, dice: Dice) -> bool:
        return state in ("bold", "careful")


@dataclass(frozen=True)
class RisesAndFalls:
    """Finds a good lead at step `lucky`, which it seldom does, and then throws it away at step `fault`."""

    length: int
    lucky: int
    fault: int
    start: str = "searching"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if number == self.lucky:
            return "good lead" if dice.happens(1 / 3) else "cold lead"
        if number == self.fault and state == "good lead" and dice.happens(0.1):
            return "thrown away"
        return state

    def passed(self, state: str, dice: Dice) -> bool:
        return state == "good lead"


@dataclass(frozen=True)
class Branches:
    """Takes one of two ways at step `fork`: a slow safe one, whose work may be refused, and a short risky one."""

    length: int
    fork: int
    fault: int
    odds: float
    start: str = "before the fork"

    def step(self, number: int, state: str, dice: Dice) -> str:
        if number == self.fork:
            return "short way" if dice.happens(0.5) else "slow way"
        if number == self.fault and state == "short way" and dice.happens(self.odds):
            return "stuck"
        return state

    def passed(self, state: str, dice: Dice) -> bool:
        if state == "slow way":
            return dice.happens(0.9)
        return state == "short way"
