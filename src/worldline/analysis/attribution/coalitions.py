"""Coalitions of steps: some are held as recorded, the others drawn anew, and the chance of failure is asked."""

from __future__ import annotations

from collections.abc import Sequence

from worldline.analysis.attribution.asking import Asking, Budget, Do, Draw, RecordedSteps
from worldline.analysis.attribution.certify import count
from worldline.analysis.attribution.spending import Spending


class Coalitions:
    """The players of one run, the steps that can be drawn anew, and what their coalitions cost so far."""

    def __init__(self, run: RecordedSteps, budget: Budget) -> None:
        self.run = run
        self.players = run.failed()
        self.spent = Spending(run.length, budget)

    @property
    def not_attributable(self) -> list[int]:
        """The steps that are no players: they are served always."""
        return sorted(set(range(self.run.length)) - set(self.players))

    def values(self, coalitions: Sequence[Sequence[int]], each: int, tag: str) -> Asking[list[float]]:
        """The share of failures of each coalition in `each` rollouts, all of them drawn now.

        One of which no rollout came to a verdict has the value of the one before it (the first: failure), so that sums
        along an order stay whole. Raises `BudgetSpent`.
        """
        draws = []
        for number, held in enumerate(coalitions):
            # A shared stream has one chance for all coalitions, else each has its own.
            stream = tag if tag.startswith("shared") else f"{tag}:{number}"
            draws += [self._draw(set(held), k, stream) for k in range(each)]
        outcomes = yield from self.spent.ask_all(draws)
        values: list[float] = []
        for number in range(len(coalitions)):
            seen = count(outcomes[number * each : (number + 1) * each])
            values.append(1 - seen.share() if seen.defined else values[-1] if values else 1.0)
        return values

    def _draw(self, held: set[int], k: int, tag: str) -> Draw:
        """Held from the start on as a prefix, and one by one behind it."""
        at = next((step for step in self.players if step not in held), self.run.length)
        return Draw(at, k, tag, tuple(Do(step, "hold") for step in sorted(held) if step > at))
