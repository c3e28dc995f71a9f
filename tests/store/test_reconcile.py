"""Reconciling twice gives the same, right state, wherever the recorder died and wherever reconciling itself died.

After it every acknowledged row is in a sealed log that verifies; a published result is whole and from one attempt; what
was not committed is not published; and nothing that was sealed, live, damaged or in doubt has changed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.conftest import require
from tests.store.recorder_process import CALLS, Recorded, RecorderServer
from worldline.engine.account import account
from worldline.engine.cassette import Cassette
from worldline.engine.replay import inspect
from worldline.store import layout
from worldline.store.reconcile import State, reconcile, refuse_doubt
from worldline.store.recording import Recording
from worldline.store.verify import verify

CHANGING = ("write", "link", "rename", "replace", "unlink", "mkdir", "ftruncate")
SEALED = {"sealed:complete", "sealed:partial"}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def twice(run: Path) -> list[State]:
    """Reconcile twice; the second time nothing is done, and nothing on the disk changes."""
    first = reconcile(run, account)
    settled = contents(run)
    second = reconcile(run, account)
    assert contents(run) == settled
    assert [msgspec.structs.replace(state, did=None) for state in first] == second
    return second


def judge(run: Path, came: Recorded, published: dict[str, bytes]) -> str:
    """Everything that must hold of the one attempt of a run after its writer was killed. Returns its state."""
    (state,) = twice(run)
    assert {path.name: path.read_bytes() for path in run.glob("*.json")} == published
    begun, finished = came.said("begun"), came.said("finished")
    if state.state == "stillborn":
        assert not begun and not published
        return state.state
    assert state.state in SEALED, state
    recording = Recording(run)
    assert verify(recording).ok, verify(recording).problems
    assert recording.manifest is not None
    assert recording.manifest.disposition == state.state.removeprefix("sealed:")
    assert (recording.published is not None) == bool(published) == (state.state == "sealed:complete")
    exchanges = Cassette(recording).by_call
    assert set(begun) <= set(exchanges)
    assert {call for call in finished if exchanges[call].finished is None} == set()
    *_, last = rows = list(recording.events())
    assert (last.name, last.data["disposition"]) == ("meta/end", recording.manifest.disposition)
    assert [row.seq for row in rows if row.raw.endswith(last.raw) or row.data == last.data] == [last.seq]
    assert inspect(recording).equivalent and refuse_doubt(recording) is recording
    if published:
        assert len(begun) == CALLS and list(published.values()) == [(recording.attempt / layout.RESULT).read_bytes()]
    else:
        assert str(state.reason).startswith("its writer died")
    return state.state


def killed(recorders: RecorderServer, folder: Path) -> Iterator[tuple[int, Path, Recorded]]:
    """One store for each file operation of a recording, killed there."""
    for number in range(1, 400):
        store = folder / f"{number}"
        came = recorders.record(store, at=number)
        if not came.killed:
            return
        if store.exists() and any(store.glob("run_*")):
            yield number, next(store.glob("run_*")), came
        shutil.rmtree(store, ignore_errors=True)
    raise AssertionError("the recording never came to its end")


def look(run: Path) -> frozenset[tuple[str, int, bool]]:
    """What is where, for telling places apart: names, links, whether there is something in it."""
    files = ((path, path.stat()) for path in run.rglob("*"))
    names = ((re.sub(r"\d+\.tmp", "tmp", path.name), state) for path, state in files)
    return frozenset((name, state.st_nlink, state.st_size > 0) for name, state in names if "ainst" not in name)


def copy(run: Path, to: Path) -> Path:
    """A copy with its hard links."""
    to.mkdir(parents=True)
    subprocess.run(["cp", "-a", run, to], check=True)
    return to / run.name


def test_a_writer_killed_at_every_file_operation(recorders: RecorderServer, quick: Path) -> None:
    states = []
    for _, run, came in killed(recorders, quick):
        published = {path.name: path.read_bytes() for path in run.glob("*.json")}
        states.append(judge(run, came, published))
    order = [state for state, before in zip(states, [None, *states], strict=False) if state != before]
    assert order == ["stillborn", "sealed:partial", "sealed:complete"]
    assert states.count("sealed:partial") > 60 and states.count("sealed:complete") >= 3


def test_reconcile_killed_at_every_step(recorders: RecorderServer, quick: Path) -> None:
    """From each place of the publication protocol, and from a torn tail, killed at each of its own operations."""
    kills, seen = 0, set()
    for number, run, came in killed(recorders, quick / "recorded"):
        attempt = next(layout.attempts(run), None)
        ended = attempt is not None and any(b'"src":"end"' in path.read_bytes() for path in attempt.rglob("*.jsonl"))
        if (not ended and number % 20) or (looks := look(run)) in seen:
            continue
        seen.add(looks)
        if not ended and attempt is not None and (attempt / layout.TAIL).is_file():
            with (attempt / layout.TAIL).open("ab") as tail:
                tail.write(b'{"seq":9,"t":')
        published = {path.name: path.read_bytes() for path in run.glob("*.json")}
        for step in range(1, 200):
            again = copy(run, quick / f"{number}-{step}")
            died = recorders.record(again.parent, at=step, names=CHANGING, reconcile=True).killed
            judge(again, came, published)
            shutil.rmtree(again.parent)
            kills += died
            if not died:
                break
    assert len(seen) > 10 and kills > 200


@pytest.mark.parametrize("name", ["write", "ftruncate", "link", "rename", "unlink", "fsync", "fdatasync", "openat"])
def test_reconcile_killed_by_strace(name: str, recorders: RecorderServer, quick: Path) -> None:
    require("strace", shutil.which("strace"), "kills the reconciler at an exact system call")
    came = recorders.record(quick / "recorded", at=45)
    (run,) = (quick / "recorded").glob("run_*")
    with (next(layout.attempts(run)) / layout.TAIL).open("ab") as tail:
        tail.write(b'{"seq":9,"t":')
    for step in range(1, 200):
        again = copy(run, quick / f"{step}")
        inject = ["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={step}"]
        died = recorders.record(again.parent, inject, reconcile=True).killed
        assert judge(again, came, {}) == "sealed:partial"
        kept = (next(layout.attempts(again)) / layout.TORN).read_bytes()
        assert kept.startswith(b'{"seq":9,"t":')
        shutil.rmtree(again.parent)
        if not died:
            assert step > 1
            return
    raise AssertionError("reconciling never came to its end")
