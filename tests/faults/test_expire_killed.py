"""Wherever an expiry dies, what is gone has its record; run again it finishes, and records nothing twice."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import require
from tests.faults.recorder_process import RecorderServer
from tests.store.forgetting import after, contents, here, names, once, recorded, records
from worldline.store import layout
from worldline.store.forget.availability import SECOND
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording
from worldline.store.verify import verify

CHANGING = ("write", "fdatasync", "fsync", "link", "rename", "replace", "unlink", "open", "ftruncate", "fchmod")


def opened(recording: Recording) -> Recording:
    return Recording(recording.attempt)


def copy(recording: Recording, to: Path) -> Recording:
    """A copy of its store with the hard links."""
    store = recording.run_directory.parent
    to.mkdir(parents=True)
    subprocess.run(["cp", "-a", store, to], check=True)
    return Recording(to / store.name / recording.run_id)


def judge(recording: Recording, now: int, bystander: Recording) -> None:
    """What must hold after an expiry died anywhere, and after it was run again."""
    assert verify(opened(bystander)).ok
    verification = verify(opened(recording))
    assert {problem.kind for problem in verification.problems} <= {"torn"}, verification.problems  # none is missing
    expire(opened(recording), now + SECOND, act=True)
    settled = contents(recording.run_directory.parent)
    assert expire(opened(recording), now + SECOND, act=True).due == []
    assert contents(recording.run_directory.parent) == settled
    assert len(records(recording)) == 8 and once([row["name"] for row in records(recording)])
    assert here(recording) == set() and not layout.tier_key_path(recording.attempt).exists()
    assert verify(opened(recording)).ok and verify(opened(bystander)).ok
    pooled = {path.name for path in (recording.run_directory.parent / layout.POOL).glob("??/*")}
    assert pooled == names(bystander, "ordinary")


def test_an_expiry_killed_at_every_file_operation(recorders: RecorderServer, quick: Path) -> None:
    recording = recorded(quick / "runs", text="of mine")
    bystander = recorded(quick / "runs", {}, text="of theirs")
    now, kills = after(recording, 200), 0
    for step in range(1, 200):
        again = copy(recording, quick / f"{step}")
        store = again.run_directory.parent
        other = Recording(store / bystander.run_id)
        shutil.move(store / bystander.run_id, quick / "aside")  # it declares no retention
        came = recorders.record(store, at=step, names=CHANGING, expire=now)
        shutil.move(quick / "aside", store / bystander.run_id)
        assert came.said("error") == []
        judge(again, now, other)
        shutil.rmtree(quick / f"{step}")
        kills += came.killed
        if not came.killed:
            break
    assert kills > 20


@pytest.mark.parametrize("name", ["write", "fsync", "unlink"])
def test_an_expiry_killed_by_strace(name: str, recorders: RecorderServer, quick: Path) -> None:
    require("strace", shutil.which("strace"), "kills the expiry at an exact system call")
    recording = recorded(quick / "runs")
    other = recorded(quick / "others")
    now = after(recording, 200)
    for step in range(1, 200):
        again = copy(recording, quick / f"{step}")
        inject = ["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={step}"]
        died = recorders.record(again.run_directory.parent, inject, expire=now).killed
        assert {problem.kind for problem in verify(opened(again)).problems} <= {"torn"}
        expire(opened(again), now, act=True)
        assert len(records(again)) == 8 and here(again) == set() and verify(opened(again)).ok
        shutil.rmtree(quick / f"{step}")
        if not died:
            assert step > 1 and verify(other).ok
            return
    raise AssertionError("the expiry never came to its end")


def test_a_full_disk_removes_nothing(recorders: RecorderServer, quick: Path) -> None:
    recording = recorded(quick / "runs")
    now = after(recording, 200)
    for names_met in (("write",), ("fsync",)):
        again = copy(recording, quick / names_met[0])
        came = recorders.record(again.run_directory.parent, at=1, errno=28, names=names_met, expire=now)
        assert came.said("error") == ["os"] and len(here(again)) == 8
        expire(opened(again), now, act=True)
        assert verify(opened(again)).ok and here(again) == set()
        assert json.loads((again.attempt / layout.EXPIRY).read_bytes().splitlines()[0])["seq"] == 0
