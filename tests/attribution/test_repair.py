"""A repair is the least change that is shown to work; drift is an edit distance; nothing is validated by luck."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attribution.chances import uniform
from worldline.analysis.attribution.asking import Budget, Do, Draw, Outcome, drive
from worldline.analysis.attribution.drift import drift, edits, similarity
from worldline.analysis.attribution.repair import Candidate, Repair, RepairOptions, repair
from worldline.errors import UsageError

WRONG = json.dumps({"tool": "open", "path": "src/old.py"})
NEAR = json.dumps({"tool": "open", "path": "src/new.py"})
FAR = json.dumps({"tool": "search", "words": "where is the new one", "then": ["open", "read"]})
USELESS = json.dumps({"tool": "open", "path": "src/cold.py"})


class Bench:
    """Succeeds with the chance that is given for the forced actions."""

    def __init__(self, chance: Callable[[dict[int, str]], float], seed: object = 0) -> None:
        self.chance = chance
        self.seed = seed
        self.asked: list[Draw] = []

    def draw(self, batch: list[Draw]) -> list[Outcome]:
        self.asked += batch
        return [Outcome(uniform(self.seed, one) < self.chance({do.step: do.value for do in one.do})) for one in batch]


def searched(bench: Bench, *groups: Sequence[Candidate], steps: tuple[int, ...] = (9,), **options: object) -> Repair:
    asked = [lambda group=group: group for group in groups]
    return drive(repair(20, dict.fromkeys(steps, WRONG), asked, RepairOptions(**options)), bench.draw)


def test_of_two_repairs_that_work_the_one_that_drifts_less_is_taken() -> None:
    works = {NEAR: 0.9, FAR: 1.0, USELESS: 0.1}
    bench = Bench(lambda forced: works[forced[9]])
    said = searched(bench, [Candidate(9, FAR), Candidate(9, USELESS), Candidate(9, NEAR)])
    assert said.verdict == "validated" and said.fix is not None
    assert said.fix.changes == [Candidate(9, NEAR)] and said.wrong == [Candidate(9, WRONG, "recorded")]
    assert 0.5 < said.fix.interval[0] <= 0.9 <= said.fix.interval[1]
    assert said.minimality == pytest.approx(1 - drift(WRONG, NEAR)) and said.minimality > 0.9
    states = {tested.changes[0].action: tested.state for tested in said.tested}
    assert states == {NEAR: "valid", FAR: "outdone", USELESS: "invalid"} or states[FAR] == "valid"
    assert all(one.at == 9 and one.do[0].kind == "force" for one in bench.asked)
    assert len(bench.asked) == len(set(bench.asked)) == said.rollouts


def test_a_group_is_only_asked_for_when_those_before_it_failed() -> None:
    asked = []

    def group(name: str, action: str) -> Callable[[], list[Candidate]]:
        def ask() -> list[Candidate]:
            asked.append(name)
            return [Candidate(9, action)]

        return ask

    works = {NEAR: 0.95, FAR: 0.9, USELESS: 0.0}
    groups = [group("rescued", USELESS), group("user", NEAR), group("model", FAR)]
    said = drive(repair(20, {9: WRONG}, groups), Bench(lambda forced: works[forced[9]]).draw)
    assert asked == ["rescued", "user"] and said.fix is not None and said.fix.changes[0].action == NEAR


def test_where_one_step_is_not_enough_two_are_changed_and_no_more() -> None:
    def chance(forced: dict[int, str]) -> float:
        return 0.95 if forced.get(3) == NEAR and forced.get(9) == FAR else 0.1

    bench = Bench(chance)
    candidates = [Candidate(step, action) for step in (3, 9, 14) for action in (NEAR, FAR)]
    said = searched(bench, candidates, steps=(3, 9, 14), cap=40)
    if said.fix is None:  # the best single change by chance is another one: then none is found, and none is claimed
        assert said.verdict == "none"
    else:
        assert {change.step for change in said.fix.changes} == {3, 9}
        assert max(len(one.do) for one in bench.asked) == 2
    helped = Bench(lambda forced: 0.4 * (forced.get(3) == NEAR) + 0.55 * (forced.get(9) == FAR))
    said = searched(helped, candidates, steps=(3, 9, 14))
    assert said.fix is not None and {(one.step, one.action) for one in said.fix.changes} == {(3, NEAR), (9, FAR)}
    first = next(one for one in helped.asked if len(one.do) == 2)
    assert first.at == 3 and [do.step for do in first.do] == [3, 9]


def test_a_repair_that_does_not_reach_the_target_is_hardly_ever_validated() -> None:
    """Ten candidates at exactly the target, looked at after every batch: at most one study in twenty may be wrong."""
    candidates = [Candidate(9, json.dumps({"path": n})) for n in range(10)]
    wrong = sum(
        searched(Bench(lambda forced: 0.5, seed), candidates, cap=64).verdict == "validated" for seed in range(60)
    )
    assert wrong <= 9, f"{wrong} of 60"


def test_undefined_rollouts_may_have_been_either_so_they_validate_nothing() -> None:
    said = drive(
        repair(20, {9: WRONG}, [lambda: [Candidate(9, NEAR)]], RepairOptions(cap=24)),
        lambda batch: [Outcome(True) if one.k % 3 == 0 else Outcome(None, why="no network") for one in batch],
    )
    assert said.verdict == "none" and said.tested[0].state == "open" and said.undefined == 16
    assert said.tested[0].interval[1] == 1.0 and "no network" in said.warnings[0]


def test_a_budget_ends_a_repair_and_bad_input_is_refused() -> None:
    bench = Bench(lambda forced: 0.55)
    said = searched(bench, [Candidate(9, NEAR), Candidate(9, FAR)], budget=Budget(rollouts=40))
    assert said.verdict == "budget" and said.rollouts <= 40 and said.stopped == "rollouts"
    assert searched(bench, []).verdict == "none", "no candidate, no repair"
    assert searched(bench, [Candidate(9, WRONG)]).tested == [], "what the agent did is no repair of it"
    with pytest.raises(UsageError, match="none of those"):
        searched(bench, [Candidate(4, NEAR)])
    with pytest.raises(UsageError, match="no step 31"):
        repair(20, {31: WRONG}, [])
    with pytest.raises(UsageError, match="needs a step"):
        repair(20, {}, [])
    with pytest.raises(UsageError):
        RepairOptions(target=1.0)


# ---------------------------------------------------------------------------------------------------------- drift


def table(before: str, after: str) -> int:
    """Levenshtein's distance by its table."""
    row = list(range(len(after) + 1))
    for i, one in enumerate(before, 1):
        previous, row = row, [i]
        for j, other in enumerate(after, 1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (one != other)))
    return row[-1]


@settings(max_examples=200)
@given(st.text("abc", max_size=30), st.text("abcd", max_size=30))
def test_the_distance_is_levenshteins(before: str, after: str) -> None:
    assert edits(before, after) == edits(after, before) == table(before, after)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)))
def test_a_value_is_like_itself_and_no_value_is_further_than_1(value: object) -> None:
    assert similarity(value, value) == 1.0
    assert 0.0 <= similarity(value, {"another": [1, 2]}) <= 1.0


def test_drift_is_over_canonical_json_and_takes_what_is_no_json_as_text() -> None:
    assert drift('{"b": 1,\n "a": 2}', '{"a":2,"b":1}') == 0.0
    assert drift("rm -rf build", "rm -rf build ") == pytest.approx(1 / 15)
    ordered = [drift(WRONG, action) for action in (WRONG, USELESS, FAR)]
    assert all(less < more for less, more in pairwise(ordered))


def test_forced_actions_are_in_the_draw_so_that_another_action_is_another_rollout() -> None:
    bench = Bench(lambda forced: 0.9)
    searched(bench, [Candidate(9, NEAR)])
    assert bench.asked[0].do == (Do(9, "force", NEAR),) and bench.asked[0].tag == "repair"
