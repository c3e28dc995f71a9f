"""Causal A/B: forks of one checkpoint, each arm with another intervention, and how the outcomes differ.

Only siblings from one checkpoint are compared; two independent runs would differ in everything that came before, too.
The arms are drawn in turns. Success is compared by Newcombe's interval after a number of rollouts settled beforehand,
or by a confidence sequence where somebody looks in between and stops early; mean scores by a bootstrap, whose coverage
is measured and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from statistics import fmean

import msgspec

from worldline.analysis.attribution.asking import Asking, Budget, Count, Do, Draw, Outcome
from worldline.analysis.attribution.certify import count
from worldline.analysis.attribution.intervals import (
    Interval,
    bootstrap_coverage,
    bootstrap_difference,
    difference_sequence,
    newcombe,
    z_of,
)
from worldline.analysis.attribution.spending import BudgetSpent, Spending, Spent
from worldline.analysis.stats import PassRates, pass_rates, wilson
from worldline.errors import UnknownStep, UsageError

BATCH = 8  # rollouts of each arm between two looks


class Arm(msgspec.Struct, frozen=True):
    """One arm: its name, and what is done at the checkpoint. An arm that does nothing is the agent as it was."""

    name: str
    do: tuple[Do, ...] = ()


class ABOptions(msgspec.Struct, frozen=True):
    """`n` rollouts of each arm; with `peek` the comparison stops as soon as every difference is clear."""

    n: int = 40
    delta: float = 0.05
    peek: bool = False
    budget: Budget = Budget()

    def __post_init__(self) -> None:
        if self.n < 1 or not 0 < self.delta < 1:
            raise UsageError("n is 1 or more, delta a chance between 0 and 1")


class ArmResult(msgspec.Struct, frozen=True):
    """How one arm fared. `interval` is Wilson's, for its success alone; pass@k and pass^k are of the same rollouts."""

    name: str
    count: Count
    rate: float
    interval: Interval
    mean_score: float | None
    rates: PassRates | None
    runs: list[str]


class Difference(msgspec.Struct, frozen=True):
    """`first` less `second`. `ci` is of the chance of success, at level delta / number of differences.

    `bounds` takes undefined rollouts as failures and as successes, whichever is worse. The score's interval is a
    bootstrap; `coverage` is how often it would hold the truth if the scores seen were all there are, None where it has
    no width.
    """

    first: str
    second: str
    difference: float
    ci: Interval
    bounds: Interval
    method: str
    score_difference: float | None = None
    score_ci: Interval | None = None
    coverage: float | None = None

    @property
    def clear(self) -> bool:
        """Whether the difference excludes 0, whatever the undefined rollouts would have become."""
        return self.bounds[0] > 0 or self.bounds[1] < 0


class Triple(msgspec.Struct, frozen=True):
    """A counterfactual triple: in one state, two actions, and how what followed each of them ended."""

    state: str
    first: str
    second: str
    first_outcomes: Count
    second_outcomes: Count


class Comparison(Spent, frozen=True):
    """The answer: each arm, and each pair of them."""

    at: int
    arms: list[ArmResult]
    differences: list[Difference]
    delta: float

    def triples(self, state: str, actions: dict[str, str]) -> list[Triple]:
        """The triples of one state (its hash) for arms that stand for an action, by name; other arms are left out."""
        acted = [arm for arm in self.arms if arm.name in actions]
        return [
            Triple(state, actions[first.name], actions[second.name], first.count, second.count)
            for first, second in combinations(acted, 2)
        ]


def ab(length: int, at: int, arms: Sequence[Arm], options: ABOptions | None = None) -> Asking[Comparison]:
    """Compare arms from the checkpoint before step `at`. Raises `UsageError` for arms that cannot be compared."""
    if not 0 <= at < length:
        raise UnknownStep.among(at, range(length))
    if len(arms) < 2 or len({arm.name for arm in arms}) < len(arms):
        raise UsageError("a comparison needs two arms or more, each with a name of its own")
    if bad := [arm.name for arm in arms if any(do.step < at for do in arm.do)]:
        raise UsageError(f"arm {bad[0]} changes a step before the checkpoint at step {at}")
    options = options or ABOptions()
    return _Contest(Spending(length, options.budget), at, list(arms), options).answer()


