"""A lineage is as strong as its weakest edge: each is checked, whoever reads, and the parent is never written to."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import worldline as wl
from tests.fork.inside import Walker, opened, recorded
from tests.fork.shop import digest
from worldline.engine.lineage import LineageRecording, ancestors
from worldline.engine.plan import fork_point, plan_of
from worldline.engine.spec import RecordingSpec
from worldline.engine.tree import tree_of
from worldline.errors import Ineligible, LineageBroken, WorldlineError
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.forget import trash

DEPTH = 22


def branch(run: wl.Run, agent: Walker, at: str) -> wl.Run:
    (result,) = run.fork(agent, at=at).branches
    assert result.outcome == "succeeded", result
    return opened(result.path)


def test_forks_of_forks_to_a_depth_of_22_keep_what_each_ancestor_saw(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(quick)
    agent = Walker(DEPTH + 1)
    run = root = recorded(agent)
    before = digest(root.recording.run_directory)
    seen = [list(agent.saw)]
    for number in range(1, DEPTH + 1):
        run = branch(run, agent, f"step:{number}")
        assert agent.saw[:number] == seen[-1][:number], "the prefix is its parent's"
        assert not set(agent.saw[number:]) & set(seen[-1][number:]), "the rest is its own"
        seen.append(list(agent.saw))
    assert digest(root.recording.run_directory) == before
    assert len(list(ancestors(run.recording))) == DEPTH and len(run.steps) == DEPTH + 1
    assert [step.index for step in run.steps] == list(range(DEPTH + 1))
    assert len([e for e in run.events() if e.name == "action/tool_call"]) == 1, "each holds only what is its own"
    saw = list(agent.saw)
    assert run.replay(agent).equivalent and agent.saw == saw
    aside = branch(run, agent, "step:5")
    assert agent.saw[:5] == seen[-1][:5]
    parent = aside.recording.header.data["parent"]
    assert parent["run"] != run.id and parent["genesis"] == root.recording.header.h
    tree = tree_of(run.recording)
    (top,), depth = tree.roots, 0
    while top.children:
        top, depth = max(top.children, key=lambda child: len(child.children)), depth + 1
    assert depth == DEPTH


def other_genesis(parent: Path, other: Path) -> None:
    shutil.rmtree(parent)
    shutil.copytree(other, parent)


def cut(parent: Path, other: Path) -> None:
    (log,) = parent.glob("chunks/*")
    log.write_bytes(log.read_bytes()[:700])


def edited(parent: Path, other: Path) -> None:
    (log,) = parent.glob("chunks/*")
    log.write_bytes(log.read_bytes().replace(b"turn 0", b"turn 9", 1))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda parent, other: shutil.rmtree(parent.parent.parent.parent), "bring that run back"),
        (other_genesis, "another run|is not what it was|cannot be read"),
        (cut, "cannot be read|is not what it was"),
        (edited, "of its ancestor .*does not verify"),
    ],
)
def test_an_ancestor_that_is_gone_or_other_is_one_clear_error(
    quick: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path, Path], None], why: str
) -> None:
    monkeypatch.chdir(quick)
    agent = Walker(3)
    other, root = recorded(agent), recorded(agent)
    middle = branch(root, agent, "step:1")
    last = branch(middle, agent, "step:2")
    damage(root.recording.attempt, other.recording.attempt)
    for use in (lambda: last.fork(agent, at="step:2"), lambda: fork_point(last.recording, plan_of({"at": "step:2"}))):
        with pytest.raises((LineageBroken, Ineligible), match=why):
            use()
    report = last.replay(agent)
    assert report.verdict == "ineligible" and report.reasons
    assert last.verify().ok and last.replay().equivalent, "its own record is whole, and says what is its own"


def test_the_bundle_of_a_branch_is_read_and_verified_and_not_replayed(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(quick)
    agent = Walker(3)
    made = branch(recorded(agent), agent, "step:1")
    pack(made.recording, Path("branch.skn"))
    bundle = wl.open("branch.skn")
    assert bundle.verify().ok and bundle.replay().equivalent and [step.index for step in bundle.steps] == [1, 2]
    report = bundle.replay(agent)
    assert report.verdict == "ineligible" and "the bundle of a branch of run_" in report.reasons[0]


def test_a_branch_bound_to_another_row_is_refused(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(quick)
    agent = Walker(3)
    made = branch(recorded(agent), agent, "step:1").recording
    for word, value in (
        ("h", "0" * 64),
        ("seq", 2),
        ("genesis", "0" * 64),
        ("run", "no run"),
        ("seq", -1),
        ("seq", 999),
    ):
        bound = dict(made.header.data["parent"])
        data = made.header.data
        data["parent"] = {**bound, word: value}
        try:
            with pytest.raises(LineageBroken):
                LineageRecording(made)
        finally:
            data["parent"] = bound
    LineageRecording(made)


def test_what_has_no_whole_record_cannot_be_forked_and_says_why(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(quick)
    agent = Walker(2)
    run = recorded(agent)
    with wl.record("live") as live:
        look = agent
        live.observe("x", src="note")
        with pytest.raises(Ineligible, match="is being recorded"):
            wl.open(live.run, "live").fork(look, at="step:0")
    pack(run.recording, Path("run.skn"))
    with pytest.raises(Ineligible, match="a bundle"):
        wl.open("run.skn").fork(agent, at="step:0")
    for blob in run.recording.attempt.glob("blobs/*/*/*"):
        blob.unlink()


def test_a_missing_content_of_the_parent_is_refused_before_anything_runs(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(quick)

    def wordy() -> None:
        with wl.record("runs") as run:
            for number in range(2):
                with run.step():
                    long(number)

    run = recorded(wordy)
    next(run.recording.attempt.glob("blobs/ordinary/*/*")).unlink()
    runs = set(Path("runs").iterdir())
    with pytest.raises(Ineligible, match="does not verify: missing"):
        run.fork(wordy, at="step:1")
    assert set(Path("runs").iterdir()) == runs


@wl.tool(effect="pure")
def long(number: int) -> str:
    return f"{number}" * 50_000


def test_a_full_disk_ends_the_branch_and_leaves_the_parent(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(quick)
    agent = Walker(3)
    run = recorded(agent)
    before = digest(run.recording.run_directory)
    write, written = layout.write_all, [0]

    def full(descriptor: int, data: bytes) -> None:
        written[0] += 1
        if written[0] > 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(layout, "write_all", full)
        with pytest.raises((WorldlineError, OSError), match="No space left"):
            run.fork(agent, at="step:1")
    assert digest(run.recording.run_directory) == before
    assert branch(run, agent, "step:1").verify().ok, "with room again it goes on"


def test_a_fork_of_a_run_with_a_restricted_tier_serves_it_and_keeps_it_there(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(quick)
    seen: list[str] = []

    def private() -> None:
        seen.clear()
        with wl.record("runs", spec=RecordingSpec(restrict=("tool:long",))) as run:
            for number in range(2):
                with run.step():
                    seen.append(long(number))

    run = recorded(private)
    report = run.fork(private, at="step:1")
    made = opened(report.branches[0].path)
    assert (report.branches[0].prefix, report.branches[0].live) == (1, 1) and seen == ["0" * 50_000, "1" * 50_000]
    assert made.recording.header.data["recording"]["restrict"] == ["tool:long"]
    assert {blob[3] for blob in made.recording.manifest.blobs} == {"restricted"}  # type: ignore[union-attr]
    assert made.replay(private).equivalent
    own = {e.key for e in made.cassette.exchanges if e.kind == "action"}
    assert own < {e.key for e in run.cassette.exchanges}, "a branch names restricted calls with its parent's key"
    assert made.recording.tier_key == run.recording.tier_key is not None


def test_a_run_goes_to_the_trash_with_its_branches_and_never_before(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(quick)
    agent, store = Walker(2), Path("runs")
    root = recorded(agent)
    middle = branch(root, agent, "step:1")
    last = branch(middle, agent, "step:1")
    chosen = trash.select(store, 10**12, keep=1)
    assert [each.run for each in chosen] == [root.id, middle.id]
    assert chosen[1].kept == f"{last.id} is a branch of it"
    moved = list(trash.move(store, [msgspec.structs.replace(each, kept=None) for each in chosen]))
    assert all(each.kept for each in moved) and middle.recording.attempt.is_dir()
    last.fork(agent, at="step:1")
    everything = trash.select(store, 10**12, older_than=0)
    assert not any(each.kept for each in everything), "all of a family may go together"
    assert not any(each.kept for each in trash.move(store, everything)) and not list(store.glob("run_*"))
