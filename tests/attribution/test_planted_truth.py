"""The exact truth of the planted-fault suite is that of its programs: executions agree with it, it with hand sums."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.attribution import further, planted
from benchmarks.attribution.families import BY_NAME, FAMILIES, LENGTHS, Family, case
from benchmarks.attribution.program import Program, leaves
from benchmarks.attribution.running import Recorded, Rollouts, failing
from benchmarks.attribution.truth import Truth, Values, truth
from tests.attribution.binomial import agrees
from tests.conftest import ROOT
from worldline.analysis.attribution.asking import Do, Draw

TRIES = 300


def of(run: Recorded) -> Truth:
    return truth(run, Values(Program(run.agent)))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_executions_succeed_as_often_as_the_truth_says(family: Family) -> None:
    found = case(family, 20, number=0)
    drops = found.truth.drops
    worst = max(range(20), key=drops.__getitem__)
    rollouts = Rollouts(found.run, found.seed)
    for at in {0, 10, worst, worst + 1, 20}:
        outcomes = [outcome.success for outcome in rollouts.draw([Draw(at, k) for k in range(TRIES)])]
        defined = [success for success in outcomes if success is not None]
        assert len(defined) > 0.9 * TRIES
        assert agrees(sum(defined), len(defined), found.truth.values[at]), (at, sum(defined), found.truth.values[at])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_walk_ends_as_the_execution_ends(family: Family) -> None:
    for length in (20, 50):
        found = case(family, length, number=1)
        draws = [Draw(at, k, tag) for at in range(0, length + 1, 3) for k in range(4) for tag in ("", "fresh")]
        executed = Rollouts(found.run, found.seed)
        walked = Rollouts(found.run, found.seed, found.walk.finished)
        assert walked.draw(draws) == executed.draw(draws)
        assert (walked.count, walked.steps) == (executed.count, executed.steps)


def test_the_truth_is_what_one_sums_up_by_hand() -> None:
    single = of(failing(planted.WrongFile(10, 4, 0.3), "hand"))
    assert single.values == pytest.approx([0.7] * 5 + [0.0] * 6)
    flaky = of(Recorded(planted.WrongFile(2, 0, 0.5, 0.05), ("reading", "wrong file", "wrong file")))
    assert flaky.values == pytest.approx([0.5, 0.05, 0.05])
    both = of(failing(planted.BothGone(8, 2, 5, 0.5), "hand"))
    assert both.values == pytest.approx([0.75] * 3 + [0.5] * 3 + [0.0] * 3)
    retries = of(failing(further.Retries(8, 2), "hand"))
    assert retries.values == pytest.approx([0.9375] * 3 + [0.875, 0.75, 0.5] + [0.0] * 3)
    assert [step for step in range(8) if retries.right(step)] == [5] and retries.near(6) and not retries.near(7)
    recovers = of(failing(planted.Recovers(8, 2, 0.5, 0.15), "hand", lambda states: states[3] == "lost"))
    assert recovers.values[2:4] == pytest.approx([0.5 + 0.5 * 0.15, 0.15])
    declines = of(failing(further.Declines(4, 0.5), "hand"))
    assert declines.values[0] == pytest.approx(5 / 16)


def test_a_crash_is_no_outcome_and_the_truth_is_of_those_that_do_not_crash() -> None:
    agent = further.Crashes(20, 10, 0.5, 0.5)
    run = failing(agent, "crash")
    outcomes = [outcome.success for outcome in Rollouts(run, "crash").draw([Draw(0, k) for k in range(TRIES)])]
    assert agrees(outcomes.count(None), TRIES, 0.5)
    assert agrees(outcomes.count(True), TRIES - outcomes.count(None), of(run).values[0])
    assert of(run).values == pytest.approx([0.5] * 11 + [0.0] * 10)


@pytest.mark.parametrize("length", LENGTHS)
def test_the_recorded_run_failed_and_each_of_its_steps_can_happen(length: int) -> None:
    for family in FAMILIES:
        run = case(family, length, number=2).run
        program = Program(run.agent)
        assert run.length == length
        for step, (before, after) in enumerate(zip(run.states, run.states[1:], strict=False)):
            assert after in [leaf.result for _, leaf in leaves(program.tree(step, before))]
        assert any(not leaf.result for _, leaf in leaves(program.tree(length, run.states[-1])))


def test_a_planted_fault_is_the_largest_drop() -> None:
    for name in (
        "single, V0 = .5",
        "flaky verifier .05",
        "butterfly",
        "recovery .30",
        "parallel fan-out",
        "crashes 2 %",
    ):
        found = case(BY_NAME[name], 50, number=3)
        assert found.truth.right(found.run.agent.fault), name  # type: ignore[attr-defined]


def test_a_rollout_depends_on_its_draw_alone() -> None:
    found = case(BY_NAME["noisy tail .30"], 20, number=0)
    draws = [Draw(at, k, tag) for at in (0, 5) for k in range(60) for tag in ("", "fresh", "shared")]
    there = dict(zip(draws, Rollouts(found.run, found.seed).draw(draws), strict=True))
    back = dict(zip(draws[::-1], Rollouts(found.run, found.seed).draw(draws[::-1]), strict=True))
    assert there == back

    def drawn(at: int, tag: str) -> list[bool | None]:
        return [there[Draw(at, k, tag)].success for k in range(60)]

    assert drawn(0, "") != drawn(0, "fresh") != drawn(5, "fresh")
    spoils = next(step for step, state in enumerate(found.run.states) if state == "spoiled")
    shared = Rollouts(found.run, found.seed).draw([Draw(at, k, "shared") for at in (0, spoils - 1) for k in range(60)])
    survived = [k for k in range(60) if shared[k].success]
    assert survived and all(shared[60 + k].success for k in survived), (
        "with shared chance, holding good steps loses none"
    )


def test_what_the_suite_cannot_do_is_refused() -> None:
    found = case(BY_NAME["AND"], 20, number=0)
    with pytest.raises(ValueError, match="hold a prefix"):
        Rollouts(found.run, found.seed).draw([Draw(0, 0, do=(Do(3, "force", "1"),))])
    with pytest.raises(ValueError, match="did not fail as wanted"):
        failing(planted.WrongFile(5, 2, 0.0), "never")


def test_another_process_makes_the_same_cases() -> None:
    program = (
        "from benchmarks.attribution.families import FAMILIES, case\n"
        "for family in FAMILIES:\n    found = case(family, 20, 5)\n    print(found.run, found.truth)\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] and said[0].count("\n") == len(FAMILIES)
    assert case(FAMILIES[0], 20, 5, seed=2).run != case(FAMILIES[0], 20, 5).run
