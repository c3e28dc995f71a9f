"""The suite's agents, recorded and forked for real: what the suite rolls out, `Run.fork` and a study roll out.

A real run has a name of its own and real branches draw anew each time, so the tolerances here are those of an accident
in a million.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.attribution.families import BY_NAME, Case, case
from benchmarks.attribution.forks import Performance, forked, recorded
from benchmarks.attribution.program import Program, leaves
from tests.attribution.binomial import at_least, at_most
from worldline.analysis.attribution.asking import Budget
from worldline.store.studies.journal import DRAWN, read_journal
from worldline.study.attributing import attribute

STORE = Path("runs")
NEVER = 1e-6


def planted(name: str) -> tuple[Case, int]:
    """A short case of a family, and its worst step."""
    found = case(BY_NAME[name], 8, number=0)
    drops = found.truth.drops
    return found, max(range(8), key=drops.__getitem__)


@pytest.mark.parametrize(
    ("name", "forks"),
    [("single, V0 = .8", (8, 10, 8)), ("retries, one key", (8, 24, 8)), ("paraphrase", (0, 24, 8))],
)
def test_real_forks_succeed_as_often_as_the_truth_says(name: str, forks: tuple[int, int, int]) -> None:
    found, worst = planted(name)
    run = recorded(found, STORE)
    assert run.verify().ok
    for at, count in zip((0, worst, worst + 1), forks, strict=True):
        if count:
            agreement = forked(found, run, STORE, at, count)
            seen = (agreement.succeeded, count, agreement.value)
            assert at_most(*seen) > NEVER and at_least(*seen) > NEVER, agreement


def test_a_fork_holds_the_prefix_and_goes_on_as_the_program_can() -> None:
    found, worst = planted("retries, one key")
    run = recorded(found, STORE)
    program = Program(found.run.agent)
    report = run.fork(Performance(found.run.agent, STORE), at=f"step:{worst}", n=3)
    for branch in report.runs:
        states = [found.run.agent.start, *(step.calls[0].result for step in branch.steps)]
        assert states[: worst + 1] == list(found.run.states[: worst + 1])
        for step, (before, after) in enumerate(pairwise(states)):
            assert after in [leaf.result for _, leaf in leaves(program.tree(step, before))]
        assert branch.outcome == ("succeeded" if states[-1] == "answered" else "failed")


def test_a_study_of_real_forks_finds_the_planted_step() -> None:
    found, worst = planted("single, V0 = .8")
    run = recorded(found, STORE)
    agent = Performance(found.run.agent, STORE)
    study = attribute(run, agent.__call__, "outcome", executor="inline", budget=Budget(rollouts=300))
    assert (study.step, study.interval) == (worst, (worst, worst + 1)), study.sentence
    drawn = [entry.data for entry in read_journal(study.folder).entries if entry.what == DRAWN]
    for at in range(9):
        passed = [said["outcome"]["success"] for said in drawn if said["draw"]["at"] == at]
        seen = (sum(passed), len(passed), found.truth.values[at])
        assert at_most(*seen) > NEVER and at_least(*seen) > NEVER, seen
