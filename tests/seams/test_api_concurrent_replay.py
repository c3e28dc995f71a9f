"""Concurrent calls on a replay: recorded answers in the recorded finishing order, each once, nothing else (M6, M9)."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from worldline.engine import order
from worldline.errors import Diverged

MANY = 20  # more than the default executor has threads


class Finishing:
    """Lets calls end in one order, whatever the scheduler does; a replay never asks it."""

    def __init__(self, order: list[int]) -> None:
        self._order = order
        self._turn = threading.Condition()
        self._gates = [asyncio.Event() for _ in order]
        self._gates[order[0]].set()

    def wait(self, i: int) -> None:
        with self._turn:
            self._turn.wait_for(lambda: self._order[0] == i, timeout=120)

    def ended(self) -> None:
        with self._turn:
            self._order.pop(0)
            self._turn.notify_all()

    async def wait_async(self, i: int) -> None:
        await self._gates[i].wait()

    def ended_async(self, i: int) -> None:
        at = self._order.index(i)
        if at + 1 < len(self._order):
            self._gates[self._order[at + 1]].set()


REVERSED = list(reversed(range(MANY)))
MIXED = [*range(1, MANY, 2), *range(0, MANY, 2)]
finishing = Finishing([0])


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer waits for a call that a busy machine holds back: nobody means to leave one out here."""
    monkeypatch.setattr(order, "GRACE_SECONDS", 60.0)


@wl.tool(effect="pure")
def slow(i: int) -> int:
    finishing.wait(i)
    return i * 10


@wl.tool(effect="pure")
async def slow_async(i: int) -> int:
    await finishing.wait_async(i)
    return i * 10


