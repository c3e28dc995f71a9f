"""Arms of one checkpoint: intervals that hold, looking that is paid for, aggregates and prices that add up."""

from __future__ import annotations

import pytest

from tests.attribution.chances import Rollouts, one_fall, uniform
from worldline.analysis.attribution.ab import ABOptions, Arm, Comparison, ab
from worldline.analysis.attribution.aggregate import FailedRun, aggregate
from worldline.analysis.attribution.asking import (
    Attribution,
    Budget,
    Do,
    Draw,
    LocateOptions,
    Outcome,
    RecordedSteps,
    drive,
)
from worldline.analysis.attribution.contrastive import contrastive
from worldline.analysis.attribution.fast import fast
from worldline.analysis.attribution.intervals import newcombe
from worldline.analysis.attribution.locate import locate
from worldline.analysis.attribution.price import price
from worldline.analysis.attribution.scan import scan
from worldline.analysis.attribution.shapley import ShapleyOptions, shapley
from worldline.errors import UsageError

A, B = Arm("model=a", (Do(9, "set", "model=a"),)), Arm("model=b", (Do(9, "set", "model=b"),))


class Models:
    """Each arm succeeds with its chance; its score is 1 or 0, or with `graded` anything up to 1."""

    def __init__(self, chances: dict[str, float], seed: object = 0, graded: bool = False) -> None:
        self.chances = chances
        self.seed = seed
        self.graded = graded
        self.asked: list[Draw] = []

    def draw(self, batch: list[Draw]) -> list[Outcome]:
        self.asked += batch
        ended = []
        for one in batch:
            success = uniform(self.seed, one.chance) < self.chances[one.tag.removeprefix("arm:")]
            score = uniform(self.seed, one, "score") if self.graded and not success else float(success)
            ended.append(Outcome(success, score, run=f"r{one.k}"))
        return ended


def compared(chances: dict[str, float], seed: object = 0, graded: bool = False, **options: object) -> Comparison:
    arms = [Arm(name, (Do(9, "set", name),)) for name in chances]
    return drive(ab(20, 9, arms, ABOptions(**options)), Models(chances, seed, graded).draw)


def test_two_arms_differ_by_newcombes_interval_and_each_has_its_own_rates() -> None:
    said = compared({"model=a": 0.8, "model=b": 0.3}, graded=True)
    (difference,) = said.differences
    counts = [(arm.count.successes, arm.count.n) for arm in said.arms]
    assert [n for _, n in counts] == [40, 40] and said.rollouts == 80
    assert difference.ci == newcombe(*counts) == difference.bounds and difference.clear
    assert difference.method == "Newcombe" and difference.ci[0] <= 0.5 <= difference.ci[1]
    for arm in said.arms:
        assert arm.interval[0] < arm.rate < arm.interval[1] and arm.rates is not None and arm.rates.n == 40
    assert difference.score_ci is not None and difference.coverage is not None
    assert difference.score_ci[0] < difference.score_difference < difference.score_ci[1]
    assert 0.8 <= difference.coverage <= 1.0


def test_every_rollout_leaves_the_same_checkpoint_and_the_arms_take_turns() -> None:
    models = Models({"model=a": 0.5, "model=b": 0.5})
    drive(ab(20, 9, [A, B], ABOptions(n=10)), models.draw)
    assert {one.at for one in models.asked} == {9} and len(set(models.asked)) == 20
    assert [one.tag for one in models.asked] == ["arm:model=a", "arm:model=b"] * 10


def test_who_looks_in_between_stops_early_and_is_seldom_wrong() -> None:
    clear = compared({"model=a": 0.95, "model=b": 0.05}, n=400, peek=True)
    assert clear.rollouts < 100 and clear.differences[0].clear
    assert clear.differences[0].method == "confidence sequence"
    wrong = sum(
        compared({"model=a": 0.5, "model=b": 0.5}, seed, n=120, peek=True).differences[0].clear for seed in range(60)
    )
    assert wrong <= 9, f"{wrong} of 60 looked-at comparisons of two equal arms are clear"


def test_three_arms_share_the_level() -> None:
    said = compared({"a": 0.9, "b": 0.5, "c": 0.1})
    assert [(one.first, one.second) for one in said.differences] == [("a", "b"), ("a", "c"), ("b", "c")]
    counts = {arm.name: (arm.count.successes, arm.count.n) for arm in said.arms}
    assert said.differences[0].ci == newcombe(counts["a"], counts["b"], 0.05 / 3)


