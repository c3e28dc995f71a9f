"""The zygote: what a fork would tear is refused by name, memory is shared, and nothing outlives its owner."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.conftest import require
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.substrate import Policy
from worldline.engine.substrates.zygote import Zygote, ZygoteEnv, on_disk
from worldline.errors import (
    EnvironmentFailed,
    NotQuiescent,
    ReseedFailed,
    StaleBase,
    StateRefused,
    Unavailable,
    Unsupported,
)

SEED = "5eed" * 16
MEGABYTES = 40


@pytest.fixture
def zygote(quick: Path) -> Zygote:
    made = Zygote(quick / "runs", "tests.substrates.held:Held")
    require("zygote", made.probe().why_not is None, str(made.probe().why_not))
    return made


@pytest.fixture
def env(zygote: Zygote, quick: Path) -> Iterator[ZygoteEnv]:
    (quick / "workspace").mkdir()
    opened = zygote.open(quick / "workspace", Policy(store=quick / "runs"))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("socket", "socket"),
        ("tls", "TLS connection"),
        ("loop", "event loop"),
        ("pipe", "pipe"),
        ("child", "child process"),
        ("file", "file open for writing"),
    ],
)
def test_what_a_fork_would_share_is_refused_by_name(env: ZygoteEnv, what: str, named: str) -> None:
    env.exec(what)
    with pytest.raises(Unsupported) as refused:
        env.snapshot(1)
    assert any(resource.startswith(named) for resource in refused.value.facts["resources"])
    env.exec("let go")
    env.snapshot(2)


def test_a_thread_is_named_and_refused(env: ZygoteEnv) -> None:
    env.exec("thread")
    with pytest.raises(NotQuiescent) as refused:
        env.snapshot(1)
    assert refused.value.facts["threads"] == ["the worker"]
    env.exec("let go")
    env.snapshot(2)


def test_branches_share_memory_and_have_positions_of_their_own(zygote: Zygote, env: ZygoteEnv, quick: Path) -> None:
    """What was read before the snapshot goes on from where it was, in each branch by itself."""
    (quick / "lines").write_text("one\ntwo\nthree\n")
    assert env.exec(f"read {quick / 'lines'}") == "one\n"
    ref = env.snapshot(1)
    branches = zygote.fork(ref, 2, branch_seed=SEED, identity="run")
    for branch in branches:
        assert branch.reseed(SEED)
        branch.open_gate()
        assert branch.exec("next line") == "two\n"
        assert branch.exec("private kB") < MEGABYTES * 1024 / 4
        assert branch.exec("cwd") == str(branch.root)
    assert env.exec("next line") == "two\n"
    for branch in branches:
        branch.close()


def test_the_gate_is_shut_on_both_sides_until_all_is_reseeded(zygote: Zygote, env: ZygoteEnv) -> None:
    env.exec("hook fails")
    ref = env.snapshot(1)
    (branch,) = zygote.fork(ref, 1, branch_seed=SEED, identity="run")
    for _ in range(2):
        with pytest.raises(ReseedFailed, match="the token server is down"):
            branch.reseed(SEED)
        with pytest.raises(StateRefused):
            branch.open_gate()
    assert branch._member.ask(op="act", action="cwd") == {"refused": "gated"}
    assert branch._member.ask(op="open_gate") == {"refused": "gated"}
    branch.close()


def test_what_the_environment_raises_is_told_and_it_goes_on(env: ZygoteEnv, zygote: Zygote, quick: Path) -> None:
    with pytest.raises(EnvironmentFailed, match="KeyError: 'no such thing'") as failed:
        env.exec("raise")
    assert "held.py" in failed.value.facts["where"]
    assert env.exec("cwd") == str(quick / "workspace")
    with pytest.raises(EnvironmentFailed, match="could not be made: AttributeError"):
        Zygote(quick / "runs", "tests.substrates.held:nothing").open(quick / "workspace", Policy(store=quick / "runs"))
    os.kill(env.pid, signal.SIGKILL)
    with pytest.raises(Unavailable, match="has ended"):
        env.exec("cwd")
    assert str(env.state) == "lost"


def test_when_its_processes_are_gone_a_snapshot_still_is_its_files(zygote: Zygote, env: ZygoteEnv, quick: Path) -> None:
    (env.root / "note").write_text("kept")
    ref = env.snapshot(1)
    (env.root / "note").write_text("later")
    pid = zygote.member(ref).pid
    gone = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([gone], [], [], 60)[0]
    os.close(gone)
    with pytest.raises(StaleBase, match="its files are in the store"):
        zygote.fork(ref, 1, branch_seed=SEED, identity="run")
    (branch,) = Files(quick / "runs").fork(on_disk(ref), 1, branch_seed=SEED, identity="run")
    assert (branch.root / "note").read_text() == "kept"
    branch.close()


@pytest.mark.parametrize("who", ["owner", "nursery"])
def test_nothing_outlives_who_is_killed(quick: Path, who: str) -> None:
    """Not even an environment in an endless loop, or one that waits as a snapshot."""
    (quick / "workspace").mkdir()
    arguments = [str(quick / "runs"), str(quick / "workspace")]
    process = subprocess.Popen(
        [sys.executable, "-c", _OWNER, *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None and process.stdin is not None
    told = msgspec.json.decode(process.stdout.readline(), type=dict[str, int])
    watched = [os.pidfd_open(pid) for pid in told.values()]
    assert len(watched) == 5
    os.kill(process.pid if who == "owner" else told["nursery"], signal.SIGKILL)
    outlived = [descriptor for descriptor in watched if not select.select([descriptor], [], [], 60)[0]]
    for descriptor in watched:
        if descriptor in outlived:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)
    assert not outlived, "a process outlived its owner"
    process.stdin.close()
    process.wait()
    process.stdout.close()


def _gone(pid: int) -> int:
    """Wait until a process has ended. Returns a descriptor to close."""
    descriptor = os.pidfd_open(pid)
    assert select.select([descriptor], [], [], 60)[0]
    return descriptor


_OWNER = """
import json, pathlib, sys, threading
from worldline.engine.substrates.substrate import Policy
from worldline.engine.substrates.zygote import Zygote
store, workspace = map(pathlib.Path, sys.argv[1:])
zygote = Zygote(store, "tests.substrates.held:Held")
env = zygote.open(workspace, Policy(store=store))
ref = env.snapshot(1)
live, gated = zygote.fork(ref, 2, branch_seed="00", identity="run")
live.reseed("00"); live.open_gate()
pids = {"env": env.pid, "kept": zygote.member(ref).pid, "live": live.pid, "gated": gated.pid}
pids["nursery"] = env._member._nursery._process.pid
threading.Thread(target=lambda: live.exec("spin"), daemon=True).start()
while live._member.pid and not pathlib.Path(live.root, "spinning").exists():
    pass
print(json.dumps(pids), flush=True)
sys.stdin.read()
"""