def in_threads() -> list[int]:
    """The order in which results came, by a loop like `as_completed` that takes them one by one."""
    came: list[int] = []
    with ThreadPoolExecutor(MANY) as pool:
        waiting = {pool.submit(slow, i) for i in range(MANY)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            came += [future.result() for future in done]
            if len(done) == 1 and wl.current() is not None and wl.current().mode == "record":  # type: ignore[union-attr]
                finishing.ended()
    return came


async def in_tasks() -> list[int]:
    came = []
    for future in asyncio.as_completed([slow_async(i) for i in range(MANY)]):
        came.append(await future)
        finishing.ended_async(came[-1] // 10)
    return came


def recorded(store: Path, agent: Callable[[], Any]) -> tuple[wl.Run, Any]:
    with wl.record(store) as run:
        result = agent()
        result = asyncio.run(result) if asyncio.iscoroutine(result) else result
    assert run.path is not None
    return wl.open(run.path), result


@pytest.mark.parametrize("finish", [REVERSED, MIXED], ids=["reversed", "mixed"])
@pytest.mark.usefixtures("patient")
def test_tasks_finish_in_the_recorded_order(tmp_path: Path, finish: list[int]) -> None:
    global finishing
    finishing = Finishing(list(finish))
    run, came = recorded(tmp_path, in_tasks)
    assert came == [i * 10 for i in finish]
    finishing = Finishing([-1, *range(MANY)][:MANY])  # a body that ran would hang, not answer
    again: list[list[int]] = []

    async def agent() -> None:
        again.append(await in_tasks_served())

    async def in_tasks_served() -> list[int]:
        return [await future for future in asyncio.as_completed([slow_async(i) for i in range(MANY)])]

    for _ in range(3):
        report = run.replay(agent)
        assert report.equivalent and report.relaxed == 0, (report.first_divergence, report.relaxed)
    assert again == [came] * 3


@pytest.mark.parametrize("finish", [REVERSED, MIXED], ids=["reversed", "mixed"])
@pytest.mark.usefixtures("patient")
def test_threads_get_their_answers_in_the_recorded_order(tmp_path: Path, finish: list[int]) -> None:
    global finishing
    finishing = Finishing(list(finish))
    run, came = recorded(tmp_path, in_threads)
    assert came == [i * 10 for i in finish]
    again: list[list[int]] = []

    def agent() -> None:
        results: list[int] = []
        with ThreadPoolExecutor(MANY) as pool:
            for i in range(MANY):
                pool.submit(slow, i).add_done_callback(lambda future: results.append(future.result()))
        again.append(results)

    report = run.replay(agent)
    assert report.equivalent and report.relaxed == 0, (report.first_divergence, report.relaxed)
    assert again == [came]


def test_threads_may_race_for_what_the_record_has_in_a_row(tmp_path: Path) -> None:
    """Recorded one after the other by chance; on the replay the other thread comes first, and waits."""
    first_asked = threading.Event()

    def agent(other_way_round: bool) -> dict[str, int]:
        results = {}
        with ThreadPoolExecutor(2) as pool:

            def a() -> None:
                if other_way_round:
                    first_asked.wait(10)
                results["a"] = quick("a")
                first_asked.set()

            def b() -> None:
                if not other_way_round:
                    first_asked.wait(10)
                else:
                    threading.Timer(0.05, first_asked.set).start()
                results["b"] = quick("b")

            for future in (pool.submit(a), pool.submit(b)):
                future.result()
        return results

    run, results = recorded(tmp_path, lambda: agent(False))
    first_asked.clear()
    again: list[dict[str, int]] = []
    report = run.replay(lambda: again.append(agent(True)))
    assert report.equivalent, report.first_divergence
    assert again == [results]


counter = itertools.count()


@wl.tool(effect="pure")
def quick(name: str) -> int:
    return next(counter)


async def five(calls: int = 5) -> list[int]:
    return [quick("same") for _ in range(calls)]


async def five_tasks(calls: int = 5) -> list[int]:
    return list(await asyncio.gather(*(asyncio.to_thread(quick, "same") for _ in range(calls))))


@pytest.mark.parametrize("agent", [five, five_tasks])
def test_five_identical_calls_get_five_answers_and_a_sixth_none(agent: Callable[..., Any], tmp_path: Path) -> None:
    run, results = recorded(tmp_path, agent)
    assert len(set(results)) == 5
    again: list[list[int]] = []

    async def same() -> None:
        again.append(await agent())

    assert run.replay(same).equivalent
    assert sorted(again[0]) == sorted(results)
    if agent is five:
        assert again == [results]

    report = run.replay(lambda: agent(6))
    assert (report.verdict, report.served) == ("diverged", 5)
    assert report.divergence is not None and report.divergence.kind == "unexpected"
    assert report.divergence.name == "quick" and "the record ends here" in str(report.divergence.recorded)

    report = run.replay(lambda: agent(3))
    assert (report.verdict, report.served) == ("diverged", 3)
    assert report.divergence is not None and report.divergence.kind == "unconsumed"
    assert "2 recorded calls were never asked for" in str(report.first_divergence)


def test_the_agent_sees_the_divergence_as_a_typed_error(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path, lambda: quick("as recorded"))
    seen: list[Diverged] = []

    def agent() -> None:
        try:
            quick("something else")
        except Diverged as error:
            seen.append(error)

    report = run.replay(agent)
    assert report.verdict == "diverged"
    assert seen[0].facts["path"] == "$.name"
    assert (seen[0].facts["recorded"], seen[0].facts["actual"]) == ("as recorded", "something else")
    assert str(report.first_divergence).startswith("changed at quick (seq 1, c0) $.name:")


def test_a_timeout_of_the_agent_passes_again_and_ends_as_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worldline.engine.cassette.GRACE_SECONDS", 1.0)  # less than the agent's own patience

    @wl.tool(effect="pure")
    async def endless() -> None:
        await asyncio.Event().wait()

    told: list[str] = []

    async def agent() -> None:
        async with wl.record(tmp_path):
            try:
                await asyncio.wait_for(endless(), 1.2)
            except TimeoutError:
                told.append("too late")

    asyncio.run(agent())
    assert wl.open("latest", tmp_path).replay(agent).equivalent
    assert told == ["too late"] * 2
