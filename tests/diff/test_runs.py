"""`Run.diff` over recorded runs: where two part, what differs there, and what ties them together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import worldline as wl
from tests.cli.terminal import worldline
from tests.diff.clerk import record
from tests.fork.outside import Outside
from tests.fork.shop import Desk, clerk, only
from worldline.errors import LineageBroken
from worldline.testing.provider import Provider


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def base(store: Path) -> wl.Run:
    return record(store)


def test_a_run_and_itself_do_not_differ(base: wl.Run) -> None:
    found = base.diff(base)
    assert (found.same, found.aligned, found.only_left, found.only_right, found.notes) == (True, 3, [], [], [])
    assert all(not pair.decision + pair.action + pair.observation for pair in found.steps)


def test_a_second_run_that_did_the_same_is_the_same_and_its_ids_are_named(base: wl.Run, store: Path) -> None:
    found = base.diff(record(store))
    assert found.same
    (change,) = found.steps[0].observation
    assert (change.path, change.volatile) == ("$.calls[0].result.request_id", "id")
    assert [pair.anchors for pair in found.steps] == [["tool"], ["tool", "permission", "screen"], []]


def test_the_first_divergence_names_step_kind_and_path(base: wl.Run, store: Path) -> None:
    found = base.diff(record(store, pieces=3, cents=7))
    first = found.first_divergence
    assert first is not None and first.change is not None
    assert (first.left, first.right, first.what, first.change.path) == (0, 0, "observation", "$.calls[0].result.pieces")
    assert (first.change.left, first.change.right) == (2, 3)
    assert [change.path for change in found.steps[1].decision] == ["$.calls[0].arguments.cents"]
    assert [pair.same for pair in found.steps] == [False, False, True]


def test_steps_that_were_inserted_shift_nothing(base: wl.Run, store: Path) -> None:
    longer = record(store, rules=2)
    there, back = base.diff(longer), longer.diff(base)
    assert (there.aligned, there.only_left, there.only_right) == (3, [], [1, 2])
    assert (back.aligned, back.only_left, back.only_right) == (3, [1, 2], [])
    assert [(pair.left, pair.right) for pair in there.steps] == [(0, 0), (None, 1), (None, 2), (1, 3), (2, 4)]
    assert there.first_divergence is not None and back.first_divergence is not None
    assert (there.first_divergence.what, there.first_divergence.right) == ("only_right", 1)
    assert (back.first_divergence.what, back.first_divergence.left) == ("only_left", 1)


def test_another_permission_is_another_action_and_other_pixels_alone_are_no_difference(
    base: wl.Run, store: Path
) -> None:
    denied = base.diff(record(store, granted=False)).steps[1]
    assert [(change.path, change.left, change.right) for change in denied.action] == [
        ("$.permissions[0].src", "granted", "denied")
    ]
    assert denied.anchors == ["tool", "screen"]
    redrawn = base.diff(record(store, screen=b"two"))
    assert redrawn.same
    assert [(change.path, change.volatile) for change in redrawn.steps[1].observation] == [("$.screen", "screen")]
    assert redrawn.steps[1].anchors == ["tool", "permission"]


def test_runs_of_the_same_steps_that_ended_differently_differ(base: wl.Run, store: Path) -> None:
    first = base.diff(record(store, outcome="failed")).first_divergence
    assert first is not None and first.change is not None
    assert (first.what, first.change.left, first.change.right) == ("outcome", "succeeded", "failed")


def test_the_form_for_programs_is_plain_json(base: wl.Run, store: Path) -> None:
    told = base.diff(record(store, cents=7)).to_json()
    assert json.loads(json.dumps(told)) == told
    assert list(told)[:5] == ["aligned", "only_left", "only_right", "first_divergence", "steps"]
    assert base.diff(base).to_json()["first_divergence"] is None


def test_a_damaged_run_is_compared_as_far_as_it_can_be_read_and_that_is_said(base: wl.Run, tmp_path: Path) -> None:
    copy = tmp_path / base.id
    shutil.copytree(base.recording.run_directory, copy)
    log = max(copy.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    data = log.read_bytes()
    log.write_bytes(data[: len(data) // 2] + b"\xff" + data[len(data) // 2 + 1 :])
    found = base.diff(wl.open(copy))
    assert found.notes == ["the right run is damaged, and was compared as far as it can be read"]


def test_a_branch_is_compared_with_all_it_continues_and_not_without_it(tmp_path: Path) -> None:
    with Outside() as outside, Provider(clerk) as provider:
        desk = Desk(tmp_path, provider, outside)
        parent = wl.open(desk.recording(desk.record()).path)
        branch = wl.open(only(desk.fork(parent.id, "step:1", set={"model": "other"})).path)
    found = parent.diff(branch)
    first = found.first_divergence
    assert first is not None and first.change is not None
    assert (first.left, first.right, first.what, first.change.path) == (1, 1, "decision", "$.model")
    assert [pair.left for pair in found.steps] == [pair.right for pair in found.steps] == [0, 1, 2, 3]
    assert "$.calls[0].arguments.to" in [change.path for change in found.steps[1].decision]
    shutil.rmtree(parent.recording.run_directory)
    with pytest.raises(LineageBroken):
        branch.diff(branch)


def coded(store: Path, folder: Path, files: dict[str, str]) -> wl.Run:
    """A run whose only step leaves these files; what it says is always the same."""
    folder.mkdir()
    (folder / "kept.txt").write_text("as it was\n")
    with wl.record(store, task="write", workspace=folder) as run, run.step():
        run.observe("written", src="file")
        for name, text in files.items():
            (folder / name).write_text(text)
    return wl.open("latest", store)


def test_runs_of_the_same_steps_that_left_other_files_are_not_the_same(tmp_path: Path) -> None:
    store = tmp_path / "runs"
    left = coded(store, tmp_path / "a", {"same.py": "1\n", "other.py": "1\n", "old.py": "", "x.pyc": "1"})
    right = coded(store, tmp_path / "b", {"same.py": "1\n", "other.py": "2\n", "new.py": "", "x.pyc": "2"})
    found = left.diff(right)
    expected = [("new.py", "only_right"), ("old.py", "only_left"), ("other.py", "changed")]
    assert sorted((change.path, change.what) for change in found.files) == expected
    assert found.first_divergence is not None and found.first_divergence.what == "files" and not found.notes
    assert left.diff(left).same and left.diff(left).files == []

    told = worldline("diff", left.id, right.id, "--store", store)
    verdict, *lines = told.out.splitlines()
    assert (told.code, verdict) == (1, "✕ the steps are the same, the files that they left are not   1 step aligned")
    assert "  the files that they left differ in 3 paths" in lines and "    ≠ other.py" in lines

    plain = record(tmp_path / "runs")
    assert left.diff(plain).notes == ["the files were not compared: the right run kept no workspace"]


def test_what_masks_leave_out_is_named_and_no_difference(base: wl.Run, store: Path) -> None:
    other = record(store, pieces=3, cents=7)
    masks = ["observation $.calls[*].result.pieces", "tool:refund $.cents"]
    found = base.diff(other, mask=[*masks, "decision $.nothing"])
    assert found.same
    named = [change for pair in found.steps for part in (pair.decision, pair.observation) for change in part]
    assert {(change.path, change.left, change.right) for change in named if change.volatile == "mask"} == {
        ("$.calls[0].result.pieces", 2, 3),
        ("$.calls[0].arguments.cents", 64, 7),
    }
    assert [(use.values, use.exchanges) for use in found.masks] == [(2, 2), (2, 2), (0, 0)]
    # A pattern leaves out what it finds and nothing beside it, and a mask of one place says nothing of another.
    less = base.diff(other, mask=[r"observation $.calls[*].result.pieces=~\d", "tool:refund $.order", masks[0]])
    assert less.first_divergence is not None and less.first_divergence.change is not None
    assert less.first_divergence.change.path == "$.calls[0].arguments.cents"


def test_the_verb_honours_masks_of_the_line_and_of_the_folder(base: wl.Run, store: Path) -> None:
    other = record(store, pieces=3)
    runs = base.id, other.id, "--store", store
    assert worldline("diff", *runs).code == 1
    ended = worldline("diff", *runs, "--mask", "observation $.calls[*].result.pieces")
    assert ended.code == 0
    assert "observation $.calls[*].result.pieces   left out 2 values in 2 steps   (given)" in ended.out
    Path("worldline.toml").write_text("[matching]\nmask = ['observation $.calls[*].result.pieces', '$.model']\n")
    (use,) = worldline("diff", *runs, "--json").json["masks"]
    assert (use["origin"], use["values"]) == ("worldline.toml", 2)
    refused = worldline("diff", *runs, "--mask", "$.messages[*].content")
    assert (refused.code, "is about requests" in refused.complaint) == (64, True)
