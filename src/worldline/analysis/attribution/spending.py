"""What a study may cost and what it did cost: every draw goes through here, whatever method asks for it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from worldline.analysis.attribution.asking import Asking, Budget, Draw, Outcome

MANY = 0.05  # undefined rollouts, from which on a warning is due


class BudgetSpent(Exception):
    """A cap is reached; `args` has its name. Caught where the method gives its answer."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a study did cost, the last fields of its answer; `stopped` names the cap that ended it."""

    rollouts: int = 0
    live_steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    money: float = 0.0
    undefined: int = 0
    diverged: int = 0
    stopped: str | None = None
    warnings: list[str] = []


class Spending:
    """The budget of one study and the sums so far. To judge the recorded end again is no rollout: nothing happens."""

    def __init__(self, length: int, budget: Budget) -> None:
        self._length = length
        self._budget = budget
        self.stopped: str | None = None
        self.rollouts = self.live_steps = self.tokens = self.undefined = self.diverged = 0
        self.seconds = self.money = 0.0
        self._why: dict[str, int] = defaultdict(int)

    def ask(self, draws: list[Draw]) -> Asking[list[tuple[Draw, Outcome]]]:
        """Draw what the budget pays for, from the first on. Raises `BudgetSpent` where it pays for nothing."""
        draws = self._paid(draws)
        if not draws:
            return []
        outcomes = yield draws
        taken = list(zip(draws, outcomes, strict=True))
        for draw, outcome in taken:
            self._take(draw, outcome)
        return taken

    def ask_all(self, draws: list[Draw]) -> Asking[list[Outcome]]:
        """Draw all of these. Raises `BudgetSpent` where the budget does not pay for all: a part answers nothing."""
        if len(self._paid(draws)) < len(draws):
            self.stop("rollouts")
        return [outcome for _, outcome in (yield from self.ask(draws))]

    def _paid(self, draws: list[Draw]) -> list[Draw]:
        for name in ("tokens", "money", "seconds"):
            cap = getattr(self._budget, name)
            if cap is not None and getattr(self, name) >= cap:
                self.stop(name)
        if self._budget.rollouts is None:
            return draws
        left = self._budget.rollouts - self.rollouts
        paid = []
        for draw in draws:
            left -= self._is_rollout(draw)
            if left < 0:
                break
            paid.append(draw)
        if draws and (not paid or self._budget.rollouts == 0):
            self.stop("rollouts")
        return paid

    def stop(self, name: str) -> None:
        """A cap is reached: raise `BudgetSpent`."""
        self.stopped = name
        raise BudgetSpent(name)

    def _is_rollout(self, draw: Draw) -> bool:
        return draw.at < self._length or bool(draw.do)

    def _take(self, draw: Draw, outcome: Outcome) -> None:
        self.rollouts += self._is_rollout(draw)
        self.live_steps += outcome.live_steps
        self.tokens += outcome.tokens
        self.seconds += outcome.seconds
        self.money += outcome.money
        self.undefined += outcome.success is None
        self.diverged += outcome.diverged
        if outcome.success is None:
            self._why[outcome.why or "no reason given"] += 1

    def commonest_why(self) -> str:
        """Why rollouts came to no verdict, most often."""
        return max(sorted(self._why), key=self._why.__getitem__, default="no reason given")

    def fields(self) -> dict[str, Any]:
        """The sums, by the names that answers give them."""
        names = ("rollouts", "live_steps", "tokens", "seconds", "money", "undefined", "diverged", "stopped")
        return {name: getattr(self, name) for name in names}

    def warnings(self) -> list[str]:
        """What a reader should know of the rollouts."""
        said = []
        if self.undefined > MANY * self.rollouts:
            said.append(
                f"{self.undefined} of {self.rollouts} rollouts came to no verdict, most often: {self.commonest_why()}"
            )
        if self.diverged:
            said.append(
                f"{self.diverged} rollouts asked for something else in a step that was held: what they answer is about "
                "another prefix"
            )
        return said
