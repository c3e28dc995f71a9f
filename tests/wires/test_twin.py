"""The in-process twin and the proxy are one seam: what one of them recorded, the other serves, under the same keys."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

import worldline
from tests.wires.drive import KEY, Unreachable, run_agent
from tests.wires.sdk_streams import (
    ASKED,
    TEXT,
    Sdks,
    as_data,
    chat_create,
    chat_helper,
    chat_helper_async,
    messages_create_async,
    messages_helper,
    responses_create,
    responses_helper_async,
)
from worldline.engine.replay import ReplayReport
from worldline.engine.steps import steps
from worldline.seams.active import ActiveRun
from worldline.testing.provider import Ask, Fail, Provider, Say, ToolCall

STREAMS = [
    chat_create,
    chat_helper,
    responses_create,
    messages_helper,
    chat_helper_async,
    responses_helper_async,
    messages_create_async,
]


class Wrapped:
    """SDK clients that name a provider themselves and go through the twin."""

    def __init__(self, run: ActiveRun, base: str) -> None:
        self._run = run
        self._base = base

    def openai(self, **options: Any) -> openai.OpenAI:
        return self._wrap(openai.OpenAI, f"{self._base}/v1", options)

    def async_openai(self, **options: Any) -> openai.AsyncOpenAI:
        return self._wrap(openai.AsyncOpenAI, f"{self._base}/v1", options)

    def anthropic(self, **options: Any) -> anthropic.Anthropic:
        return self._wrap(anthropic.Anthropic, self._base, options)

    def async_anthropic(self, **options: Any) -> anthropic.AsyncAnthropic:
        return self._wrap(anthropic.AsyncAnthropic, self._base, options)

    def _wrap(self, kind: Any, base: str, options: dict[str, Any]) -> Any:
        return self._run.wrap(kind(base_url=base, api_key=KEY, **{"max_retries": 0, **options}))


class Proxied:
    """SDK clients whose base URL is the run's proxy."""

    def __init__(self, run: ActiveRun, base: str) -> None:
        self._openai: dict[str, Any] = {"base_url": run.proxy.openai, "api_key": KEY}
        self._anthropic: dict[str, Any] = {"base_url": run.proxy.anthropic, "api_key": KEY}

    def openai(self, **options: Any) -> openai.OpenAI:
        return openai.OpenAI(**self._openai, **{"max_retries": 0, **options})

    def async_openai(self, **options: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(**self._openai, **{"max_retries": 0, **options})

    def anthropic(self, **options: Any) -> anthropic.Anthropic:
        return anthropic.Anthropic(**self._anthropic, **{"max_retries": 0, **options})

    def async_anthropic(self, **options: Any) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(**self._anthropic, **{"max_retries": 0, **options})


WAYS: list[Callable[[ActiveRun, str], Any]] = [Wrapped, Proxied]


@pytest.fixture
def nobody() -> Iterator[str]:
    """The base URL of a provider that may not be contacted; it is checked when the test has ended."""
    listener = Unreachable()
    yield listener.url
    assert listener.connects() == 0, "a provider was contacted on a replay"
    listener.close()


def record(way: Any, agent: Callable[[Any], Any], script: Callable[[Ask], Any]) -> tuple[Any, Path, Provider]:
    """What `agent` was told, the recording, and the provider with the requests that it saw."""
    with Provider(script) as provider:
        os.environ |= {"OPENAI_BASE_URL": provider.openai_url, "ANTHROPIC_BASE_URL": provider.anthropic_url}
        with worldline.record("runs") as run:
            told = run_agent(agent, way(run, provider.anthropic_url))
        del os.environ["OPENAI_BASE_URL"], os.environ["ANTHROPIC_BASE_URL"]
    assert run.path is not None
    return told, run.path, provider


def replay(way: Any, agent: Callable[[Any], Any], path: Path, base: str) -> tuple[Any, ReplayReport]:
    told: list[Any] = []

    def again() -> None:
        run = worldline.current()
        assert run is not None and run.mode == "replay"
        told.append(run_agent(agent, way(run, base)))

    report = worldline.open(path).replay(again)
    assert told, report.notes
    return told[0], report


def assert_served_by_both(told: Any, path: Path, agent: Callable[[Any], Any], nobody: str) -> None:
    for way in WAYS:
        again, report = replay(way, agent, path, nobody)
        assert again == told
        assert (report.verdict, report.relaxed) == ("equivalent", 0), report.first_divergence


@pytest.mark.parametrize("way", WAYS, ids=["the twin recorded", "the proxy recorded"])
@pytest.mark.parametrize("stream", STREAMS)
def test_twin_and_proxy_serve_what_either_recorded(stream: Callable[[Sdks], Any], way: Any, nobody: str) -> None:
    said = Say(TEXT, [ToolCall("lookup", {"order": 812})], pieces="awkward")
    told, path, provider = record(way, stream, lambda ask: said)
    assert len(provider.requests) == len(worldline.open(path).cassette.exchanges) == 1
    assert_served_by_both(told, path, stream, nobody)
    [step] = worldline.open(path).steps
    assert step.error is None  # an SDK that hangs up behind the last event has the whole answer


def test_the_keys_are_the_same_whichever_of_the_two_recorded() -> None:
    def agent(sdks: Sdks) -> None:
        for stream in (chat_create, responses_create, messages_helper):
            stream(sdks)

    paths = [record(way, agent, lambda ask: Say(TEXT))[1] for way in WAYS]
    keys = [[exchange.key for exchange in worldline.open(path).cassette.exchanges] for path in paths]
    assert keys[0] == keys[1] and len(set(keys[0])) == 3


def test_retries_compression_and_breaks_cross_the_twin_as_they_cross_the_proxy(nobody: str) -> None:
    def script(ask: Ask) -> Say | Fail:
        if ask.last_user == "break":
            return Say("one two three", abort_after=2)
        if ask.attempt == 0:
            return Fail(429, headers={"retry-after-ms": "1"})
        return Say(TEXT, usage=(11, 7), encoding="gzip")

    def agent(sdks: Any) -> list[Any]:
        with sdks.openai(max_retries=1) as client:
            answer = client.chat.completions.create(model="m", messages=ASKED)
        with sdks.openai() as client:
            pieces: list[Any] = []
            asked: Any = [{"role": "user", "content": "break"}]
            with pytest.raises(openai.APIError):
                pieces.extend(map(as_data, client.chat.completions.create(model="m", messages=asked, stream=True)))
        return [answer.model_dump(mode="json"), pieces]

    told, path, _ = record(Wrapped, agent, script)
    assert told[0]["choices"][0]["message"]["content"] == TEXT and len(told[1]) == 2
    run = worldline.open(path)
    assert [exchange.data.get("status") for exchange in run.cassette.exchanges] == [429, 200, 200]
    assert next((step.text, step.attempts) for step in steps(run.cassette.recording)) == (TEXT, 2)
    assert run.cassette.exchanges[2].data["closed_by"] == "upstream"
    assert_served_by_both(told, path, agent, nobody)


def close_early(sdks: Sdks) -> list[Any]:
    with sdks.openai() as client:
        stream = client.chat.completions.create(model="m", messages=ASKED, stream=True)
        first = as_data(next(iter(stream)))
        stream.close()
        after = client.chat.completions.create(model="other", messages=ASKED)
    return [first, after.choices[0].message.content]


async def close_early_async(sdks: Sdks) -> list[Any]:
    async with sdks.async_openai() as client:
        stream = await client.chat.completions.create(model="m", messages=ASKED, stream=True)
        first = as_data(await anext(aiter(stream)))
        await stream.close()
        after = await client.chat.completions.create(model="other", messages=ASKED)
    return [first, after.choices[0].message.content]


@pytest.mark.parametrize("agent", [close_early, close_early_async])
@pytest.mark.parametrize("way", WAYS, ids=["the twin recorded", "the proxy recorded"])
def test_a_stream_that_is_closed_early_holds_nothing_up(agent: Callable[[Sdks], Any], way: Any, nobody: str) -> None:
    told, path, _ = record(way, agent, lambda ask: Say("one two three"))
    [early, after] = worldline.open(path).cassette.exchanges
    assert after.data["complete"]
    if way is Wrapped:
        assert (early.data["closed_by"], early.data["complete"]) == ("client", False)
    assert_served_by_both(told, path, agent, nobody)


BODY = {"model": "m", "messages": ASKED}
HEADERS = {"Authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_a_bare_client_with_the_runs_transport_is_recorded_and_served(library: Any, nobody: str) -> None:
    def plain(run: ActiveRun, base: str) -> list[Any]:
        with library.Client(transport=run.transport(library.HTTPTransport()), headers=HEADERS) as client:
            answer = client.post(f"{base}/v1/chat/completions", json=BODY)
            listed = client.get(f"{base}/v1/models?limit=2")
        return [(answer.status_code, answer.content), (listed.status_code, listed.content)]

    async def awaited(run: ActiveRun, base: str) -> list[Any]:
        async with library.AsyncClient(
            transport=run.transport(library.AsyncHTTPTransport()), headers=HEADERS
        ) as client:
            answer = await client.post(f"{base}/v1/chat/completions", json=BODY)
            listed = await client.get(f"{base}/v1/models?limit=2")
        return [(answer.status_code, answer.content), (listed.status_code, listed.content)]

    def proxied(run: ActiveRun, base: str) -> list[Any]:
        with library.Client(headers=HEADERS) as client:
            answer = client.post(f"{run.proxy.openai}/chat/completions", json=BODY)
            listed = client.get(f"{run.proxy.openai}/models?limit=2")
        return [(answer.status_code, answer.content), (listed.status_code, listed.content)]

    def made_by(ask: Any) -> Callable[[ActiveRun, str], Callable[[], Any]]:
        return lambda run, base: lambda: ask(run, base)

    def call(ready: Callable[[], Any]) -> Any:
        return ready()

    for recorder in (plain, awaited, proxied):
        told, path, _ = record(made_by(recorder), call, lambda ask: Say(TEXT))
        assert [status for status, _ in told] == [200, 200]
        for server in (plain, awaited, proxied):
            again, report = replay(made_by(server), call, path, nobody)
            assert again == told
            assert report.verdict == "equivalent", report.first_divergence


def test_nothing_is_recorded_twice_where_proxy_and_twin_are_both_on() -> None:
    with Provider(lambda ask: Say(TEXT)) as provider:
        os.environ["OPENAI_BASE_URL"] = provider.openai_url
        with worldline.record("runs") as run:
            own = openai.OpenAI(base_url=run.proxy.openai, api_key=KEY)
            with run.wrap(own) as client:
                assert client is own
                client.chat.completions.create(model="m", messages=ASKED)
            transport = run.transport(httpx2.HTTPTransport())
            with openai.OpenAI(
                base_url=run.proxy.openai, api_key=KEY, http_client=httpx2.Client(transport=transport)
            ) as client:
                client.chat.completions.create(model="m", messages=ASKED)
            twice = run.wrap(run.wrap(openai.OpenAI(base_url=provider.openai_url, api_key=KEY)))
            with twice as client:
                client.chat.completions.create(model="m", messages=ASKED)
        del os.environ["OPENAI_BASE_URL"]
        assert len(provider.requests) == 3
    assert run.path is not None
    assert len(worldline.open(run.path).cassette.exchanges) == 3


@pytest.mark.parametrize("way", WAYS, ids=["in the twin", "at the proxy"])
def test_a_call_that_is_cancelled_while_it_waits_for_its_turn_holds_nothing_up(way: Any, nobody: str) -> None:
    quick_is_done = threading.Event()

    async def script(ask: Ask) -> Say:
        if ask.last_user == "slow":
            await asyncio.to_thread(quick_is_done.wait, 20)
        return Say(ask.last_user)

    async def asked(client: openai.AsyncOpenAI, question: str, begun: asyncio.Event) -> str:
        messages: Any = [{"role": "user", "content": question}]
        said = ""
        async for piece in await client.chat.completions.create(model="m", messages=messages, stream=True):
            said += piece.choices[0].delta.content or ""
            begun.set()
        if question == "quick":
            quick_is_done.set()
        return said

    async def both(sdks: Sdks) -> list[str]:
        async with sdks.async_openai() as client:
            begun = asyncio.Event()
            return list(await asyncio.gather(asked(client, "slow", begun), asked(client, "quick", begun)))

    async def given_up(sdks: Sdks) -> list[str]:
        async with sdks.async_openai() as client:
            begun = asyncio.Event()
            slow = asyncio.create_task(asked(client, "slow", begun))
            await begun.wait()  # its last piece waits for its turn, which is after the quick one's
            slow.cancel()
            await asyncio.gather(slow, return_exceptions=True)
            return [await asked(client, "quick", begun)]

    _, path, _ = record(way, both, script)
    told, report = replay(way, given_up, path, nobody)
    assert told == ["quick"]
    assert (report.verdict, report.served, report.relaxed) == ("equivalent", 2, 0)


@pytest.mark.parametrize("way", WAYS, ids=["the twin recorded", "the proxy recorded"])
def test_the_loser_of_a_race_may_be_cancelled_at_record_and_replay(way: Any, nobody: str) -> None:
    slow_may_go = threading.Event()

    async def script(ask: Ask) -> Say:
        if ask.last_user == "slow":
            await asyncio.to_thread(slow_may_go.wait, 20)
        return Say(ask.last_user)

    async def agent(sdks: Sdks) -> list[Any]:
        async with sdks.async_openai() as client:

            async def ask(question: str) -> Any:
                asked: Any = [{"role": "user", "content": question}]
                return (await client.chat.completions.create(model="m", messages=asked)).choices[0].message.content

            racers = [asyncio.create_task(ask(question)) for question in ("slow", "quick")]
            done, lost = await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
            for task in lost:
                task.cancel()
            await asyncio.gather(*lost, return_exceptions=True)
            slow_may_go.set()
            return [*sorted(task.result() for task in done), await ask("after")]

    told, path, _ = record(way, agent, script)
    assert told == ["quick", "after"]
    assert_served_by_both(told, path, agent, nobody)