def test_a_budget_leaves_as_many_rollouts_of_each_arm_and_undefined_ones_widen_the_bounds() -> None:
    said = compared({"a": 0.9, "b": 0.5}, budget=Budget(rollouts=31))
    assert [arm.count.n for arm in said.arms] == [15, 15] and said.stopped == "rollouts"
    assert "15 rollouts of each arm" in said.warnings[0]
    assert compared({"a": 0.9, "b": 0.5}, budget=Budget(rollouts=0)).arms[0].interval == (0.0, 1.0)
    lost = drive(
        ab(20, 9, [A, B], ABOptions(n=20)),
        lambda batch: [Outcome(None if one.k % 2 else one.tag == "arm:model=a", why="x") for one in batch],
    )
    (difference,) = lost.differences
    assert difference.ci[0] > 0.5 and difference.bounds[0] < difference.ci[0] and not difference.clear


def test_counterfactual_triples_say_how_often_each_action_was_seen_to_end_how() -> None:
    said = compared({"a": 0.9, "b": 0.5, "as it was": 0.2})
    triples = said.triples("sha256:1", {"a": '{"open":"x"}', "b": '{"open":"y"}'})
    assert [(one.state, one.first, one.second) for one in triples] == [("sha256:1", '{"open":"x"}', '{"open":"y"}')]
    assert triples[0].first_outcomes == said.arms[0].count and triples[0].second_outcomes.n == 40


def test_arms_that_cannot_be_compared_are_refused() -> None:
    for at, arms in [(20, [A, B]), (9, [A]), (9, [A, A]), (12, [A, B])]:
        with pytest.raises(UsageError):
            ab(20, at, arms)
    with pytest.raises(UsageError):
        ABOptions(n=0)


# ------------------------------------------------------------------------------------------- several runs, and prices


def failed(name: str, fault: int, length: int = 20) -> FailedRun:
    said = drive(locate(RecordedSteps(length)), Rollouts(one_fall(length, fault, 0.8), name).draw)
    return FailedRun(name, said, [f"phase {step * 4 // length}" for step in range(length)])


def test_several_runs_of_one_task_show_where_it_is_lost() -> None:
    runs = [failed(f"run {n}", 10 + n % 4) for n in range(6)] + [failed("odd", 2)]
    said = aggregate(runs)
    weakest, other = said.steps
    assert (weakest.name, weakest.culprit_in, weakest.share) == ("phase 2", 6, 6 / 7)
    assert weakest.share_ci[0] < 6 / 7 < weakest.share_ci[1] and weakest.mean_ci[0] <= weakest.mean_drop
    assert other.runs == ["odd"] and said.runs == 7 and sum(said.verdicts.values()) == 7
    lucky = FailedRun("lucky", Attribution(verdict="diffuse", method="locate", steps=20, interval=(0, 20)))
    assert "no certified drop" in aggregate([*runs, lucky]).warnings[0]
    assert aggregate([*runs, lucky]).steps[0].mean_drop < weakest.mean_drop


def test_names_that_do_not_fit_and_no_runs_are_refused() -> None:
    with pytest.raises(UsageError):
        aggregate([])
    with pytest.raises(UsageError, match="2 names for 20 steps"):
        aggregate([FailedRun("r", failed("r", 4).attribution, ["a", "b"])])


def test_a_price_is_near_what_it_comes_to_and_never_over_the_cap() -> None:
    run, options = RecordedSteps(50), LocateOptions(each=10)
    chances = one_fall(50, 30, 0.6)
    for name, method in {"locate": locate, "fast": fast, "scan": scan, "contrastive": contrastive}.items():
        said = drive(method(run, options), Rollouts(chances).draw)
        told = price(run, name, options)
        assert told.rollouts / 2 <= said.rollouts <= told.most, name
        assert price(run, name, LocateOptions(budget=Budget(rollouts=30))).most == 30
    for kind in ("asymmetric", "permutation", "kernel", "pivot"):
        small = RecordedSteps(8, history=False)
        asked = ShapleyOptions(kind=kind, pairs=4, each=2)
        said = drive(shapley(small, asked), Rollouts(one_fall(8, 4, 0.6)).draw)
        assert said.rollouts <= price(small, "shapley", asked).most, kind
    with pytest.raises(UsageError):
        price(run, "guess", options)
