"""`record --continue`: one session; a new run behind a published one, the next attempt where nothing was published."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import worldline as wl
from tests.seams.agents.crossings import AGENTS, environment, worldline

MARKING = (sys.executable, str(AGENTS / "marking.py"), "unused")


def attempts(run: Path) -> list[Path]:
    return sorted((run / "trajectory" / "attempts").iterdir())


def record(store: Path, *words: str) -> wl.Run:
    done = worldline("record", "--out", str(store), *words, "--", *MARKING, "x")
    assert done.returncode == 0, done.stderr
    return wl.open(done.stderr.strip().splitlines()[-1])


def interrupted(store: Path) -> Path:
    """A run whose command was told to stop: sealed as partial, nothing published. Gives its directory."""
    code = "import worldline as wl, time; wl.tool(name='t')(lambda: None)(); print('up', flush=True); time.sleep(60)"
    recorder = subprocess.Popen(
        [sys.executable, "-m", "worldline", "record", "--out", str(store), "--", sys.executable, "-c", code],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == "up\n"
    os.kill(recorder.pid, signal.SIGTERM)
    recorder.communicate(timeout=180)
    [run] = store.iterdir()
    assert wl.open(run).disposition == "partial"
    return run


def link(run: wl.Run) -> tuple[str, dict[str, str] | None]:
    header = run.recording.header
    return header.data["session"], header.data["continues"]


def test_behind_a_published_run_comes_a_new_run_of_the_same_session(tmp_path: Path) -> None:
    first = record(tmp_path)
    second = record(tmp_path, "--continue", "latest")
    third = record(tmp_path, "--continue", second.id)
    assert len({first.id, second.id, third.id}) == 3
    assert link(first)[1] is None
    assert {link(run)[0] for run in (first, second, third)} == {link(first)[0]}
    for before, after in ((first, second), (second, third)):
        header = before.recording.header
        assert link(after)[1] == {"run": before.id, "attempt": header.data["attempt"], "h": header.h}
    assert [run.verify().problems for run in (first, second, third)] == [[], [], []]
    assert link(record(tmp_path))[0] != link(first)[0], "without --continue a session of its own"


def test_where_nothing_was_published_comes_the_next_attempt_of_the_run(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    before = link(wl.open(run))
    [first] = attempts(run)
    held = {path: path.read_bytes() for path in first.rglob("*") if path.is_file()}

    done = record(tmp_path, "--continue", run.name)
    assert list(tmp_path.iterdir()) == [run]
    assert attempts(run)[0] == first and len(attempts(run)) == 2
    assert done.id == run.name and done.disposition == "complete" and done.verify().problems == []
    session, continues = link(done)
    assert session == before[0]
    assert continues is not None and (continues["run"], continues["attempt"]) == (run.name, first.name)
    assert {path: path.read_bytes() for path in held} == held, "an earlier attempt is never touched"


@pytest.mark.parametrize("name", ["latest", "run_nothere", "./nowhere"])
def test_continuing_what_is_not_there_says_so_and_records_nothing(tmp_path: Path, name: str) -> None:
    done = worldline("record", "--out", str(tmp_path / "runs"), "--continue", name, "--", *MARKING, "x")
    assert done.returncode == 64 and done.stderr.count("\n") <= 2, done.stderr
    assert not (tmp_path / "runs").exists()
