"""Eight threads and eight processes in one run: wherever its recorder dies, what each was told is in the one log."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.faults.crowd import PROCESSES, THREADS
from tests.faults.judged import clear, twice
from tests.faults.lossy_disk import SURVIVES, LossyDisk
from tests.faults.recorder_process import Recorded
from tests.soak import Soak
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.replay import inspect
from worldline.engine.spec import Spec
from worldline.errors import AttemptClosed
from worldline.store.recording import Recording
from worldline.store.verify import verify

ROOT = Path(__file__).resolve().parents[2]
CALLS = 2
EVERYBODY = (THREADS + PROCESSES) * CALLS
MOST = 220  # more file operations than the crowd ever makes


def crowd(store: Path, at: int = 0) -> Recorded:
    """Let the crowd record into `store`; its recorder dies at that file operation (0: it is left alone)."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.faults.crowd", str(store), str(at), str(CALLS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=420)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return Recorded([*lines, {"exit": done.returncode}], [])


def told(store: Path, came: Recorded) -> Recording | None:
    """The recording, after all that must hold of it; None where none came to be."""
    begun, finished = came.said("begun"), came.said("finished")
    runs = list(store.glob("run_*"))
    if not runs:
        assert not begun
        return None
    (run,) = runs
    (state,) = twice(run)
    if state.state == "stillborn":
        assert not begun
        return None
    assert state.state == ("sealed:complete" if came.said("sealed") or any(run.glob("*.json")) else "sealed:partial")
    recording = Recording(run)
    assert verify(recording).ok, verify(recording).problems
    rows = list(recording.events())
    assert [row.seq for row in rows] == list(range(len(rows)))
    assert [row.t for row in rows] == sorted(row.t for row in rows)
    known = ends(recording)
    assert set(begun) <= set(known) and not [who for who in finished if not known[who]]
    assert inspect(recording).equivalent
    return recording


def ends(recording: Recording) -> dict[str, bool]:
    """Whose calls are there, and whether with their end; nobody's is there twice."""
    rows = list(recording.events())
    who = {row.call: row.data["arguments"]["who"] for row in rows if row.name == "action/tool_call"}
    ended = [row.call for row in rows if row.name == "observation/tool_result"]
    assert len(set(who.values())) == len(who) and len(set(ended)) == len(ended)
    return {name: call in ended for call, name in who.items()}


def test_a_crowd_that_is_left_alone_is_recorded_whole(tmp_path: Path) -> None:
    came = crowd(tmp_path / "runs")
    assert came.said("sealed") and len(came.said("finished")) == EVERYBODY
    recording = told(tmp_path / "runs", came)
    assert recording is not None and list(ends(recording).values()) == [True] * EVERYBODY


def test_a_crowd_whose_recorder_is_killed(quick: Path, soak: Soak) -> None:
    killed = 0
    for number in soak.rounds():
        for at in range(1 + number % 7, MOST, 7) if soak.long else (3, 30, 60, 110):
            came = crowd(quick / "runs", at)
            told(quick / "runs", came)
            clear(quick / "runs")
            killed += came.killed
            if not came.killed:
                break
    assert killed >= 4


def test_a_crowd_whose_disk_loses_power(lossy: LossyDisk, quick: Path, soak: Soak) -> None:
    cuts = 0
    for number in soak.rounds():
        for at in range(1 + number % 11, 3 * MOST, 11) if soak.long else (25, 70, 120):
            lossy.empty(cut_at=at)
            came = crowd(lossy.place / "runs")
            for way in SURVIVES:
                told(lossy.survives(way, at, quick / "left") / "runs", came)
                clear(quick / "left")
            cuts += came.killed
            if came.said("sealed"):
                break
    assert cuts >= 3


def test_a_run_that_is_sealed_while_its_threads_go_on(quick: Path) -> None:
    """The end is the last row; what a thread was told before it is there, and afterwards it is told that it is over."""
    for number in range(5):
        recorder = Recorder(Spec(store=quick / f"{number}"))
        boundary, told, over = RecordBoundary(recorder), [], []

        def go_on(name: int, boundary: RecordBoundary = boundary, told: Any = told, over: Any = over) -> None:
            try:
                for count in itertools.count():
                    asks = Content.of({"who": f"{name}-{count}"})
                    live = boundary.begin(Call(kind="action", name="pay", inputs=asks, effect="side_effecting"))
                    told.append(("begun", live.call))
                    live.finish({}, asks)
                    told.append(("finished", live.call))
            except AttemptClosed:
                over.append(name)

        threads = [threading.Thread(target=go_on, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        while recorder.log.seq < 60:
            threads[0].join(0.001)
        recording = Recording(recorder.seal())
        for thread in threads:
            thread.join()
        assert verify(recording).ok and sorted(over) == [0, 1, 2, 3]
        rows = [(row.name, row.call) for row in recording.events()]
        names = {"begun": "action/tool_call", "finished": "observation/tool_result"}
        assert {(names[what], call) for what, call in told} <= set(rows)


@pytest.mark.parametrize("first", ["child", "parent"])
def test_a_fork_in_the_middle_of_a_recording(first: str, tmp_path: Path) -> None:
    """Whoever of the two dies first, what both were told is there, and no lock is left."""
    script = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "runs"), first]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(4 if first == "child" else 3)]
        status = process.wait()
        (run,) = (tmp_path / "runs").glob("run_*")
        (state,) = twice(run)  # the child of a dead parent is still alive: the lock was the parent's alone
        process.stdin.close()
        lines += [json.loads(line) for line in process.stdout]
    came = Recorded(lines, [])
    recording = Recording(run)
    assert verify(recording).ok
    known = ends(recording)
    assert {who for who, ended in known.items() if ended} == set(came.said("finished"))
    assert set(came.said("begun")) == set(known)
    if first == "child":  # its call is unknown for ever; the parent's run goes on and publishes
        assert status == 0 and state.state == "sealed:complete" and not known["child-1"]
        assert came.said("finished") == ["parent-0", "child-0", "parent-2"]
    else:
        assert status == -signal.SIGKILL and state.state == "sealed:partial"
        assert came.said("refused") == ["JoinError"] and "child-1" not in known


FORKED = """
import json, os, signal, sys
import worldline as wl
from worldline.errors import JoinError
store, first = sys.argv[1:]

def say(**fact):
    os.writev(1, [json.dumps(fact).encode() + b"\\n"])

@wl.tool(effect="side_effecting")
def pay(who, dies=False):
    if not dies or first == "child":
        say(begun=who)
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)
    return who

with wl.record(store, task="forked"):
    pay("parent-0") if first == "child" else None
    say(finished="parent-0") if first == "child" else None
    done, told = os.pipe()
    child = os.fork()
    if child == 0:
        pay("child-0")
        say(finished="child-0")
        if first == "child":
            pay("child-1", dies=True)
        os.write(told, b"1")
        sys.stdin.read()  # the parent is dead by now
        try:
            pay("child-1")
        except JoinError as error:
            say(refused=type(error).__name__)
        os._exit(0)
    if first == "parent":
        os.read(done, 1)
        say(parent="dies")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    say(finished=pay("parent-2"))
"""
