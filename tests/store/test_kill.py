"""A recorder killed at any system call loses nothing that it acknowledged, and publishes whole or not at all.

Every call whose `begin` returned is on record; a call whose `begin` did not return never left; the one under way is
unknown; and the next attempt of the same run starts, publishes and verifies.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import require
from tests.store.recorder_process import CALLS, Recorded, RecorderServer, agent
from worldline.engine.cassette import Cassette
from worldline.engine.replay import inspect
from worldline.store import layout
from worldline.store.catalog import entries
from worldline.store.recording import Recording
from worldline.store.verify import verify

CALLS_MET = "write,fdatasync,fsync,link,rename,openat,mkdir,unlink"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def judge(store: Path, came: Recorded) -> None:
    """Everything that must hold after a kill, whatever the place."""
    acknowledged, finished, sealed = came.said("begun"), came.said("finished"), came.said("sealed")
    runs = list(store.glob("run_*")) if store.exists() else []
    attempts = [attempt for run in runs for attempt in layout.attempts(run)]
    if not attempts:
        assert not acknowledged
        return
    (run,), (attempt,) = runs, attempts
    recording = Recording(run)
    events = list(recording.events())
    assert recording.damages == []
    if not events:
        assert not acknowledged
    else:
        exchanges = Cassette(recording).by_call
        assert set(acknowledged) <= set(exchanges)
        assert {call for call in finished if exchanges[call].finished is None} == set()
        # Begun and not acknowledged is one call at most, and nothing of ours can have sent it.
        assert len(set(exchanges) - set(acknowledged)) <= 1
        unknown = [call for call, exchange in exchanges.items() if exchange.finished is None]
        assert len(unknown) <= 1 and not set(unknown) & set(finished)
        assert inspect(recording).equivalent
    verification = verify(recording)
    published = list(run.glob("*.json"))
    if sealed or (attempt / layout.MANIFEST).exists():
        assert verification.ok, verification.problems
    elif events:
        assert [problem.kind for problem in verification.problems] == ["unsealed"]
    if sealed:
        assert [str(path) for path in published] == sealed
    for path in published:
        assert path.read_bytes() == (attempt / layout.RESULT).read_bytes() and recording.published == path
        assert len(acknowledged) == CALLS
    assert [entry.run for entry in entries(store)] == [run.name]
    before = contents(run)
    said: list[dict[str, object]] = []
    agent(store, lambda **fact: said.append(fact), None if published else run)
    again = Recording(Path(str(said[-1]["sealed"])))
    assert verify(again).ok
    assert before.items() <= contents(run).items()
    assert len(list(run.glob("*.json"))) == 1


def enumerate_kills(recorders: RecorderServer, folder: Path, strace: str | None) -> int:
    for number in range(1, 400):
        store = folder / f"{number}"
        if strace is None:
            came = recorders.record(store, at=number)
        else:
            inject = f"inject={strace}:signal=KILL:when={number}"
            came = recorders.record(store, ["-e", f"trace={strace}", "-e", inject])
        judge(store, came)
        shutil.rmtree(store, ignore_errors=True)
        if not came.killed:
            assert came.said("sealed")
            return number - 1
    raise AssertionError("the recording never came to its end")


@pytest.mark.parametrize("name", CALLS_MET.split(","))
def test_killed_by_strace_at_every_system_call(name: str, recorders: RecorderServer, quick: Path) -> None:
    require("strace", shutil.which("strace"), "kills the recorder at an exact system call")
    assert enumerate_kills(recorders, quick, name) >= 1


def test_killed_at_every_file_operation(recorders: RecorderServer, quick: Path) -> None:
    assert enumerate_kills(recorders, quick, None) > 60


def test_a_killed_command_line_recorder_is_continued(tmp_path: Path) -> None:
    store, ready = tmp_path / "runs", tmp_path / "ready"
    script = tmp_path / "agent.py"
    script.write_text(
        "import os, pathlib, signal, sys, worldline\n"
        "@worldline.tool(effect='side_effecting')\n"
        "def pay(n):\n"
        f"    pathlib.Path({str(ready)!r}).touch()\n"
        "    if sys.argv[1] == 'hang': signal.pause()\n"
        "    return n\n"
        "pay(1)\n"
    )
    words = [sys.executable, "-m", "worldline", "record", "--store", str(store)]
    hangs = subprocess.Popen([*words, "--", sys.executable, str(script), "hang"], start_new_session=True)
    try:
        while not ready.exists():
            assert hangs.poll() is None
            time.sleep(0.01)
        assert [entry.disposition for entry in entries(store)] == ["running"]
        hangs.kill()
        hangs.wait()
    finally:
        os.killpg(hangs.pid, signal.SIGKILL)
    (interrupted,) = entries(store)
    assert (interrupted.disposition, interrupted.outcome) == ("interrupted", None)
    first = Recording(Path(interrupted.path))
    (exchange,) = Cassette(first).exchanges
    assert exchange.finished is None
    again = subprocess.run(
        [*words, "--continue", "latest", "--", sys.executable, str(script), "go"], capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
    second = Recording(Path(again.stderr.splitlines()[-1]))
    assert verify(second).ok and second.run_directory == first.run_directory
    assert second.header.data["continues"]["attempt"] == first.header.data["attempt"]
    assert second.header.data["session"] == first.header.data["session"]
