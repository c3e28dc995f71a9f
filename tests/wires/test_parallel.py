"""Eight calls at once: each gets its own recorded answer again, and they finish in the order in which they did."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import openai
import pytest

from tests.wires.drive import KEY, Wire, recording, replaying
from tests.wires.sdk_streams import chat_create
from worldline.engine import order as finishing
from worldline.engine.cassette import Cassette
from worldline.seams import way_out
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Provider, Say

ARRIVAL = ["same", "a", "same", "b", "same", "same", "c", "same"]
"""Five requests that are equal byte for byte, each with an answer of its own, among three others."""

FINISH = ["same 3", "b 0", "same 0", "c 0", "same 4", "a 0", "same 1", "same 2"]
SHUFFLED = [
    ["c", "same", "same", "same", "b", "same", "a", "same"],
    ["same", "same", "same", "same", "same", "c", "b", "a"],
    ["b", "a", "c", "same", "same", "same", "same", "same"],
]
LIMIT = 120  # seconds, for what hangs


async def eight_calls(
    client: openai.AsyncOpenAI,
    arrival: list[str],
    arrived: Callable[[], int],
    stream: bool,
    finished: Callable[[str], None],
) -> tuple[dict[str, str], list[str]]:
    """What each call was told (the i-th `same` is `same<i>`), and the answers in the order in which calls finished.

    A call starts when the one before has arrived at the other side.
    """
    order: list[str] = []

    async def call(question: str) -> str:
        asked: Any = [{"role": "user", "content": question}]
        if stream:
            pieces = await client.chat.completions.create(model="m", messages=asked, stream=True)
            text = "".join([piece.choices[0].delta.content or "" async for piece in pieces])
        else:
            text = (await client.chat.completions.create(model="m", messages=asked)).choices[0].message.content or ""
        order.append(text)
        finished(text)
        return text

    calls: dict[str, asyncio.Task[str]] = {}
    async with asyncio.timeout(LIMIT):
        for number, question in enumerate(arrival, 1):
            name = f"{question}{sum(known.startswith(question) for known in calls)}"
            calls[name] = asyncio.create_task(call(question))
            while arrived() < number:
                await asyncio.sleep(0.001)
        return {name: await task for name, task in calls.items()}, order


def untapped(wire: Wire) -> openai.AsyncOpenAI:
    """A client of the proxy itself: the threads of a tap would bring the answers into an order of their own."""
    return openai.AsyncOpenAI(base_url=wire.session.proxy.base_url("openai"), api_key=KEY, max_retries=0)


def served_by(replay: Wire) -> Callable[[], int]:
    boundary: Any = replay.session.boundary
    return lambda: boundary.matcher.served


class Conductor:
    """Lets the provider's answers out in the order of FINISH, each once the client has had the one before."""

    def __init__(self) -> None:
        self.may = {text: threading.Event() for text in FINISH}
        self.requests = 0

    def on_request(self, _: Any) -> None:
        self.requests += 1
        if self.requests == len(FINISH):
            self.may[FINISH[0]].set()

    def finished(self, text: str) -> None:
        following = dict(pairwise(FINISH)).get(text)
        if following is not None:
            self.may[following].set()

    async def script(self, ask: Ask) -> Say:
        text = f"{ask.last_user} {ask.attempt}"
        assert await asyncio.to_thread(self.may[text].wait, LIMIT)
        return Say(text)


@pytest.mark.parametrize("stream", [False, True])
async def test_parallel_calls_get_their_answers_and_finish_in_the_recorded_order(
    stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Order on the wire is exact; how soon a busy machine lets the client see the next answer is not.
    monkeypatch.setattr(way_out, "SPACING_SECONDS", 0.03)
    monkeypatch.setattr(finishing, "GRACE_SECONDS", 60.0)  # nor how soon it asks
    conductor = Conductor()
    with Provider(conductor.script, on_request=conductor.on_request) as provider:
        with recording(provider.openai_url) as record:
            async with untapped(record) as client:
                told, order = await eight_calls(client, ARRIVAL, lambda: conductor.requests, stream, conductor.finished)
        bodies = [request.body for request in provider.requests]
    assert order == FINISH
    assert [told[f"same{number}"] for number in range(5)] == [f"same {number}" for number in range(5)]
    assert len(set(bodies)) == 4 and max(map(bodies.count, bodies)) == 5, "the five were not equal byte for byte"
    assert record.path is not None
    assert len(Cassette(Recording(record.path)).exchanges) == 8

    for arrival in SHUFFLED:
        assert sorted(arrival) == sorted(ARRIVAL)
        with replaying(record.path) as replay:
            async with untapped(replay) as client:
                again = await eight_calls(client, arrival, served_by(replay), stream, lambda text: None)
        assert again == (told, order)
        assert replay.report is not None
        assert (replay.report.verdict, replay.report.relaxed) == ("equivalent", 0)


def test_calls_from_threads_are_served_each_its_own() -> None:
    barrier = threading.Barrier(4)

    def agent(wire: Wire) -> list[Any]:
        told: list[Any] = [None] * 4

        def ask(number: int) -> None:
            barrier.wait(LIMIT)
            told[number] = chat_create(wire)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return told

    with Provider(lambda ask: Say(f"answer {ask.attempt}")) as provider, recording(provider.openai_url) as record:
        first = agent(record)
    assert record.path is not None
    with replaying(record.path) as replay:
        second = agent(replay)

    def by_id(events: list[Any]) -> str:
        return str(events[0]["id"])

    assert sorted(second, key=by_id) == sorted(first, key=by_id)
    assert len({by_id(events) for events in first}) == 4
    assert replay.report is not None and replay.report.verdict == "equivalent"
