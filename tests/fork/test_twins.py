"""Branches of one parent are no twins: what they draw by chance is their own from the fork on, and is replayed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import worldline as wl
from tests.fork.inside import Walker, opened, recorded
from worldline.engine import clock


@pytest.fixture(autouse=True)
def in_memory(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(quick)


def test_without_the_cure_branches_are_twins() -> None:
    """The negative control: a generator that was used before the fork goes on as the same in every branch."""
    drawn = []
    for _ in range(2):
        chance = random.Random(7)
        prefix = [chance.random() for _ in range(3)]
        drawn.append((prefix, chance.random()))
    assert drawn[0] == drawn[1]


def test_fifty_branches_draw_fifty_times_and_each_replays() -> None:
    agent = Walker(3)
    run = recorded(agent)
    parent = list(agent.drawn)
    rest: set[tuple[float, ...]] = set()
    uuids: set[str] = set()
    seeds: set[str] = set()
    for _ in range(50):
        (branch,) = run.fork(agent, at="step:2").branches
        assert agent.drawn[:2] == parent[:2], "before the fork all draw as the parent did"
        rest.add(tuple(agent.drawn[2:]))
        uuids.add(agent.saw[2])
        made = opened(branch.path)
        (row,) = [event for event in made.events() if event.name == "meta/branch_reseed"]
        assert all(event.seq > row.seq for event in made.events() if event.call is not None), "live only behind it"
        seeds.add(row.data["seed"])
    assert len(rest) == len(uuids) == len(seeds) == 50
    assert tuple(parent[2:]) not in rest
    drawn = list(agent.drawn)
    assert made.replay(agent).equivalent and agent.drawn == drawn


def test_a_resumed_run_goes_on_with_its_own_generator() -> None:
    """There is no twin of a run that broke off: its generator is where it was."""
    from worldline.engine.fork_point import resume_point
    from worldline.policy.rules import Rules
    from worldline.run import drive
    from worldline.seams.branch import BranchSession

    agent, longer = Walker(2), Walker(4)
    run = recorded(agent)
    result = drive(BranchSession(resume_point(run.recording), {}, Rules()), longer)
    assert (result.prefix, result.live) == (2, 2) and longer.drawn[:2] == agent.drawn
    chance = clock.generator(run.cassette.exchanges[0].data["result"])
    assert longer.drawn == [chance.random() for _ in range(4)]
    assert opened(result.path).replay(longer).equivalent


def test_a_branch_in_which_nothing_crosses_is_no_twin_either() -> None:
    """Steps that the agent marks are enough to fork at: behind that of the fork it draws anew, and is replayed so."""
    drawn: list[float] = []

    def dreamer() -> None:
        drawn.clear()
        for number in range(4):
            with wl.step(f"dream {number}"):
                drawn.append(wl.rng().random())

    with wl.record("runs") as recording:
        dreamer()
    run, parent = opened(recording.path), list(drawn)
    rest: set[tuple[float, ...]] = set()
    for _ in range(10):
        (branch,) = run.fork(dreamer, at="step:2").branches
        assert drawn[:2] == parent[:2]
        rest.add(tuple(drawn[2:]))
    assert len(rest) == 10 and tuple(parent[2:]) not in rest
    first = list(drawn)
    made = opened(branch.path)
    assert made.replay(dreamer).equivalent and drawn == first
    (again,) = made.fork(dreamer, at="step:3").branches
    assert drawn[:3] == first[:3] and drawn[3] != first[3]
    last = list(drawn)
    assert opened(again.path).replay(dreamer).equivalent and drawn == last
