"""Several failed runs of one task: where do they lose it? Attributions are put together by what their steps are called.

Step numbers differ from run to run, so each run says what its steps are (a phase, a tool, a plan's item). A run counts
for a name once, with all that it lost under it; what it did not certify there counts as nothing lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

import msgspec

from worldline.analysis.attribution.asking import Attribution
from worldline.analysis.attribution.intervals import Interval, bootstrap_difference, z_of
from worldline.analysis.stats import wilson
from worldline.errors import UsageError


class FailedRun(msgspec.Struct, frozen=True):
    """One attributed run. `names` says what each of its steps is; empty: its number."""

    run: str
    attribution: Attribution
    names: list[str] = []

    def name(self, step: int) -> str:
        """What a step is called."""
        return self.names[step] if self.names else f"step {step}"


class WeakStep(msgspec.Struct, frozen=True):
    """What was lost under one name: in how many of the runs it was the largest certified drop, and how much on average.

    `share` has Wilson's interval; `mean_drop` is over all runs, with a bootstrap over the runs.
    """

    name: str
    culprit_in: int
    certified_in: int
    share: float
    share_ci: Interval
    mean_drop: float
    mean_ci: Interval
    runs: list[str]


class Weakness(msgspec.Struct, frozen=True):
    """All names with a certified drop, the weakest first. `verdicts` counts how the runs' attributions ended."""

    runs: int
    steps: list[WeakStep]
    verdicts: dict[str, int]
    warnings: list[str]


def aggregate(failed: Sequence[FailedRun], delta: float = 0.05) -> Weakness:
    """The weak steps of a task. Raises `UsageError` for no runs, one given twice, or names that do not fit a run."""
    if not failed:
        raise UsageError("no attributed run was given: there is nothing to put together")
    refuse_twice([one.run for one in failed])
    lost: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    culprits: dict[str, int] = defaultdict(int)
    verdicts: dict[str, int] = defaultdict(int)
    for one in failed:
        if one.names and len(one.names) != one.attribution.steps:
            raise UsageError(f"{one.run}: {len(one.names):,} names for {one.attribution.steps:,} steps", run=one.run)
        verdicts[one.attribution.verdict] += 1
        for drop in one.attribution.certified:
            lost[one.name(drop.step)][one.run] += drop.drop
        if one.attribution.certified:
            culprits[one.name(one.attribution.certified[0].step)] += 1
    steps = [_weak(name, by_run, culprits[name], failed, delta) for name, by_run in lost.items()]
    steps.sort(key=lambda step: (-step.culprit_in, -step.mean_drop, step.name))
    return Weakness(len(failed), steps, dict(sorted(verdicts.items())), _warnings(failed))


def refuse_twice(runs: Sequence[str]) -> None:
    """Raise `UsageError` where a run is among these more than once: it would count for more than one."""
    if twice := next((run for run in runs if runs.count(run) > 1), None):
        raise UsageError(f"{twice} was given twice: a run counts once", run=twice)


def _weak(name: str, by_run: dict[str, float], culprit: int, failed: Sequence[FailedRun], delta: float) -> WeakStep:
    drops = [by_run.get(one.run, 0.0) for one in failed]
    return WeakStep(
        name=name,
        culprit_in=culprit,
        certified_in=len(by_run),
        share=culprit / len(failed),
        share_ci=wilson(len(failed), culprit, z_of(delta)),
        mean_drop=fmean(drops),
        mean_ci=bootstrap_difference(drops, [0.0], alpha=delta),
        runs=[one.run for one in failed if one.run in by_run],
    )


def _warnings(failed: Sequence[FailedRun]) -> list[str]:
    said = []
    if blank := sum(not one.attribution.certified for one in failed):
        said.append(
            f"{blank} of {len(failed)} runs have no certified drop: they count as runs that lost nothing anywhere"
        )
    if len(failed) < 5:
        said.append("with fewer than five runs an average over them says little")
    return said
