"""What `locate` promises, held on a reduced grid of the planted-fault suite: intervals that hold, few false claims.

Seeds are fixed, so each count is the same every time. It is held against the promised share by its exact binomial
tail: a count that the promise makes likely passes, one that it makes nearly impossible does not.
"""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.attribution.families import BY_NAME, FLAT, HARDER, PLANTED, RANDOM, SEED, SYSTEMATIC
from benchmarks.attribution.scoring import Score
from benchmarks.attribution.suite import Batch, asked, named
from tests.attribution.binomial import at_least, at_most

SURPRISE = 1e-3


@cache
def located(family: str, length: int, runs: int) -> tuple[Score, ...]:
    return tuple(asked(Batch(family, length, "locate", 0, runs, SEED)))


def planted() -> list[Score]:
    """15 runs of each family that has a fault, and 40 of random laws."""
    found = [score for family in named(PLANTED, HARDER) for score in located(family, 20, 15)]
    return found + [score for family in named(RANDOM) for score in located(family, 40, 40)]


def flat(length: int) -> list[Score]:
    return [score for family in named(FLAT) for score in located(family, length, 50)]


def test_intervals_hold_the_true_drop() -> None:
    given = [score for score in planted() if score.covered is not None]
    assert len(given) >= 250
    for held in (sum(bool(score.covered) for score in given), sum(bool(score.together) for score in given)):
        assert at_most(held, len(given), 0.95) > SURPRISE, f"{held} of {len(given)} intervals hold the truth"


@pytest.mark.parametrize("length", [20, 50])
def test_a_flat_agent_is_seldom_blamed(length: int) -> None:
    scores = flat(length)
    blamed = sum(score.claimed for score in scores)
    assert at_least(blamed, len(scores), 0.05) > SURPRISE, f"{blamed} of {len(scores)} flat runs were blamed on a step"


def test_a_step_that_lost_nothing_is_seldom_claimed() -> None:
    scores = planted()
    false = sum(score.false for score in scores)
    assert at_least(false, len(scores), 0.01) > SURPRISE, f"{false} false claims in {len(scores)} answers"


def test_what_is_called_decisive_is_right() -> None:
    called = [score for score in planted() if score.verdict == "decisive"]
    right = sum(score.exact for score in called)
    assert len(called) > 150
    assert at_most(right, len(called), 0.98) > SURPRISE, f"{right} of {len(called)} decisive verdicts are right"


def test_most_faults_are_found_with_few_rollouts() -> None:
    scores = [score for score in planted() if BY_NAME[score.family].group == PLANTED]
    exact = sum(score.exact for score in scores)
    assert at_most(exact, len(scores), 0.97) > SURPRISE, f"{exact} of {len(scores)} faults were found"
    assert sum(score.rollouts for score in scores) / len(scores) <= 380


def test_a_systematic_failure_is_told_from_bad_luck() -> None:
    scores = [score for family in named(SYSTEMATIC) for length in (20, 50) for score in located(family, length, 10)]
    assert {score.verdict for score in scores} == {"systematic"}
    assert all(score.rollouts <= 120 and not score.claimed for score in scores)
    assert not any(score.verdict == "systematic" for score in planted())