class _Contest:
    def __init__(self, spent: Spending, at: int, arms: list[Arm], options: ABOptions) -> None:
        self._spent = spent
        self._at = at
        self._arms = arms
        self._options = options
        self._outcomes: list[list[Outcome]] = [[] for _ in arms]

    def answer(self) -> Asking[Comparison]:
        with suppress(BudgetSpent):  # the answer says which cap
            yield from self._drawn()
        few = min(len(outcomes) for outcomes in self._outcomes)
        warnings = self._spent.warnings()
        if self._spent.stopped:
            warnings.append(f"the cap on {self._spent.stopped} was reached after {few} rollouts of each arm")
        return Comparison(
            at=self._at,
            arms=[self._arm(arm, outcomes) for arm, outcomes in zip(self._arms, self._outcomes, strict=True)],
            differences=self._differences(final=True),
            delta=self._options.delta,
            warnings=warnings,
            **self._spent.fields(),
        )

    def _drawn(self) -> Asking[None]:
        """All rollouts, the arms in turns, so that a cap leaves as many of each."""
        done = 0
        while done < self._options.n:
            size = min(BATCH if self._options.peek else self._options.n, self._options.n - done)
            if self._options.budget.rollouts is not None:
                paid = (self._options.budget.rollouts - self._spent.rollouts) // len(self._arms)
                size = max(1, min(size, paid))
            draws = [
                Draw(self._at, done + turn, f"arm:{arm.name}", arm.do) for turn in range(size) for arm in self._arms
            ]
            outcomes = yield from self._spent.ask_all(draws)
            for number in range(len(self._arms)):
                self._outcomes[number] += outcomes[number :: len(self._arms)]
            done += size
            if self._options.peek and all(difference.clear for difference in self._differences(final=False)):
                return

    def _arm(self, arm: Arm, outcomes: list[Outcome]) -> ArmResult:
        seen, scores = count(outcomes), _scores(outcomes)
        interval = wilson(seen.defined, seen.successes, z_of(self._options.delta)) if seen.defined else (0.0, 1.0)
        return ArmResult(
            name=arm.name,
            count=seen,
            rate=seen.share(),
            interval=interval,
            mean_score=fmean(scores) if scores else None,
            rates=pass_rates(seen.defined, seen.successes) if seen.defined else None,
            runs=[outcome.run for outcome in outcomes if outcome.run is not None],
        )

    def _differences(self, *, final: bool) -> list[Difference]:
        pairs = list(combinations(range(len(self._arms)), 2))
        return [
            self._difference(first, second, self._options.delta / len(pairs), final=final) for first, second in pairs
        ]

    def _difference(self, first: int, second: int, alpha: float, *, final: bool) -> Difference:
        one, other = count(self._outcomes[first]), count(self._outcomes[second])
        between = difference_sequence if self._options.peek else newcombe
        ci = between((one.successes, one.defined), (other.successes, other.defined), alpha)
        low, _ = between((one.successes, one.n), (other.successes + other.undefined, other.n), alpha)
        _, high = between((one.successes + one.undefined, one.n), (other.successes, other.n), alpha)
        scores = _scores(self._outcomes[first]), _scores(self._outcomes[second])
        measured = final and all(scores) and any(score not in (0.0, 1.0) for side in scores for score in side)
        return Difference(
            first=self._arms[first].name,
            second=self._arms[second].name,
            difference=one.share() - other.share(),
            ci=ci,
            bounds=(min(low, ci[0]), max(high, ci[1])),
            method="confidence sequence" if self._options.peek else "Newcombe",
            score_difference=fmean(scores[0]) - fmean(scores[1]) if all(scores) else None,
            score_ci=bootstrap_difference(*scores, alpha=alpha) if measured else None,
            coverage=bootstrap_coverage(*scores, alpha=alpha) if measured else None,
        )


def _scores(outcomes: list[Outcome]) -> list[float]:
    return [outcome.score for outcome in outcomes if outcome.score is not None]
