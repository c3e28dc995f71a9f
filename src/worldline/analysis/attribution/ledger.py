"""What was seen so far: counts per prefix, and rescued rollouts. Methods that hold prefixes ask through it.

Steps that no policy can draw anew are served in every rollout, so prefixes that differ only by them are one. The
ledger numbers the prefixes that differ: position p holds the first p steps that can be drawn anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from worldline.analysis.attribution.asking import (
    Asking,
    Budget,
    Count,
    CurvePoint,
    Draw,
    Outcome,
    RecordedSteps,
    Rescue,
)
from worldline.analysis.attribution.intervals import confidence_sequence
from worldline.analysis.attribution.spending import Spending

RESCUES = 8  # rescued rollouts that are named


class Ledger:
    """The counts of one study. Positions run from 0 to `end`, where everything is held.

    Raises `Ineligible` for a run in which there is nothing to attribute.
    """

    def __init__(self, run: RecordedSteps, budget: Budget) -> None:
        self.run = run
        self.spent = Spending(run.length, budget)
        self._steps = run.failed()
        self.end = len(self._steps)
        self._counts: dict[int, Count] = {}
        self._next: dict[tuple[int, str], int] = defaultdict(int)
        self._rescues: dict[int, list[Rescue]] = defaultdict(list)

    def at(self, position: int) -> int:
        """The prefix of a position, as a number of steps held."""
        return self._steps[position] if position < self.end else self.run.length

    def step(self, position: int) -> int:
        """The step between a position and the next."""
        return self._steps[position]

    def weight(self, position: int) -> float:
        """The prior's weight of that step."""
        return self.run.prior[self._steps[position]] if self.run.prior else 1.0

    @property
    def not_attributable(self) -> list[int]:
        """The steps that are served always."""
        return sorted(set(range(self.run.length)) - set(self._steps))

    def ask(self, wanted: Iterable[tuple[int, int]], tag: str = "") -> Asking[list[Outcome]]:
        """Draw the next rollouts of a stream at positions: (position, how many), dealt out in turns.

        What the budget no longer pays for is left out; where it pays for nothing, `BudgetSpent` is raised.
        """
        turns = [(turn, position) for position, n in wanted for turn in range(n)]
        positions = [position for _, position in sorted(turns, key=lambda one: one[0])]
        taken = yield from self.spent.ask([self._draw(position, tag) for position in positions])
        for position, (draw, outcome) in zip(positions, taken, strict=False):
            self._take(position, draw, outcome)
        return [outcome for _, outcome in taken]

    def _draw(self, position: int, tag: str) -> Draw:
        k = self._next[position, tag]
        self._next[position, tag] += 1
        return Draw(self.at(position), k, tag)

    def _take(self, position: int, draw: Draw, outcome: Outcome) -> None:
        count = self._counts.get(position, Count())
        success, undefined = outcome.success is True, outcome.success is None
        self._counts[position] = Count(count.n + 1, count.successes + success, count.undefined + undefined)
        if success and position < self.end and len(self._rescues[position]) < RESCUES:
            self._rescues[position].append(Rescue(draw.at, draw.k, draw.tag, outcome.run, outcome.score))

    def count(self, *positions: int) -> Count:
        """All outcomes at some positions, pooled."""
        found = [self._counts[position] for position in set(positions) if position in self._counts]
        return Count(sum(c.n for c in found), sum(c.successes for c in found), sum(c.undefined for c in found))

    def value(self, *positions: int, undefined: float | None = None) -> float:
        """The estimate of V at positions that are taken to be alike; 0 where nothing was drawn."""
        return self.count(*positions).share(undefined)

    def probed(self) -> list[int]:
        """The positions with at least one verdict, in order."""
        return sorted(position for position, count in self._counts.items() if count.defined)

    def rescued(self, position: int) -> list[Rescue]:
        """Rollouts that drew the step at a position anew and succeeded, the first ones."""
        return self._rescues[position]

    def curve(self, alpha: float) -> list[CurvePoint]:
        """V at every probed prefix."""
        points = []
        for position in self.probed():
            count = self._counts[position]
            low, high = confidence_sequence(count.successes, count.defined, alpha)
            points.append(
                CurvePoint(self.at(position), count.share(), low, high, count.n, count.successes, count.undefined)
            )
        return points
