"""Wherever a containment dies, the run is either as it was or opened by nobody; run again, it comes to the same end."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import require
from tests.faults.recorder_process import RecorderServer
from tests.store.forgetting import contents
from tests.store.test_contain import LABEL, LARGE, NOW, SECRET, record, run_of
from worldline.engine.account import account
from worldline.errors import Contained
from worldline.store import layout
from worldline.store.catalog import entries
from worldline.store.forget import quarantine
from worldline.store.forget.contain import contain
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording
from worldline.store.verify import verify

CHANGING = (
    "write",
    "fdatasync",
    "fsync",
    "link",
    "rename",
    "replace",
    "unlink",
    "mkdir",
    "open",
    "ftruncate",
    "fchmod",
)


@pytest.fixture
def store(quick: Path) -> Path:
    """A run of two attempts, the second published and with the secret in a row and in a content; and another run."""
    place = quick / "made" / "runs"
    crashed = record(place, "harmless", ends=False)
    attempt = record(place, LARGE + SECRET, SECRET, run=run_of(crashed))
    result = next(run_of(attempt).glob("*.json"))
    result.with_name(result.name + ".sig").write_text("not a real one")
    record(place, LARGE, "harmless")
    return place


def copy(store: Path, to: Path) -> Path:
    """A copy with the hard links."""
    to.mkdir()
    subprocess.run(["cp", "-a", store, to], check=True)
    return to / store.name


def plain(folder: Path) -> dict[str, bytes]:
    """Every file, but for the record's own hash."""
    return {
        path: re.sub(rb'"h":"[0-9a-f]{64}"', b"", data) if path.endswith(quarantine.CONTAINED) else data
        for path, data in contents(folder).items()
    }


def problems(recording: Recording) -> set[str]:
    return {problem.kind for problem in verify(recording).problems}


def judge(store: Path, ended: dict[str, bytes]) -> bool:
    """What must hold after a containment died. Returns whether its record stands."""
    run, other = sorted(path for path in store.iterdir() if path.name.startswith("run_"))
    crashed, attempt = run / layout.ATTEMPTS / names(ended)[0], run / layout.ATTEMPTS / names(ended)[1]
    begun = attempt.name in quarantine.register_of(run).rows
    if begun:
        for path in (run, attempt):
            with pytest.raises(Contained):
                Recording(path)
        assert [entry.disposition for entry in entries(store)] == ["contained", "complete"]
    else:
        assert Recording(run).attempt == attempt and problems(Recording(run)) == {"signature"}
    assert Recording(crashed).disposition == "interrupted" and verify(Recording(other)).ok
    before = contents(attempt) if attempt.exists() else {}
    states = {state.attempt: state.state for state in reconcile(run, account)}
    assert states[attempt.name] == ("contained" if begun else "sealed:complete") and None not in states
    assert (contents(attempt) if attempt.exists() else {}) == before
    return begun


def names(ended: dict[str, bytes]) -> list[str]:
    """The attempts of the run in which the secret is, oldest first."""
    (contained,) = {path.split("/")[2] for path in ended if path.startswith("quarantine/run_") and path.count("/") > 2}
    run = next(path.split("/")[1] for path in ended if path.startswith("quarantine/run_"))
    rest = {path.split("/")[4] for path in ended if path.startswith(f"runs/{run}/trajectory/attempts/")}
    return [*rest, contained]


def finished(store: Path) -> dict[str, bytes]:
    """Contain again, and once more; what stands there at the end, but for what reconciling made."""
    for run in sorted(path for path in store.iterdir() if path.name.startswith("run_")):
        contain(run, LABEL, SECRET, NOW)
        settled = contents(store.parent)
        contain(run, LABEL, SECRET, NOW + 1)
        assert contents(store.parent) == settled
    return plain(store.parent)


def same(left: dict[str, bytes], right: dict[str, bytes], sealed: str) -> bool:
    """Whether two ends are the same; `sealed` is the attempt that reconciling sealed in one of them."""
    return {p: d for p, d in left.items() if sealed not in p} == {p: d for p, d in right.items() if sealed not in p}


def test_a_containment_killed_at_every_file_operation(recorders: RecorderServer, quick: Path, store: Path) -> None:
    ended = finished(copy(store, quick / "whole"))
    outcomes = []
    for step in range(1, 200):
        again = copy(store, quick / f"{step}")
        came = recorders.record(again, at=step, names=CHANGING, contain=[LABEL, SECRET, NOW])
        assert came.said("error") == []
        outcomes.append(judge(again, ended))
        assert same(finished(again), ended, names(ended)[0]), step
        shutil.rmtree(again.parent)
        if not came.killed:
            break
    assert outcomes.count(False) > 5 and outcomes.count(True) > 10
    assert sorted(outcomes) == outcomes  # once its record stands it stays


@pytest.mark.parametrize("name", ["fsync", "rename", "unlink"])
def test_a_containment_killed_by_strace(name: str, recorders: RecorderServer, quick: Path, store: Path) -> None:
    require("strace", shutil.which("strace"), "kills the containment at an exact system call")
    ended = finished(copy(store, quick / "whole"))
    for step in range(1, 200):
        again = copy(store, quick / f"{step}")
        inject = ["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={step}"]
        died = recorders.record(again, inject, contain=[LABEL, SECRET, NOW]).killed
        judge(again, ended)
        assert same(finished(again), ended, names(ended)[0])
        shutil.rmtree(again.parent)
        if not died:
            assert step > 1
            return
    raise AssertionError("the containment never came to its end")


def test_a_full_disk_contains_nothing(recorders: RecorderServer, quick: Path, store: Path) -> None:
    before = contents(store)
    for names_met in (("write",), ("fsync",), ("mkdir",)):
        again = copy(store, quick / names_met[0])
        came = recorders.record(again, at=1, errno=28, names=names_met, contain=[LABEL, SECRET, NOW])
        assert came.said("error") == ["os"]
        left = contents(again)
        assert {path: left.get(path) for path in before} == before
