"""What is asked which step it was: our methods, and the rules they are compared with, all with the same rollouts.

The seed's rule is written out here so that it can be asked in every cell; `packages.py` asks the published packages
themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from benchmarks.attribution.chance import Keyed, key
from benchmarks.attribution.families import Case
from worldline.analysis.attribution.asking import Attribution, LocateOptions, RecordedSteps, drive
from worldline.analysis.attribution.locate import locate


class Answer(NamedTuple):
    """One method's answer about one run: the step it names, what it claims with an interval, and at which price.

    `claims` are the steps that it says have lost something; `intervals` are those of drops, claimed or tested in vain,
    the largest claimed one first.
    """

    step: int | None
    verdict: str
    claims: tuple[int, ...] = ()
    intervals: tuple[tuple[int, tuple[float, float]], ...] = ()
    interval: tuple[int, int] | None = None
    rollouts: int = 0
    steps: int = 0  # executed by the rollouts


Method = Callable[[Case], Answer]


def answer(said: Attribution) -> Answer:
    """Ours, in the words that all are compared in."""
    claims = tuple(drop.step for drop in said.certified)
    intervals = tuple((drop.step, drop.ci) for drop in (*said.certified, *said.tested))
    return Answer(said.step, said.verdict, claims, intervals, said.interval, said.rollouts, said.live_steps)


def located(case: Case, options: LocateOptions | None = None) -> Answer:
    """The default method."""
    rollouts = case.rollouts()
    said = drive(locate(RecordedSteps(case.run.length), options or LocateOptions()), rollouts.draw)
    if (said.rollouts, said.live_steps) != (rollouts.count, rollouts.steps):
        raise AssertionError(f"{rollouts.count:,} rollouts were executed, {said.rollouts:,} are said")
    return answer(said)


def seeds_rule(each: int) -> Method:
    """Point of commitment: `each` rollouts at every step, then the latest step whose bootstrap interval excludes 0."""

    def ask(case: Case) -> Answer:
        rollouts = case.rollouts()
        passed = [sum(rollouts.passes(at, k, "scan") for k in range(each)) for at in range(case.run.length)]
        sure = [at for at, successes in enumerate(passed) if successes >= least_for_sure(each)]
        step = sure[-1] if sure else (passed.index(max(passed)) if any(passed) else None)
        verdict, claims = ("committed", (sure[-1],)) if sure else ("unsure", ())
        return Answer(step, verdict, claims, rollouts=rollouts.count, steps=rollouts.steps)

    return ask


@lru_cache
def least_for_sure(each: int) -> int:
    """The fewest successes of `each` whose bootstrap interval excludes 0: less than 2.5 % of the samples have none."""
    return next(passed for passed in range(1, each + 1) if (1 - passed / each) ** each < 0.025)


def last_step(case: Case) -> Answer:
    """The step before the end."""
    return Answer(case.run.length - 1, "named", (case.run.length - 1,))


def any_step(case: Case) -> Answer:
    """A step by chance."""
    step = Keyed(key(*case.seed, "uniform")).between(0, case.run.length)
    return Answer(step, "named", (step,))


METHODS: dict[str, Method] = {
    "locate": located,
    "seed N=20": seeds_rule(20),
    "seed N=50": seeds_rule(50),
    "seed N=100": seeds_rule(100),
    "last step": last_step,
    "uniform": any_step,
}
