"""Threads, tasks, callbacks, generators: each call is recorded once, in its run, inside its tool (C3, C5)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.seams.agents.crossings import crossings, names

N = 6


@wl.tool(effect="pure")
def leaf(i: int) -> int:
    return i * i


@wl.tool(effect="pure")
async def leaf_async(i: int) -> int:
    await asyncio.sleep(0)
    return i * i


def bound(function: Callable[..., Any]) -> Callable[..., Any]:
    run = wl.current()
    return run.bind(function) if run is not None else function


def in_thread_pool(call: Callable[..., Any] = leaf) -> list[int]:
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(call, range(N)))


def in_threads(call: Callable[..., Any] = leaf) -> list[int]:
    results: dict[int, int] = {}
    threads = [threading.Thread(target=lambda i=i: results.update({i: call(i)})) for i in range(N)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[i] for i in range(N)]


def in_loop_of_a_thread(call: Callable[..., Any] = leaf_async) -> list[int]:
    async def main() -> list[int]:
        return list(await asyncio.gather(*(leaf_async(i) for i in range(N))))

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(bound(asyncio.run) if call is not leaf_async else asyncio.run, main()).result()


async def in_gather() -> list[int]:
    return list(await asyncio.gather(*(leaf_async(i) for i in range(N))))


async def in_task_group() -> list[int]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(leaf_async(i)) for i in range(N)]
    return [task.result() for task in tasks]


async def in_to_thread() -> list[int]:
    return list(await asyncio.gather(*(asyncio.to_thread(leaf, i) for i in range(N))))


async def in_async_generator() -> list[int]:
    async def squares() -> AsyncIterator[int]:
        for i in range(N):
            yield await leaf_async(i)

    return [value async for value in squares()]


async def in_callbacks() -> list[int]:
    loop, done, results = asyncio.get_running_loop(), asyncio.Event(), []

    def back(i: int) -> None:
        results.append(leaf(i))
        if len(results) == N:
            done.set()

    for i in range(N):
        loop.call_soon(back, i)
    await done.wait()
    return results


async def in_bound_executor() -> list[int]:
    loop, call = asyncio.get_running_loop(), bound(leaf)
    return list(await asyncio.gather(*(loop.run_in_executor(None, call, i) for i in range(N))))


Way = Callable[[], Any]
# Python starts a plain thread without the context of the one that starts it: there `run.bind` says where it belongs.
WITH_CONTEXT: dict[str, Way] = {
    "bound thread pool": lambda: in_thread_pool(bound(leaf)),
    "bound threads": lambda: in_threads(bound(leaf)),
    "asyncio.run in a bound thread": lambda: in_loop_of_a_thread(bound(leaf_async)),
    "gather": in_gather,
    "task group": in_task_group,
    "to_thread": in_to_thread,
    "async generator": in_async_generator,
    "callbacks": in_callbacks,
    "bound executor": in_bound_executor,
}
WITHOUT_CONTEXT: dict[str, Way] = {
    "thread pool": in_thread_pool,
    "threads": in_threads,
    "asyncio.run in a thread": in_loop_of_a_thread,
}


async def awaited(way: Way) -> list[int]:
    made = way()
    return await made if isinstance(made, Awaitable) else made


@pytest.mark.parametrize("way", [*WITH_CONTEXT, *WITHOUT_CONTEXT])
def test_each_call_is_recorded_once_and_replays(way: str, tmp_path: Path) -> None:
    work = {**WITH_CONTEXT, **WITHOUT_CONTEXT}[way]
    with wl.record(tmp_path) as run:
        result = asyncio.run(awaited(work))
    assert result == [i * i for i in range(N)]
    found = crossings(run.path)
    assert sorted(c.arguments["i"] for c in found) == list(range(N))
    assert {(c.inside, c.lane, c.ends) for c in found} == {(None, "main", 1)}

    again: list[list[int]] = []

    async def agent() -> None:
        again.append(await awaited(work))

    for _ in range(3):  # threads race anew each time; the record's order is one that they can keep
        report = wl.open(run.path).replay(agent)
        assert report.equivalent, (report.first_divergence, report.notes)
        assert report.served == N
    assert again == [result] * 3


@wl.tool(effect="pure")
async def outer(way: str) -> list[int]:
    return await awaited(WITH_CONTEXT[way])


@wl.tool(effect="pure")
async def outermost(way: str) -> list[int]:
    async with asyncio.TaskGroup() as group:
        first, second = group.create_task(outer(way)), group.create_task(outer(way))
    return first.result() + second.result()


@pytest.mark.parametrize("way", WITH_CONTEXT)
def test_calls_inside_a_tool_name_it_as_their_parent(way: str, tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        asyncio.run(outermost(way))
    leaves = {name for name, _ in names(run.path)} - {"outer", "outermost"}
    assert len(leaves) == 1
    assert names(run.path) == sorted(
        [*[(leaf, "outer") for leaf in leaves for _ in range(2 * N)], ("outer", "outermost")] * 1
        + [("outer", "outermost"), ("outermost", None)]
    )
    report = wl.open(run.path).replay(lambda: outermost(way))
    assert report.equivalent, report.first_divergence
    assert report.served == 1, "the outermost tool is served; what ran inside it does not run"


def test_two_workers_of_fifty_calls_are_a_hundred_rows(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        workers = [threading.Thread(target=lambda w=w: [leaf(w * 50 + i) for i in range(50)]) for w in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert sorted(c.arguments["i"] for c in crossings(run.path)) == list(range(100))


def test_the_door_needs_no_thread_of_the_agents_own_executor(tmp_path: Path) -> None:
    """Work that fills the default executor may wait for a tool: the call must not wait for that executor."""

    async def agent() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))

        def waits() -> int:
            return asyncio.run_coroutine_threadsafe(leaf_async(3), loop).result(timeout=20)

        assert await asyncio.to_thread(waits) == 9

    with wl.record(tmp_path) as run:
        asyncio.run(agent())
    assert wl.open(run.path).replay(agent).equivalent
