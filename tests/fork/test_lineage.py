"""A lineage is as strong as its weakest edge: each is checked, whoever reads, and the parent is never written to."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import worldline as wl
from tests.cli.terminal import worldline
from tests.fork.deep import Looker, chain
from tests.fork.inside import Walker, opened, recorded
from tests.fork.shop import digest
from worldline.engine import clock, eligibility, verified
from worldline.engine.fork_point import fork_point
from worldline.engine.lineage import LineageRecording, ancestors
from worldline.engine.plan import plan_of
from worldline.engine.spec import RecordingSpec
from worldline.engine.tree import NESTED, tree_of
from worldline.engine.verified import VERIFIED
from worldline.errors import Ineligible, LineageBroken, WorldlineError
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.forget import trash
from worldline.store.recording import Recording
from worldline.store.verdicts import Verification
from worldline.store.verify import verify

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


def test_501_forks_of_forks_are_read_replayed_forked_compared_and_drawn(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(quick)
    deepest = 501
    last = chain(quick / "runs", deepest)
    agent = Looker(deepest + 1)
    files = len(os.listdir("/proc/self/fd"))
    assert [step.index for step in last.steps] == list(range(deepest + 1))
    report = last.replay(agent)
    assert (report.verdict, report.served) == ("equivalent", deepest + 1)
    (made,) = last.fork(Looker(deepest + 2), at=f"step:{deepest}").branches
    assert (made.outcome, made.prefix, made.live) == ("succeeded", deepest, 2)
    assert len(os.listdir("/proc/self/fd")) < files + 10, "no ancestor is held open"
    found = last.diff(opened(made.path))
    assert found.aligned == deepest + 1 and found.first_divergence is not None
    assert (found.first_divergence.what, found.only_right) == ("only_right", [deepest + 1])
    ended = worldline("tree", last.id, "--json", "--store", quick / "runs")
    roots, generations = ended.json["roots"], 0
    while roots:
        roots, generations = roots[0]["children"], generations + 1
    assert generations == NESTED and len(ended.json["deeper"]) == deepest + 2 - NESTED
    assert ended.json["deeper"][0]["parent"] in str(ended.json["roots"])
    assert len(worldline("tree", last.id, "--store", quick / "runs").out.splitlines()) == deepest + 2
    assert sys.getrecursionlimit() < 2 * deepest, "none of this goes down by calling itself"


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


def edited_in_place(attempt: Path) -> None:
    (log,) = attempt.glob("chunks/*")
    data, state = log.read_bytes(), log.stat()
    with log.open("r+b") as file:
        file.write(data.replace(b"turn 0", b"turn 9", 1))
    os.utime(log, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert log.stat().st_size == state.st_size and log.stat().st_mtime_ns == state.st_mtime_ns


def sealed_anew(attempt: Path) -> None:
    (manifest,) = attempt.glob(layout.MANIFEST)
    manifest.write_bytes(manifest.read_bytes().replace(b'"complete"', b'"partials"', 1))


def result_gone(attempt: Path) -> None:
    (attempt / layout.RESULT).unlink()


def file_added(attempt: Path) -> None:
    (attempt / "chunks" / "zz.jsonl").write_bytes(b"")


@pytest.mark.parametrize("damage", [edited_in_place, sealed_anew, result_gone, file_added])
def test_an_ancestor_is_read_whole_once_and_refused_when_it_changes_after_that(
    quick: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(quick)
    for name in ("TICK", "COARSE_TICK"):  # nothing changes meanwhile, so there is nothing to wait for
        monkeypatch.setattr(verified, name, 0)
    agent = Walker(4)
    root = recorded(agent)
    middle = branch(root, agent, "step:1")
    last = branch(middle, agent, "step:2")
    last.fork(agent, at="step:3")
    assert VERIFIED.holds(root.recording) and VERIFIED.holds(middle.recording)
    read: list[Path] = []

    def noted(recording: Recording, *more: Any, **named: Any) -> Verification:
        read.append(recording.attempt)
        return verify(recording, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(eligibility, "verify", noted)
        last.fork(agent, at="step:3")
    assert read == [last.recording.attempt], "what verified and has not changed is not read whole again"
    before = digest(quick / "runs" / last.id)
    damage(root.recording.attempt)
    assert not VERIFIED.holds(root.recording)
    for _ in range(2):
        with pytest.raises((LineageBroken, Ineligible)):
            last.fork(agent, at="step:3")
    assert last.replay(agent).verdict == "ineligible"
    assert digest(quick / "runs" / last.id) == before


def test_what_was_touched_just_before_it_was_read_is_read_again(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change in the same tick of the file system's clock would not show in its times."""
    monkeypatch.chdir(quick)
    agent = Walker(2)
    made = branch(recorded(agent), agent, "step:1")
    ((parent, _),) = ancestors(made.recording)
    os.utime(next(parent.attempt.glob("chunks/*")), ns=(0, clock.wall_ns() + 10**10))
    made.fork(agent, at="step:1")
    assert not VERIFIED.holds(parent)


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
