"""Every executor answers in the order of the questions, loses nothing quietly, and leaves no process behind."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from pathlib import Path

import pytest

from worldline.engine.executors.executor import Executor, Job, Work, settle
from worldline.engine.executors.inline import Inline
from worldline.engine.executors.processes import Processes
from worldline.engine.executors.tasks import Tasks
from worldline.errors import UsageError
from worldline.testing import executors as suite

EXECUTORS: dict[str, suite.Opens] = {
    "inline": lambda work, flight: Inline(work),
    "tasks": Tasks,
    "processes": Processes,
}


@pytest.mark.parametrize("check", suite.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("opens", EXECUTORS.values(), ids=EXECUTORS)
def test_conformance(check: Callable[[suite.Opens, Path], None], opens: suite.Opens, tmp_path: Path) -> None:
    check(opens, tmp_path)


async def _slow_twice(spec: bytes) -> bytes:
    return suite.doubled(spec)


@pytest.mark.parametrize("opens", [EXECUTORS["inline"], EXECUTORS["tasks"]], ids=["inline", "tasks"])
def test_async_work_is_awaited(opens: Callable[[Work, int], Executor]) -> None:
    executor = opens(_slow_twice, 4)
    try:
        assert [done.value for done in executor.submit(suite.jobs(1, 2))] == [b"2", b"4"]
    finally:
        executor.close()


def test_a_killed_process_loses_its_job_alone_and_the_job_is_asked_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    pool = Processes(suite.ends_itself, 2)
    try:
        batch = suite.jobs([str(tmp_path / "a"), 1], [str(tmp_path / "b"), 0])
        done = settle(pool, batch)
        pids = pool.pids
        assert [(each.value, each.lost) for each in done] == [(b"2", None), (b"1", None)]
        (tmp_path / "c").mkdir()
        (gone,) = settle(pool, suite.jobs([str(tmp_path / "c"), 9]))
        assert gone.lost == "its process ended (SIGKILL)" and gone.tries == 3
    finally:
        pool.close()
    assert pids and not any(_alive(pid) for pid in pids)


def _starts_a_child(spec: bytes) -> bytes:
    import subprocess
    import sys

    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    return str(child.pid).encode()


def test_what_a_process_started_ends_with_it() -> None:
    pool = Processes(_starts_a_child, 1)
    (done,) = pool.submit([Job("a", b"")])
    assert done.value is not None
    child = int(done.value)
    assert _alive(child)
    watched = os.pidfd_open(child)
    pool.close()
    assert select.select([watched], [], [], 60)[0], "it was left running"
    os.close(watched)


def test_work_that_cannot_be_sent_is_refused_with_the_way_on() -> None:
    pool = Processes(lambda spec: spec, 1)
    with pytest.raises(UsageError, match="module:function"):
        pool.submit([Job("a", b"")])
    pool.close()


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    except OSError:
        os.kill(pid, 0)
        return True
    return state not in "ZX"  # whoever takes in orphans may be slow to reap this one
