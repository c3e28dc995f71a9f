"""The seed's own question keeps its answer and gets a warning; the explicit one says what is meant by rescue."""

from __future__ import annotations

import pytest

from tests.attribution.chances import Rollouts, one_fall
from worldline.analysis.attribution.asking import Attribution, Budget, LocateOptions, RecordedSteps, drive
from worldline.analysis.attribution.contrastive import contrastive, last_rescuable_step, point_of_commitment
from worldline.errors import UsageError


def scored(chances: list[float], seed: object = 0, each: int = 20, budget: Budget | None = None) -> Attribution:
    options = LocateOptions(each=each, budget=budget or Budget())
    return drive(contrastive(RecordedSteps(len(chances) - 1), options), Rollouts(chances, seed).draw)


def test_without_recovery_the_point_of_commitment_is_the_fault() -> None:
    said = scored(one_fall(20, 7, 0.6))
    assert said.step == point_of_commitment(said.values) == 7 and said.verdict == "partial"
    assert len(said.values) == 20 and said.rollouts == 400
    assert [value.value == 0 for value in said.values] == [False] * 8 + [True] * 12


def test_with_recovery_it_moves_to_the_end_as_rollouts_are_added_and_a_warning_says_so() -> None:
    chances = [0.9] * 6 + [0.1] * 14 + [0.0]
    late = [scored(chances, seed, each=100).step for seed in range(5)]
    assert min(step for step in late if step is not None) >= 17, "the fault is at 5"
    assert "not the cause" in scored(chances).warnings[0]


def test_the_last_rescuable_step_is_of_the_chance_that_is_asked_for() -> None:
    said = scored([0.9] * 6 + [0.3] * 8 + [0.02] * 6 + [0.0], each=200)
    assert last_rescuable_step(said, 0.5) == 5
    assert last_rescuable_step(said, 0.1) == 13
    assert last_rescuable_step(said, 0.95) is None
    with pytest.raises(UsageError):
        last_rescuable_step(said, 1.0)


def test_no_success_and_no_budget_have_an_answer_too() -> None:
    assert (scored([0.0] * 9).verdict, scored([0.0] * 9).step) == ("diffuse", None)
    spent = scored(one_fall(30, 20, 0.9), budget=Budget(rollouts=100))
    assert spent.stopped == "rollouts" and spent.rollouts == 100
    assert scored([0.5] * 4 + [0.0], budget=Budget(rollouts=0)).verdict == "budget"
