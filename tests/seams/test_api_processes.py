"""Pools, forks, spawned and started processes: their calls join the one run, once each, and replay (C3, C5)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.seams.agents.crossings import AGENTS, crossings, program, worldline

WAYS = ("pool-fork", "pool-spawn", "process-fork", "process-spawn", "subprocess", "os-fork")
FORKING = ("pool-fork", "process-fork", "os-fork")  # a forked child inherits the context, and with it the tool it is in
N = 3
SQUARES = ["0", "1", "4"]


def test_processes_of_a_run_recorded_in_process_join_it(tmp_path: Path) -> None:
    done = program("spread.py", str(tmp_path), *WAYS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [SQUARES] * len(WAYS)
    [run] = tmp_path.iterdir()
    found = crossings(run)
    assert [sorted(c.arguments["i"] for c in found[at : at + N]) for at in range(0, len(found), N)] == [
        list(range(N))
    ] * len(WAYS)
    assert {(c.name, c.inside, c.lane, c.ends) for c in found} == {("leaf", None, "main", 1)}
    assert "Warning" not in done.stderr and "Traceback" not in done.stderr


def test_processes_under_the_command_line_join_one_run_and_replay(tmp_path: Path) -> None:
    agent = (sys.executable, str(AGENTS / "spread.py"), str(tmp_path / "unused"), *WAYS)
    recorded = worldline("record", "--out", str(tmp_path / "runs"), "--", *agent)
    assert recorded.returncode == 0, recorded.stderr
    assert not (tmp_path / "unused").exists(), "wl.record() under a recorder opens no second run"
    [run] = (tmp_path / "runs").iterdir()
    assert [c.ends for c in crossings(run)] == [1] * N * len(WAYS)

    replayed = worldline("replay", str(run), "--json", "--", *agent)
    report = json.loads(replayed.stdout)
    assert (replayed.returncode, report["verdict"]) == (0, "equivalent"), report
    assert (report["served"], report["live"]) == (N * len(WAYS), 0)
    assert json.loads(replayed.stderr.strip().splitlines()[-1]) == [SQUARES] * len(WAYS)


@pytest.mark.parametrize("where", ["in process", "joined"])
def test_calls_of_forked_children_name_the_tool_that_forked_them(tmp_path: Path, where: str) -> None:
    store = tmp_path / "runs"
    if where == "in process":
        done = program("spread.py", str(store), "inside", *FORKING)
    else:
        agent = (sys.executable, str(AGENTS / "spread.py"), "-", "inside", *FORKING)
        done = worldline("record", "--out", str(store), "--", *agent)
    assert done.returncode == 0, done.stderr
    [run] = store.iterdir()
    found = crossings(run)
    assert sorted((c.name, c.inside) for c in found) == sorted(
        [("outer", None)] * len(FORKING) + [("leaf", "outer")] * N * len(FORKING), key=str
    )
    assert {c.ends for c in found} == {1}


def test_a_forked_child_that_outlives_the_recording_is_refused_and_never_kept_waiting(tmp_path: Path) -> None:
    done = program("outliving.py", str(tmp_path))
    assert (done.returncode, done.stdout.strip()) == (0, "JoinError"), done.stderr
