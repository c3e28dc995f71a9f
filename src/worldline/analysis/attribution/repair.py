"""The smallest change that would have saved the run: other actions forced at the wrong step, tested until one is sure.

The candidates of a round are drawn in turns, and each has a confidence sequence at the round's level / number of its
candidates, so looking after every batch costs nothing; the rounds have delta / 2, delta / 4 and so on. One is out when
it cannot reach the target any more, or when another that drifts less has reached it; the one with the least drift that
has is the answer. Candidates come in groups (rescued rollouts first, then the user's, then a model's), a round for
each, and a group is only asked for when those before it failed.
Where no single step is enough, the best that was found is kept and another step is forced as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from worldline.analysis.attribution.asking import Asking, Budget, Count, Do, Draw
from worldline.analysis.attribution.certify import count
from worldline.analysis.attribution.drift import drift
from worldline.analysis.attribution.intervals import EVERYTHING, Interval, confidence_sequence
from worldline.analysis.attribution.spending import BudgetSpent, Spending, Spent
from worldline.errors import UnknownStep, UsageError

Source = Literal["recorded", "rescued", "user", "model"]


class Candidate(msgspec.Struct, frozen=True):
    """Another action at a step, as JSON text, and where it is from."""

    step: int
    action: str
    source: Source = "user"


class RepairOptions(msgspec.Struct, frozen=True):
    """`target` is the failure rate that a valid repair stays under, shown by an interval at level `delta`.

    `batch` rollouts of each candidate are drawn at a time, `cap` in all; `most` steps are changed at most.
    """

    target: float = 0.5
    delta: float = 0.05
    batch: int = 8
    cap: int = 80
    most: int = 3
    budget: Budget = Budget()

    def __post_init__(self) -> None:
        if not (0 < self.target < 1 and 0 < self.delta < 1):
            raise UsageError("target and delta are chances between 0 and 1")
        if self.batch < 1 or self.cap < 1 or self.most < 1:
            raise UsageError("batch, cap and most are numbers, 1 or more")


class Tested(msgspec.Struct, frozen=True):
    """A candidate, one action for each step it changes, and how its rollouts ended.

    `interval` is of its chance of success and holds for all candidates together, at any time; an undefined rollout is
    one that may have failed and may have succeeded. `state` says why it was left.
    """

    changes: list[Candidate]
    drift: float
    count: Count
    interval: Interval
    state: Literal["valid", "invalid", "outdone", "open"]


class Repair(Spent, frozen=True):
    """The answer. `fix` is the valid candidate with the least drift, `wrong` what the agent did at its steps.

    `verdict` is `validated`, `none` (no candidate reached the target) or `budget`.
    """

    verdict: Literal["validated", "none", "budget"]
    fix: Tested | None
    wrong: list[Candidate]
    minimality: float | None
    tested: list[Tested]
    target: float
    delta: float


@dataclass
class _Arm:
    changes: tuple[Candidate, ...]
    drift: float
    alpha: float = 0.0
    seen: Count = field(default_factory=Count)
    state: Literal["valid", "invalid", "outdone", "open"] = "open"

    def draw(self, k: int) -> Draw:
        first = min(change.step for change in self.changes)
        forced = sorted(self.changes, key=lambda change: change.step)
        return Draw(first, k, "repair", tuple(Do(change.step, "force", change.action) for change in forced))

    def interval(self) -> Interval:
        """Of the chance of success. An undefined rollout may have been either."""
        if not self.seen.n:
            return EVERYTHING
        low, _ = confidence_sequence(self.seen.successes, self.seen.n, self.alpha)
        _, high = confidence_sequence(self.seen.successes + self.seen.undefined, self.seen.n, self.alpha)
        return low, high


Groups = Iterable[Callable[[], Sequence[Candidate]]]


def repair(
    length: int, actions: dict[int, str], groups: Groups, options: RepairOptions | None = None
) -> Asking[Repair]:
    """Search a repair. `actions` is what the agent did (JSON text) at the steps that may be changed.

    `groups` give candidates, each asked for once. Raises `UsageError` for a step or candidate that there is not.
    """
    if bad := [step for step in actions if not 0 <= step < length]:
        raise UnknownStep.among(bad[0], range(length))
    if not actions:
        raise UsageError("a repair needs a step to change: none was given")
    return _Bench(Spending(length, (options or RepairOptions()).budget), actions, options or RepairOptions()).answer(
        groups
    )


class _Bench:
    def __init__(self, spent: Spending, actions: dict[int, str], options: RepairOptions) -> None:
        self._spent = spent
        self._actions = actions
        self._options = options
        self._arms: list[_Arm] = []
        self._round = 0

    def answer(self, groups: Groups) -> Asking[Repair]:
        try:
            for group in groups:
                yield from self._test(self._singles(group()))
                if self._winner():
                    break
            for _ in range(1, min(self._options.most, len(self._actions))):
                if self._winner() or not (wider := self._wider()):
                    break
                yield from self._test(wider)
        except BudgetSpent:
            pass  # the answer says which cap
        return self._answer()

    def _singles(self, candidates: Sequence[Candidate]) -> list[_Arm]:
        """One arm for each new action; one that is what the agent did is none."""
        known = {(arm.changes[0].step, arm.changes[0].action) for arm in self._arms if len(arm.changes) == 1}
        arms = []
        for candidate in candidates:
            if candidate.step not in self._actions:
                raise UsageError(
                    f"step {candidate.step} of a candidate is none of those to change", step=candidate.step
                )
            place = (candidate.step, candidate.action)
            if place not in known and candidate.action != self._actions[candidate.step]:
                known.add(place)
                arms.append(self._arm((candidate,)))
        return arms

    def _arm(self, changes: tuple[Candidate, ...]) -> _Arm:
        return _Arm(changes, sum(drift(self._actions[change.step], change.action) for change in changes))

    def _wider(self) -> list[_Arm]:
        """The best arm of the most changes so far, with every single change of another step beside it."""
        most = max((len(arm.changes) for arm in self._arms), default=0)
        widest = [arm for arm in self._arms if len(arm.changes) == most]
        best = max(widest, key=lambda arm: (arm.seen.share(), -arm.drift), default=None)
        if best is None:
            return []
        taken = {change.step for change in best.changes}
        singles = [arm.changes[0] for arm in self._arms if len(arm.changes) == 1]
        return [self._arm((*best.changes, change)) for change in singles if change.step not in taken]

    def _test(self, arms: list[_Arm]) -> Asking[None]:
        """Draw the open arms in turns until each is decided, outdone, or at the cap."""
        self._arms += arms
        self._round += 1
        for arm in arms:
            arm.alpha = self._options.delta / 2**self._round / len(arms)
        self._settle()
        while drawn := [arm for arm in self._arms if arm.state == "open" and arm.seen.n < self._options.cap]:
            size = min(self._options.batch, self._options.cap - min(arm.seen.n for arm in drawn))
            draws = [arm.draw(arm.seen.n + turn) for turn in range(size) for arm in drawn]
            outcomes = yield from self._spent.ask_all(draws)
            for number, arm in enumerate(drawn):
                seen = count(outcomes[number :: len(drawn)])
                arm.seen = Count(
                    arm.seen.n + seen.n, arm.seen.successes + seen.successes, arm.seen.undefined + seen.undefined
                )
            self._settle()

    def _settle(self) -> None:
        """What the intervals say now."""
        needed = 1 - self._options.target
        for arm in self._arms:
            low, high = arm.interval()
            arm.state = "valid" if low > needed else "invalid" if high < needed else "open"
        least = min((arm.drift for arm in self._arms if arm.state == "valid"), default=None)
        for arm in self._arms:
            if arm.state == "open" and least is not None and arm.drift >= least:
                arm.state = "outdone"

    def _winner(self) -> _Arm | None:
        valid = [arm for arm in self._arms if arm.state == "valid"]
        return min(valid, key=lambda arm: (arm.drift, -arm.seen.share()), default=None)

    def _tested(self, arm: _Arm) -> Tested:
        return Tested(list(arm.changes), arm.drift, arm.seen, arm.interval(), arm.state)

    def _answer(self) -> Repair:
        best = self._winner()
        steps = sorted(change.step for change in best.changes) if best else []
        mean = best.drift / len(best.changes) if best else 0.0
        return Repair(
            verdict="validated" if best else "budget" if self._spent.stopped else "none",
            fix=self._tested(best) if best else None,
            wrong=[Candidate(step, self._actions[step], "recorded") for step in steps],
            minimality=1 - mean if best else None,
            tested=[self._tested(arm) for arm in sorted(self._arms, key=lambda arm: (-arm.seen.share(), arm.drift))],
            target=self._options.target,
            delta=self._options.delta,
            warnings=self._spent.warnings(),
            **self._spent.fields(),
        )
