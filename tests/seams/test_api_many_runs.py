"""Many runs at once: each recording holds its own calls alone, and a thread that belongs to none is told so (C4)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import worldline as wl
from tests.seams.agents.crossings import AGENTS, crossings, environment
from worldline.errors import NoRunInContext

RUNS = 30


@wl.tool(effect="pure")
def mark(text: str) -> str:
    return f"seen {text}"


@wl.tool(effect="pure")
async def mark_async(text: str) -> str:
    await asyncio.sleep(0)
    return f"seen {text}"


def marker(i: int) -> str:
    return f"MARK-{i:03d}-END"


def markers_in(run: Path) -> set[str]:
    written = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file()).decode("utf-8", "replace")
    return {marker(i) for i in range(RUNS) if marker(i) in written}


def test_thirty_runs_in_threads_of_one_process_do_not_mix(tmp_path: Path) -> None:
    meet = threading.Barrier(RUNS)

    def one(i: int) -> Path:
        with wl.record(tmp_path, task=f"run {i}") as run:
            meet.wait()  # all are open now
            with run.lane(f"lane {marker(i)}"), run.step():
                mark(marker(i))
                run.observe({"saw": marker(i)}, src="terminal")
            worker = threading.Thread(target=run.bind(mark), args=[marker(i)])
            worker.start()
            worker.join()
            asyncio.run(mark_async(marker(i)))
            meet.wait()
        assert run.path is not None
        return run.path

    with ThreadPoolExecutor(RUNS) as pool:
        paths = list(pool.map(one, range(RUNS)))
    for i, path in enumerate(paths):
        run = wl.open(path)
        assert run.task == f"run {i}"
        assert markers_in(path.parent) == {marker(i)}
        assert len(crossings(run)) == 3
        assert run.verify().problems == []
    assert wl.current() is None and "WORLDLINE_URL" not in os.environ


async def test_thirty_runs_in_tasks_of_one_loop_do_not_mix(tmp_path: Path) -> None:
    meet = asyncio.Barrier(RUNS)

    async def one(i: int) -> Path:
        async with wl.record(tmp_path) as run:
            await meet.wait()
            await asyncio.gather(mark_async(marker(i)), asyncio.to_thread(mark, marker(i)))
            await meet.wait()
        assert run.path is not None
        return run.path

    paths = await asyncio.gather(*(one(i) for i in range(RUNS)))
    assert [markers_in(path.parent) for path in paths] == [{marker(i)} for i in range(RUNS)]
    assert {len(crossings(path)) for path in paths} == {2}


def test_ten_processes_record_into_one_store_without_mixing(tmp_path: Path) -> None:
    command = [sys.executable, str(AGENTS / "marking.py"), str(tmp_path)]
    children = [
        subprocess.Popen([*command, marker(i)], env=environment(), stdout=subprocess.PIPE, text=True) for i in range(10)
    ]
    paths = [Path(child.communicate(timeout=180)[0].strip()) for child in children]
    assert [child.returncode for child in children] == [0] * 10
    assert [markers_in(path.parent) for path in paths] == [{marker(i)} for i in range(10)]
    assert len(list(tmp_path.iterdir())) == 10


def test_a_thread_without_a_context_is_told_that_it_belongs_to_no_run(tmp_path: Path) -> None:
    def in_thread(work: Callable[[], object]) -> object:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()

    with wl.record(tmp_path) as first:
        assert in_thread(lambda: mark("one run: no doubt")) == "seen one run: no doubt"

        def second_run() -> None:
            with wl.record(tmp_path) as second:
                mark("second")
                with pytest.raises(NoRunInContext, match=r"run\.bind\(") as refused:
                    in_thread(lambda: mark("whose?"))
                assert "2 runs" in str(refused.value)
                assert in_thread(second.bind(lambda: mark("bound to second"))) == "seen bound to second"
                assert in_thread(first.bind(lambda: mark("bound to first"))) == "seen bound to first"
            paths.append(second.path)

        paths: list[Path | None] = []
        in_thread(second_run)
        assert in_thread(lambda: mark("one again")) == "seen one again"
    assert first.path is not None and paths[0] is not None
    assert [c.arguments["text"] for c in crossings(first.path)] == [
        "one run: no doubt",
        "bound to first",
        "one again",
    ]
    assert [c.arguments["text"] for c in crossings(paths[0])] == ["second", "bound to second"]


def test_bind_carries_the_lane_and_the_tool_around_it(tmp_path: Path) -> None:
    @wl.tool(effect="pure")
    def outer() -> str:
        run = wl.current()
        assert run is not None
        with run.lane("helper"), ThreadPoolExecutor(1) as pool:
            return pool.submit(run.bind(mark), "x").result()

    with wl.record(tmp_path) as run:
        outer()
    assert run.path is not None
    assert [(c.name, c.inside, c.lane) for c in crossings(run.path)] == [
        ("outer", None, "main"),
        ("mark", "outer", "helper"),
    ]
