"""A recorder killed at any system call loses nothing that it acknowledged, and publishes whole or not at all.

Every call whose `begin` returned is on record; a call whose `begin` did not return never left; the one under way is
unknown; and the next attempt of the same run starts, publishes and verifies.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.conftest import require
from tests.faults.judged import clear, judge
from tests.faults.recorder_process import RecorderServer
from tests.soak import Soak
from worldline.engine.cassette import Cassette
from worldline.store.catalog import entries
from worldline.store.recording import Recording
from worldline.store.verify import verify

NOT_RECORDING = ("readv", "exit_group", "set_robust_list")  # how a process begins, reads what it shall do, and ends
CHANGING = "write,fdatasync,fsync,link,rename,openat,mkdir,unlink,fchmod"


def calls_in(trace: list[str]) -> list[tuple[str, int]]:
    """The system calls of a trace: (name, its how-manieth), as strace's injection counts them, in their order."""
    counts: Counter[str] = Counter()
    found = []
    for line in trace:
        if name := re.match(r"(\w+)\(", line):
            counts[name[1]] += 1
            found.append((name[1], counts[name[1]]))
    return found


def die(recorders: RecorderServer, store: Path, name: str, number: int, shape: int = 0) -> str | None:
    """Record, killed on entering the `number`-th call of that name, and judge. Returns the attempt's state."""
    inject = f"inject={name}:signal=KILL:when={number}"
    came = recorders.record(store, ["-e", f"trace={name}", "-e", inject], shape=shape)
    assert came.killed, (name, number)
    state = judge(store, came)
    clear(store)
    return state


def test_killed_at_every_system_call(recorders: RecorderServer, quick: Path, soak: Soak) -> None:
    """Those that change something; the long form takes all there are, and then recordings of other shapes."""
    require("strace", shutil.which("strace"), "kills the recorder at an exact system call")
    for shape in soak.rounds():
        met = "all" if soak.long and shape == 0 else CHANGING
        whole = recorders.record(quick / "whole", ["-e", f"trace={met}"], shape=shape)
        assert whole.said("sealed") and judge(quick / "whole", whole) == "sealed:complete"
        clear(quick / "whole")
        places = [place for place in calls_in(whole.trace) if place[0] not in NOT_RECORDING]
        if shape > 0:
            places = random.Random(shape).sample(places, min(len(places), 40))
        states = [die(recorders, quick / "killed", *place, shape=shape) for place in places]
        if shape == 0:
            assert len(states) > 130
            assert {None, "stillborn", "sealed:partial", "sealed:complete"} == set(states)
            assert states.count("sealed:partial") > 80 and states.count("sealed:complete") >= 3


def test_killed_at_every_file_operation(recorders: RecorderServer, quick: Path) -> None:
    """Without strace: in wrappers around what the store calls."""
    order: list[str | None] = []
    for number in range(1, 400):
        came = recorders.record(quick / "runs", at=number)
        order.append(judge(quick / "runs", came))
        clear(quick / "runs")
        if not came.killed:
            break
    assert came.said("sealed") and len(order) > 100
    turns = [state for state, before in zip(order, ["", *order], strict=False) if state != before]
    assert turns == [None, "stillborn", "sealed:partial", "sealed:complete"]


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
