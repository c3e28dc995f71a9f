"""Clocks that step: no row goes back in time, no attempt passes for an older one, and nothing is lost of a record."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require
from tests.faults.judged import twice
from worldline.engine import clock
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.replay import inspect
from worldline.engine.spec import Spec
from worldline.model.ids import behind, is_id, spell
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.verify import verify

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
AGENT = """
import os, signal, sys, worldline
@worldline.tool(effect="side_effecting")
def pay(n):
    return n
pay(int(sys.argv[1]))
"""


def pay(recorder: Recorder, number: int) -> None:
    call = Call(kind="action", name="pay", inputs=Content.of({"n": number}), effect="side_effecting")
    RecordBoundary(recorder).begin(call).finish({}, Content.of(number))


@pytest.mark.parametrize("seed", range(8))
def test_clocks_that_jump_between_any_two_looks_at_them(
    seed: int, quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    wall, monotonic = clock.wall_ns, clock.monotonic_ns
    monkeypatch.setattr(clock, "wall_ns", lambda: wall() + chance.choice((0, 0, -DAY, DAY)))
    monkeypatch.setattr(clock, "monotonic_ns", lambda: monotonic() + chance.choice((0, 0, -60, 60)) * SECOND)
    recorder = Recorder(Spec(store=quick / "runs"))
    for number in range(20):
        pay(recorder, number)
    recording = Recording(recorder.seal())
    assert verify(recording).ok and inspect(recording).equivalent
    rows = list(recording.events())
    assert [row.t for row in rows] == sorted(row.t for row in rows) and min(row.dt for row in rows) >= 0
    assert "meta/clock" in {row.name for row in rows}


def test_a_clock_that_stepped_while_the_last_call_ran_is_said_before_the_end(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(Spec(store=quick / "runs"))
    pay(recorder, 1)
    wall = clock.wall_ns
    monkeypatch.setattr(clock, "wall_ns", lambda: wall() + 60 * SECOND)  # a laptop that slept
    recording = Recording(recorder.seal())
    assert verify(recording).ok
    assert [row.name for row in recording.events()][-2:] == ["meta/clock", "meta/end"]


@pytest.mark.parametrize("back", [0, 1, DAY])
def test_the_newest_attempt_is_the_last_that_was_begun_whatever_the_wall_clock_says(
    back: int, quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that stands still for a millisecond makes ids of one time; one that steps back makes older ones."""
    times = itertools.count(20_000 * DAY, -back)
    monkeypatch.setattr(clock, "wall_ns", lambda: next(times))
    run, begun = None, []
    for number in range(5):
        recorder = Recorder(Spec(store=quick / "runs", run=run))
        run = recorder.run_directory
        pay(recorder, number)
        recorder.close()
        begun.append(recorder.attempt)
        assert Recording(run).attempt == recorder.attempt and is_id(recorder.attempt_id, "ainst")
    assert run is not None and list(layout.attempts(run)) == begun
    assert [state.attempt for state in twice(run)] == [attempt.name for attempt in begun]


def test_an_id_moves_behind_another_and_stays_one_of_its_kind() -> None:
    last = spell("ainst", 5, (1 << 80) - 1)
    assert behind(spell("ainst", 6, 0), last) == spell("ainst", 6, 0)
    assert behind(spell("ainst", 2, 77), last) == spell("ainst", 6, 77)
    assert behind(last, last) == spell("ainst", 6, (1 << 80) - 1)


def test_a_machine_that_was_started_anew_counts_from_nothing(tmp_path: Path) -> None:
    """The monotonic clock of the next attempt is far behind that of the first, in a time namespace of its own."""
    ahead = ["unshare", "--time", "--monotonic", "100000000"]
    able = shutil.which("unshare") and subprocess.run([*ahead, "true"], capture_output=True).returncode == 0
    require("time-namespace", able, "gives a process a monotonic clock of its own")
    script = tmp_path / "agent.py"
    script.write_text(AGENT + "os.kill(os.getppid(), signal.SIGKILL)\n")
    words = [sys.executable, "-m", "worldline", "record", "--store", str(tmp_path / "runs")]
    first = subprocess.run([*ahead, *words, "--", sys.executable, str(script), "1"], capture_output=True, text=True)
    assert first.returncode != 0
    script.write_text(AGENT)
    again = [*words, "--continue", "latest", "--json", "--", sys.executable, str(script), "2"]
    second = subprocess.run(again, capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    said = json.loads(second.stdout)
    (run,) = (tmp_path / "runs").glob("run_*")
    states = [state.state for state in twice(run)]
    before, after = (Recording(attempt) for attempt in layout.attempts(run))
    assert states == ["superseded", "sealed:complete"] and said["attempt"] == after.header.data["attempt"]
    assert int(before.header.data["t0_mono"]) > int(after.header.data["t0_mono"]) + 10**16
    for recording in (before, after):
        assert verify(recording).ok
        assert [row.data["arguments"] for row in recording.events() if row.name == "action/tool_call"]
