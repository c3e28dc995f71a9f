"""The searches: what they claim, what they never do, and that they are functions of outcomes in index order."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attribution.chances import Rollouts, one_fall, uniform
from worldline.analysis.attribution.asking import (
    Attribution,
    Budget,
    Controller,
    Draw,
    LocateOptions,
    Outcome,
    RecordedSteps,
    drive,
)
from worldline.analysis.attribution.fast import fast
from worldline.analysis.attribution.ledger import Ledger
from worldline.analysis.attribution.locate import locate, split_point
from worldline.analysis.attribution.scan import scan
from worldline.errors import Ineligible, UsageError, WorldlineError

METHODS = {"locate": locate, "fast": fast, "scan": scan}
DECLINE = [0.8 * (1 - held / 40) for held in range(41)]


def studied(chances: list[float], seed: object = 0, method: str = "locate", **options: object) -> Attribution:
    run = RecordedSteps(len(chances) - 1)
    return drive(METHODS[method](run, LocateOptions(**options)), Rollouts(chances, seed).draw)


def likely(successes: int, n: int, share: float) -> bool:
    """Whether so few successes are to be expected with this share: fixed seeds, so never a flake."""
    return sum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(successes + 1)) > 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_the_step_that_lost_the_run_is_found_and_is_decisive(method: str) -> None:
    said = [studied(one_fall(30, 3 * n + 1, 0.7), n, method, each=60) for n in range(9)]
    assert [one.step for one in said] == [3 * n + 1 for n in range(9)]
    for one in said:
        assert one.verdict == "decisive" and one.step is not None and one.interval == (one.step, one.step + 1)
        assert one.ci is not None and one.ci[0] <= 0.7 <= one.ci[1] and one.share == pytest.approx(1, abs=0.4)
        assert one.rollouts <= (260 if method != "scan" else 2000)


def test_the_promised_share_of_runs_is_answered_right_within_the_promised_rollouts() -> None:
    falls = [(top, n) for top in (0.2, 0.5, 0.8) for n in range(20)]
    said = [(studied(one_fall(50, 2 * n + 3, top), (top, n)), 2 * n + 3) for top, n in falls]
    right = sum(one.step == fault for one, fault in said)
    assert likely(right, len(falls), 0.97), f"{right} of {len(falls)}"
    assert sum(one.rollouts for one, _ in said) / len(said) <= 380


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["locate", "fast"]), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_in_which_rollouts_end_does_not_matter(seed: int, method: str, paired: bool, order) -> None:
    chances = [0.8, 0.8, 0.6, 0.6, 0.1, 0.1, 0.1, 0.0]
    rollouts = Rollouts(chances, seed, crashes=0.05)

    def as_completed(batch: list[Draw]) -> list[Outcome]:
        places = list(range(len(batch)))
        order.shuffle(places)
        ended = {place: rollouts.outcome(batch[place]) for place in places}
        return [ended[place] for place in range(len(batch))]

    run, options = RecordedSteps(7), LocateOptions(paired=paired)
    first = drive(METHODS[method](run, options), rollouts.draw)
    second = drive(METHODS[method](run, options), as_completed)
    assert first == second
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(first.to_json())), Attribution) == first
    assert len(set(rollouts.asked)) == len(rollouts.asked), "no rollout is asked for twice"
    assert len([draw for draw in rollouts.asked if draw.at < 7]) == first.rollouts
    assert not any(draw.do for draw in rollouts.asked)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))), st.integers(0, 300))
def test_whatever_the_budget_there_is_an_interval_and_the_cause_is_in_it(run: tuple[int, int], budget: int) -> None:
    length, fault = run
    for method in METHODS:
        said = studied(one_fall(length, fault, 1.0), 0, method, budget=Budget(rollouts=budget))
        start, end = said.interval
        assert 0 <= start <= fault < end <= length, said.to_json()
        assert said.rollouts <= budget and (said.step is None or said.step == fault)
        assert (said.stopped == "rollouts") or said.verdict == "decisive"


@pytest.mark.parametrize("cap", ["tokens", "money", "seconds"])
def test_every_cap_ends_a_study_with_what_is_known(cap: str) -> None:
    chances = one_fall(40, 17, 0.9)
    price = {"tokens": 7, "money": 0.5, "seconds": 2.0}[cap]

    def draw(batch: list[Draw]) -> list[Outcome]:
        return [Outcome(uniform(one) < chances[one.at], **{cap: price}) for one in batch]

    def spent(limit: float) -> Attribution:
        return drive(locate(RecordedSteps(40), LocateOptions(budget=Budget(**{cap: limit}))), draw)

    assert spent(60 * price).verdict == "budget" and spent(60 * price).stopped == cap
    assert spent(60 * price).interval[0] <= 17 < spent(60 * price).interval[1]
    assert spent(0).rollouts == 0 and spent(0).interval == (0, 40)
    assert spent(10_000 * price).verdict == "decisive" and spent(10_000 * price).stopped is None


def test_false_claims_stay_under_delta_where_no_step_lost_anything_that_matters() -> None:
    """Each step loses 2 %. A search that believes what it picked claims one of them nearly every time."""
    claims = sum(bool(studied(DECLINE, n, budget=Budget(rollouts=700)).certified) for n in range(100))
    assert likely(100 - claims, 100, 0.95), f"{claims} of 100 runs were blamed on a step"


@pytest.mark.parametrize("paired", [False, True])
def test_the_interval_of_the_certified_step_holds_its_drop(paired: bool) -> None:
    chances = [0.75] * 12 + [0.45] * 9 + [0.0] * 10
    said = [studied(chances, n, paired=paired) for n in range(60)]
    drops = {11: 0.3, 20: 0.45}
    given = [(drop.ci, drops.get(drop.step, 0.0)) for one in said for drop in one.certified]
    held = sum(low <= drop <= high for (low, high), drop in given)
    assert len(given) >= 60 and likely(held, len(given), 0.95), f"{held} of {len(given)}"


def test_what_two_steps_lost_together_is_said_of_both() -> None:
    chances = [0.9] * 8 + [0.5] * 8 + [0.0] * 8
    said = [studied(chances, n, every=True) for n in range(15)]
    assert all({drop.step for drop in one.certified} <= {7, 15} for one in said)
    assert sum(len(one.certified) == 2 for one in said) >= 13
    assert all(one.verdict != "decisive" or one.step == 15 for one in said)
    assert all(one.unexplained is not None and one.unexplained < 0.3 for one in said if len(one.certified) == 2)
    for one in (studied(chances, n) for n in range(10)):
        left = [segment for segment in one.untested if segment.interval[0] <= 7 < segment.interval[1]]
        assert len(one.certified) == 2 or one.step == 7 or left, "what is not searched is said"


def test_a_chance_that_came_back_and_was_lost_again_is_found_to_the_right() -> None:
    chances = [0.6] * 10 + [0.05] * 12 + [0.9] * 16 + [0.0] * 3
    assert [studied(chances, n).step for n in range(10)] == [37] * 10


def test_a_prior_chooses_where_to_look_and_nothing_else() -> None:
    chances = one_fall(64, 50, 0.8)
    sharp = [10.0 if step == 50 else 0.01 for step in range(64)]
    wrong = [10.0 if step == 3 else 0.01 for step in range(64)]
    asked = {}
    for name, prior in [("none", None), ("sharp", sharp), ("wrong", wrong)]:
        said = drive(locate(RecordedSteps(64, prior=prior)), Rollouts(chances, 5).draw)
        assert said.step == 50 and said.verdict == "decisive"
        asked[name] = said.rollouts
    assert asked["sharp"] < asked["none"]


@settings(max_examples=60)
@given(st.lists(st.floats(0, 100), min_size=2, max_size=50), st.data())
def test_every_split_lies_within_its_segment(prior: list[float], data) -> None:
    ledger = Ledger(RecordedSteps(len(prior), prior=prior), Budget())
    low = data.draw(st.integers(0, len(prior) - 2))
    high = data.draw(st.integers(low + 2, len(prior)))
    assert low < split_point(ledger, low, high) < high


@pytest.mark.parametrize("method", METHODS)
def test_steps_without_a_policy_are_never_drawn_never_named_and_said(method: str) -> None:
    resamplable = [step % 3 == 1 for step in range(30)]
    rollouts = Rollouts(one_fall(30, 16, 0.8), 3)
    said = drive(METHODS[method](RecordedSteps(30, resamplable)), rollouts.draw)
    assert said.step == 16 and {draw.at for draw in rollouts.asked} <= {*range(1, 30, 3), 30}
    assert said.not_attributable == [step for step in range(30) if step % 3 != 1]
    assert any("recorded without a policy" in warning for warning in said.warnings)
    first = drive(METHODS[method](RecordedSteps(30, resamplable)), Rollouts(one_fall(30, 1, 0.8), 3).draw)
    assert (first.verdict, first.step, first.interval) == ("decisive", 1, (1, 2))
    hidden = drive(METHODS[method](RecordedSteps(30, resamplable)), Rollouts([0.0] * 31).draw)
    assert hidden.verdict == "systematic"


@pytest.mark.parametrize("method", METHODS)
def test_rescued_rollouts_drew_the_culprit_anew_and_succeeded(method: str) -> None:
    rollouts = Rollouts(one_fall(20, 8, 0.6), 1)
    said = drive(METHODS[method](RecordedSteps(20)), rollouts.draw)
    assert 1 <= len(said.rescued) <= 8
    for rescue in said.rescued:
        outcome = rollouts.outcome(Draw(rescue.at, rescue.k, rescue.tag))
        assert rescue.at == said.step == 8 and outcome.success and rescue.run == outcome.run


# ----------------------------------------------------------------------------------------------- no answer, and why


def test_a_run_that_always_fails_is_systematic() -> None:
    for method in METHODS:
        said = studied([0.0] * 51, 0, method)
        assert (said.verdict, said.step, said.interval) == ("systematic", None, (0, 50))
        assert said.rollouts <= 96 and "policy, not bad luck" in said.why


def test_a_replay_that_asks_for_something_else_is_not_reproducible() -> None:
    def draw(batch: list[Draw]) -> list[Outcome]:
        return [Outcome(None, diverged=one.at == 9, why="step 4 asked for another file") for one in batch]

    said = drive(locate(RecordedSteps(9)), draw)
    assert (said.verdict, said.why, said.rollouts) == ("not-reproducible", "step 4 asked for another file", 0)


def test_a_verifier_that_passes_the_recorded_end_is_noisy_and_that_rate_is_the_floor() -> None:
    said = studied([0.9] * 11 + [0.5] * 20, 2)
    assert said.verdict == "noisy-verifier" and said.curve[-1].at == 30
    assert said.curve[-1].v == pytest.approx(0.5, abs=0.2)
    assert [drop.step for drop in said.certified] in ([10], []), "what was lost all the same is still found"
    assert studied([0.5] * 31, 2).verdict == "noisy-verifier"
    assert studied(one_fall(30, 9, 0.9, 0.05), 2).verdict == "decisive", "one pass in twenty is no noise"


def test_rollouts_without_a_verdict_end_the_study_before_they_cost_much() -> None:
    said = drive(locate(RecordedSteps(20)), Rollouts([0.9] * 20 + [0.0], crashes=1.0).draw)
    assert said.verdict == "not-reproducible" and "the machine died" in said.why and said.rollouts <= 32
    only_end = drive(
        locate(RecordedSteps(20)),
        lambda batch: [Outcome(False) if one.at == 20 else Outcome(None, why="no network") for one in batch],
    )
    assert only_end.verdict == "not-reproducible" and "no network" in only_end.why and only_end.rollouts == 32


def test_decisive_is_refused_where_undefined_rollouts_could_change_the_answer() -> None:
    """Where the step was drawn anew, half of the rollouts crash; had they failed, little would be left of the drop."""

    def draw(batch: list[Draw]) -> list[Outcome]:
        lost = [one.at <= 9 and one.k % 4 != 0 for one in batch]
        good = [one.at <= 9 and one.k % 8 == 0 for one in batch]
        return [Outcome(None if gone else well) for gone, well in zip(lost, good, strict=True)]

    said = drive(locate(RecordedSteps(20)), draw)
    assert said.verdict == "partial" and said.step == 9 and "came to no verdict" in said.why
    assert said.undefined > 0.05 * said.rollouts and "came to no verdict" in said.warnings[0]
    assert all(drop.bounds[0] <= drop.ci[0] <= drop.ci[1] <= drop.bounds[1] for drop in (*said.certified, *said.tested))
    crashes = Rollouts(one_fall(20, 9, 0.8), 4, crashes=0.02)
    assert drive(locate(RecordedSteps(20)), crashes.draw).verdict == "decisive", "few crashes change nothing"


def test_what_cannot_be_attributed_is_refused_before_anything_is_drawn() -> None:
    for run, word in [
        (RecordedSteps(0), "no steps"),
        (RecordedSteps(5, outcome=True), "did not fail"),
        (RecordedSteps(3, [False] * 3), "drawn anew"),
    ]:
        for method in METHODS.values():
            with pytest.raises(Ineligible, match=word):
                method(run)
    with pytest.raises(UsageError):
        RecordedSteps(3, [True])
    with pytest.raises(UsageError):
        RecordedSteps(2, prior=[1.0, math.nan])
    with pytest.raises(UsageError):
        Budget(rollouts=-1)
    with pytest.raises(UsageError):
        LocateOptions(delta=0)


def test_an_executor_that_loses_an_outcome_is_stopped() -> None:
    study: Controller = locate(RecordedSteps(5))
    with pytest.raises(WorldlineError, match="outcomes came"):
        drive(study, lambda batch: [Outcome(False)] * (len(batch) - 1))


def test_a_run_of_one_step_is_a_run() -> None:
    assert studied([0.8, 0.0]).step == 0 and studied([0.8, 0.0], 1, "fast").step == 0
