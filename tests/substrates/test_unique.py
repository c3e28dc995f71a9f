"""Branches of one memory are no twins: first the twins that a bare fork makes, then fifty of fifty distinct."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.conftest import require
from tests.fork.inside import Walker, opened, recorded
from tests.substrates import drawing
from worldline.engine.substrates import reseed
from worldline.engine.substrates.reseed import Chance, derived, generated_key, on_branch, register
from worldline.engine.substrates.substrate import Policy, seed_of
from worldline.engine.substrates.zygote import Zygote
from worldline.errors import ReseedFailed

SEED = "5eed" * 16
BRANCHES = 50
CLAIMED = {"rng", "rngs", "openssl", "uuid", "hooks", "keys"}


def test_without_the_cure_bare_forks_are_twins() -> None:
    """The negative control: generators that were used before the fork, tokens and keys are the same in each."""
    drawn = drawing.twins(BRANCHES)
    assert drawn[0].keys() == CLAIMED
    for shared in ("rng", "hooks", "keys"):
        assert len({each[shared] for each in drawn}) == 1, shared


def test_fifty_branches_of_a_zygote_are_fifty_and_can_be_repeated(quick: Path) -> None:
    (quick / "workspace").mkdir()
    zygote = Zygote(quick / "runs", "tests.substrates.drawing:Drawing")
    require("zygote", zygote.probe().why_not is None, str(zygote.probe().why_not))
    env = zygote.open(quick / "workspace", Policy(store=quick / "runs"))
    env.exec("draw")
    ref = env.snapshot(1)
    drawn, seeds = [], [seed_of(SEED, number) for number in range(BRANCHES)]
    for seed in [*seeds, seeds[0]]:
        (member,) = zygote.member(ref).fork([None], "gated")
        told = member.ask(op="reseed", seed=seed)["what"]
        member.ask(op="open_gate")
        drawn.append(member.ask(op="act", action="draw")["value"])
        member.end()
    parent, (*branches, again) = env.exec("draw"), drawn
    env.close()
    assert {"openssl", "uuid", "hook:token"} <= set(told) and any(each.startswith("random:") for each in told)
    for source in CLAIMED:
        assert len({each[source] for each in [*branches, parent]}) == BRANCHES + 1, f"twins: {source}"
    for derived_of_seed in ("rng", "rngs", "keys"):
        assert again[derived_of_seed] == branches[0][derived_of_seed], "what is derived can be repeated"
    for fresh in ("openssl", "uuid", "hooks"):
        assert again[fresh] != branches[0][fresh], "what is for secrets is never repeated"


class Agent(Walker):
    """Has a generator and a token of its own, both from before the fork."""

    def __init__(self) -> None:
        super().__init__(3)
        self.held: list[tuple[float, ...]] = []
        self.token = "first"

    def __call__(self) -> None:
        self.own = random.Random(7)
        self.token = "first"
        reseed._registered[:] = [self.own] if self.is_named else []
        reseed._hooks[:] = [("token", self.renew)] if self.is_named else []
        super().__call__()

    is_named = False

    def renew(self, seed: str) -> None:
        self.token = seed

    def drawn_of_own(self) -> tuple[float, ...]:
        return tuple(self.own.random() for _ in range(2))


def test_fifty_branches_whose_agent_is_driven_again_are_fifty(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the twins; then what the agent names is its branch's own, recorded, and live only behind that."""
    monkeypatch.chdir(quick)
    monkeypatch.setattr(reseed, "_registered", [])
    monkeypatch.setattr(reseed, "_hooks", [])
    agent = Agent()
    run = recorded(agent)
    for named, branches in ((False, 3), (True, BRANCHES)):
        agent.is_named = named
        drawn, tokens = set(), set()
        for _ in range(branches):
            (branch,) = run.fork(agent, at="step:2").branches
            drawn.add(agent.drawn_of_own())
            tokens.add(agent.token)
        assert len(drawn) == len(tokens) == (branches if named else 1)
    (row,) = [event for event in opened(branch.path).events() if event.name == "meta/branch_reseed"]
    assert {"registered:1", "hook:token"} <= set(row.data["reseeded"])


def test_a_branch_whose_hook_fails_never_goes_live(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(quick)
    agent = Walker(3)
    run = recorded(agent)

    def fail(seed: str) -> None:
        raise OSError("the token server is down")

    monkeypatch.setattr(reseed, "_hooks", [("token", fail)])
    (branch,) = run.fork(agent, at="step:2").branches
    assert "the token server is down" in str(branch.error)
    assert branch.live == 0 and len(agent.saw) == 2, "nothing crossed behind the prefix"
    assert not [event for event in opened(branch.path).events() if event.name == "meta/branch_reseed"]


def test_every_generator_is_found_once_and_goes_on_from_a_seed_of_its_own() -> None:
    numpy = pytest.importorskip("numpy")
    made = [random.Random(1), random.Random(1), random.SystemRandom()]
    wide = [numpy.random.default_rng(1), numpy.random.RandomState(1), numpy.random.Generator(numpy.random.PCG64(1))]
    chance, state = Chance(), random.getstate()
    chance.gather()
    chance.gather()
    found = list(chance.generators())
    assert [sum(each is one for each in found) for one in (*made, *wide)] == [1, 1, 0, 1, 1, 1]
    try:
        told = chance.reseed(SEED)
        first = [
            made[0].random(),
            made[1].random(),
            *(float(one.random()) for one in wide[:1]),
            wide[1].random_sample(),
        ]
        assert len(set(first)) == 4
        assert chance.reseed(SEED) == told
        assert [made[0].random(), made[1].random(), float(wide[0].random()), wide[1].random_sample()] == first
    finally:
        random.setstate(state)


def test_generated_keys_differ_by_each_of_run_branch_row_and_call() -> None:
    one = ("run_a", "branch_a", 7, "c1")
    others = [("run_b", *one[1:]), (one[0], "branch_b", *one[2:]), (*one[:2], 8, one[3]), (*one[:3], "c2")]
    keys = {generated_key(*each) for each in (one, *others)}
    assert len(keys) == 5 and generated_key(*one) == generated_key(*one)
    assert generated_key("a", "b\0c", 1, "d") != generated_key("a\0b", "c", 1, "d")
    assert derived(SEED, "x", 0) != derived(SEED, "x", 1) != derived(SEED, "y", 1)


def test_a_generator_that_cannot_be_seeded_keeps_the_branch_shut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.engine.substrates.reseed._registered", [])
    monkeypatch.setattr("worldline.engine.substrates.reseed._hooks", [])
    state = random.getstate()
    try:
        register(object())
        with pytest.raises(ReseedFailed, match=r"a generator \(object\) could not be seeded"):
            Chance().reseed(SEED)
        monkeypatch.setattr("worldline.engine.substrates.reseed._registered", [])
        seen: list[str] = []
        on_branch(seen.append, "seen")
        assert "hook:seen" in Chance().reseed(SEED)
        Chance().reseed(SEED)
        assert len(seen) == 2 and seen[0] == seen[1] and len(seen[0]) == 64
    finally:
        random.setstate(state)
