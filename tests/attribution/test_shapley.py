"""Shapley values add up, are those of the definition, and are refused where they mean nothing."""

from __future__ import annotations

from itertools import permutations
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attribution.chances import Game, Rollouts
from worldline.analysis.attribution.asking import Attribution, Budget, Outcome, RecordedSteps, drive
from worldline.analysis.attribution.shapley import Kind, ShapleyOptions, shapley
from worldline.errors import Ineligible, UsageError

SYMMETRIC: tuple[Kind, ...] = ("permutation", "kernel", "pivot")


def valued(game: Game, kind: Kind, pairs: int = 20, each: int = 1, **options: object) -> Attribution:
    run = RecordedSteps(game.length, history=False)
    return drive(shapley(run, ShapleyOptions(kind=kind, pairs=pairs, each=each, **options)), game.draw)


def exact(game: Game) -> list[float]:
    """By the definition: the mean over all orders."""
    orders = list(permutations(range(game.length)))
    values = [0.0] * game.length
    for order in orders:
        for place, step in enumerate(order):
            before = frozenset(order[:place])
            values[step] += (game.fails(before | {step}) - game.fails(before)) / len(orders)
    return values


def both(held: frozenset[int]) -> float:
    """Fails where steps 1 and 3 are held as they were: each alone does no harm."""
    return float({1, 3} <= held)


def either(held: frozenset[int]) -> float:
    return float(bool({1, 3} & held))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10**6), st.sampled_from(SYMMETRIC))
def test_the_values_add_up_to_what_all_steps_together_change(length: int, seed: int, kind: Kind) -> None:
    """In any game whose outcome follows from who is held, whatever the orders that were drawn."""
    table: dict[frozenset[int], float] = {}

    def fails(held: frozenset[int]) -> float:
        return table.setdefault(held, float(hash((seed, held)) % 2))

    said = valued(Game(length, fails), kind, pairs=3)
    total = fails(frozenset(range(length))) - fails(frozenset())
    assert sum(value.value for value in said.values) == pytest.approx(total, abs=1e-9)
    assert [value.step for value in said.values] == list(range(length))


def test_the_asymmetric_values_are_the_drops_and_add_up() -> None:
    chances = [0.8] * 4 + [0.5] * 3 + [0.0] * 4
    said = drive(shapley(RecordedSteps(10), ShapleyOptions(pairs=20, each=4)), Rollouts(chances).draw)
    rates = {point.at: point for point in said.curve}
    assert sum(value.value for value in said.values) == pytest.approx(0.8, abs=0.15)
    assert said.values[3].value == pytest.approx(0.3, abs=0.2) and said.values[6].value == pytest.approx(0.5, abs=0.2)
    assert said.step == 6 and said.method == "shapley:asymmetric" and len(rates) == 11


@pytest.mark.parametrize("kind", SYMMETRIC)
@pytest.mark.parametrize("fails", [both, either])
def test_two_causes_share_the_failure_that_a_single_ablation_counts_twice_or_not_at_all(kind: Kind, fails) -> None:
    game = Game(5, fails)
    said = valued(game, kind, pairs=60)
    for value, true in zip(said.values, exact(game), strict=True):
        assert value.value == pytest.approx(true, abs=0.15), (kind, value)
        assert value.ci is not None and value.ci[0] - 0.03 <= true <= value.ci[1] + 0.03
    assert exact(game) == pytest.approx([0, 0.5, 0, 0.5, 0])


def test_every_coalition_is_drawn_afresh_and_to_the_last_one() -> None:
    """Antithetic pairs, uncached and untruncated: 2 orders x pairs x (steps + 1) coalitions, no rollout used twice."""
    game = Game(6, either)
    said = valued(game, "permutation", pairs=7, each=3)
    assert len(game.asked) == len(set(game.asked)) == 2 * 7 * 3 * 7
    assert said.rollouts == len([draw for draw in game.asked if draw.at < 6])
    streams: dict[str, list[frozenset[int]]] = {}
    for draw in game.asked:
        if draw.k == 0:
            streams.setdefault(draw.tag.split(":")[1], []).append(game.held(draw))
    assert len(streams) == 14
    for pair in range(7):
        forth, back = streams[f"{pair}"], streams[f"{pair}r"]
        assert [set(range(6)) - held for held in reversed(back)] == [set(held) for held in forth]


def test_antithetic_pairs_vary_less_than_single_orders() -> None:
    spread = [valued(Game(5, both), "permutation", pairs=1, seed=seed).values[1].value for seed in range(80)]
    assert fmean((value - 0.5) ** 2 for value in spread) < 0.25 / 2 * 0.8, "two independent orders would have 1/8"


def test_a_pivot_search_asks_for_few_coalitions_that_share_their_chance() -> None:
    game = Game(16, lambda held: float(9 in held))
    said = valued(game, "pivot", pairs=5)
    assert said.step == 9 and said.values[9].value == 1.0 and said.verdict == "partial"
    assert said.rollouts <= 2 * 5 * (1 + 5)
    assert all(draw.chance[0] is None for draw in game.asked)


@pytest.mark.parametrize("kind", SYMMETRIC)
def test_symmetric_values_are_refused_where_inputs_carry_history_unless_asked_for_anyway(kind: Kind) -> None:
    with pytest.raises(Ineligible, match="carry what happened before") as refused:
        shapley(RecordedSteps(5), ShapleyOptions(kind=kind))
    assert refused.value.facts["reasons"]
    said = drive(shapley(RecordedSteps(5), ShapleyOptions(kind=kind, pairs=2, anyway=True)), Game(5, both).draw)
    assert any("carry history" in warning for warning in said.warnings)


@pytest.mark.parametrize("kind", SYMMETRIC)
def test_a_budget_ends_between_pairs_and_bad_input_is_refused(kind: Kind) -> None:
    game = Game(6, either)
    said = valued(game, kind, pairs=50, budget=Budget(rollouts=60))
    assert said.stopped == "rollouts" and said.rollouts <= 60 and said.interval[0] < said.interval[1]
    assert valued(Game(6, either), kind, budget=Budget(rollouts=0)).verdict == "budget"
    with pytest.raises(UsageError):
        ShapleyOptions(pairs=0)
    with pytest.raises(Ineligible):
        shapley(RecordedSteps(4, outcome=True, history=False), ShapleyOptions(kind=kind))


def test_rollouts_without_a_verdict_leave_the_sum_whole_and_are_said() -> None:
    run = RecordedSteps(4, history=False)
    said = drive(
        shapley(run, ShapleyOptions(kind="permutation", pairs=3, each=2)),
        lambda batch: [
            Outcome(None, why="no disk") if draw.k else Outcome(len(draw.do) + draw.at < 2) for draw in batch
        ],
    )
    assert sum(value.value for value in said.values) == pytest.approx(1.0)
    assert said.undefined and any("no disk" in warning for warning in said.warnings)
