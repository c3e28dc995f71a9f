"""Answers that do not come in one go: slow ones, ones that break off, ones whose client leaves first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from tests.seams.raw_http import CHUNKED_HEAD, Raw, chunked, connected, raw_upstream
from tests.wires.drive import KEY, Wire, recording, replaying, twice
from tests.wires.sdk_streams import ASKED, as_data
from worldline.engine.cassette import Cassette
from worldline.engine.exchanges import Exchange
from worldline.store.recording import Recording
from worldline.testing.provider import Say

LIMIT = 120
"""Seconds after which a test that waits for what never comes is broken off."""

BODY = json.dumps({"model": "m", "messages": ASKED, "stream": True}).encode()


def event(content: str) -> bytes:
    delta = {"index": 0, "delta": {"content": content}, "finish_reason": None}
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [delta]}
    return b"data: " + json.dumps(whole).encode() + b"\n\n"


ONE, TWO, DONE = event("one"), event("two"), b"data: [DONE]\n\n"


@asynccontextmanager
async def recorded_from(script: Callable[[Raw], Awaitable[None]]) -> AsyncIterator[Wire]:
    """A recording whose provider is `script`, in this loop; it goes on while the recording is sealed."""
    async with raw_upstream(script) as upstream:
        context = recording(f"{upstream.url}/v1")
        wire = await asyncio.to_thread(context.__enter__)
        try:
            yield wire
        except BaseException as error:
            await asyncio.to_thread(context.__exit__, type(error), error, error.__traceback__)
            raise
        await asyncio.to_thread(context.__exit__, None, None, None)


@asynccontextmanager
async def asked(wire: Wire) -> AsyncIterator[Raw]:
    """A plain socket to the proxy itself (a tap would hide who hangs up) on which the question was sent."""
    proxy = wire.session.proxy
    head = (
        f"POST /{proxy.token}/openai/chat/completions HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
    )
    async with connected(proxy.port) as client:
        await client.send(head.encode() + BODY)
        yield client


def exchange_of(wire: Wire) -> tuple[Cassette, Exchange]:
    assert wire.path is not None
    cassette = Cassette(Recording(wire.path))
    [exchange] = cassette.exchanges
    return cassette, exchange


async def served(wire: Wire) -> list[bytes]:
    """The chunks that a replay serves to a client that stays to the end."""
    assert wire.path is not None
    with replaying(wire.path) as replay:
        async with asked(replay) as client:
            await client.take_head()
            chunks = await client.take_chunks()
    assert replay.report is not None and replay.report.verdict == "equivalent"
    return chunks


async def test_bytes_reach_the_client_while_the_stream_is_still_open() -> None:
    seen_one, seen_two = asyncio.Event(), asyncio.Event()

    async def script(provider: Raw) -> None:
        await provider.take_request()
        await provider.send(CHUNKED_HEAD + chunked(ONE, end=False))
        await seen_one.wait()
        await provider.send(chunked(TWO[:9], end=False))
        await seen_two.wait()
        await provider.send(chunked(TWO[9:], DONE))

    async with asyncio.timeout(LIMIT), recorded_from(script) as wire, asked(wire) as client:
        await client.take_head()
        chunks = [await client.take_chunk()]
        seen_one.set()
        chunks.append(await client.take_chunk())
        seen_two.set()
        chunks += await client.take_chunks()
    assert chunks == [ONE, TWO[:9], TWO[9:], DONE]
    cassette, exchange = exchange_of(wire)
    assert cassette.pieces(exchange) == [(chunk, True) for chunk in chunks]
    assert await served(wire) == chunks


async def test_an_sdk_gets_each_event_while_the_provider_still_waits() -> None:
    seen = asyncio.Event()

    async def script(provider: Raw) -> None:
        await provider.take_request()
        await provider.send(CHUNKED_HEAD + chunked(ONE, end=False))
        await seen.wait()
        await provider.send(chunked(TWO, DONE))

    async with asyncio.timeout(LIMIT), recorded_from(script) as wire, wire.async_openai() as client:
        stream = await client.chat.completions.create(model="m", messages=ASKED, stream=True)
        said = []
        async for piece in stream:
            said.append(piece.choices[0].delta.content)
            seen.set()
    assert said == ["one", "two"]


async def test_what_came_is_on_record_while_the_provider_is_silent() -> None:
    on_record = asyncio.Event()

    async def script(provider: Raw) -> None:
        await provider.take_request()
        await provider.send(CHUNKED_HEAD + chunked(ONE, end=False))
        await on_record.wait()
        await provider.send(chunked(TWO, DONE))

    async with asyncio.timeout(LIMIT), recorded_from(script) as wire, asked(wire) as client:
        await client.take_head()
        assert await client.take_chunk() == ONE
        while not any(row.name == "decision/chunk" for row in Recording(wire.session.recorder.attempt).events()):
            await asyncio.sleep(0.01)
        on_record.set()
        assert await client.take_chunks() == [TWO, DONE]


def stream_until_it_breaks(wire: Wire) -> tuple[list[dict[str, Any]], str]:
    events: list[dict[str, Any]] = []
    with wire.openai() as client, pytest.raises(Exception) as broken:
        events.extend(map(as_data, client.chat.completions.create(model="m", messages=ASKED, stream=True)))
    assert not isinstance(broken.value, AssertionError)
    return events, f"{type(broken.value).__name__}: {broken.value}"


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_an_answer_that_broke_off_breaks_off_again_at_the_same_byte(framing: Any) -> None:
    done = twice(stream_until_it_breaks, lambda ask: Say("one two three four", abort_after=3, framing=framing))
    done.assert_same()
    events, _ = done.recorded
    assert [piece["choices"][0]["delta"]["content"] for piece in events] == ["", "one", " two"]
    [upstream], [record], [replay], [exchange] = done.upstream, done.at_record, done.at_replay, done.exchanges
    assert upstream.body == record.body == replay.body == done.cassette.body(exchange)
    assert (exchange.data["complete"], exchange.data["closed_by"]) == (False, "upstream")
    if framing != "close":  # there only a reset tells, and the SDK's error has told it
        assert [seen.whole for seen in (upstream, record, replay)] == [False, False, False]


def test_an_answer_that_broke_off_before_its_first_byte_is_served_so() -> None:
    done = twice(stream_until_it_breaks, lambda ask: Say("one", abort_after=0))
    done.assert_same()
    assert done.recorded[0] == []
    assert [seen.whole for seen in done.at_replay] == [False]


def test_a_retry_after_a_break_is_one_step_and_is_served() -> None:
    def agent(wire: Wire) -> str | None:
        with wire.openai(max_retries=1) as client:
            return client.chat.completions.create(model="m", messages=ASKED).choices[0].message.content

    done = twice(agent, lambda ask: Say("late", abort_after=0 if ask.attempt == 0 else None))
    done.assert_same()
    assert (done.recorded, len(done.exchanges)) == ("late", 2)
    assert done.cassette.recording.summary["steps"] == 1


async def test_a_client_that_leaves_in_the_middle_does_not_cut_the_record() -> None:
    gone = asyncio.Event()

    async def script(provider: Raw) -> None:
        await provider.take_request()
        await provider.send(CHUNKED_HEAD + chunked(ONE, end=False))
        await gone.wait()
        await provider.send(chunked(TWO, end=False), chunked(DONE))

    async with asyncio.timeout(LIMIT), recorded_from(script) as wire:
        async with asked(wire) as client:
            await client.take_head()
            assert await client.take_chunk() == ONE
            client.reset()
        gone.set()
    cassette, exchange = exchange_of(wire)
    assert (exchange.data["closed_by"], exchange.data["closed_at"], exchange.data["complete"]) == ("client", 1, True)
    assert cassette.pieces(exchange) == [(ONE, True), (TWO, True), (DONE, True)]
    assert await served(wire) == [ONE, TWO, DONE]


async def test_the_sdk_hangs_up_at_done_and_the_record_is_whole_all_the_same() -> None:
    gone = asyncio.Event()
    late = b": after the end\n\n"

    async def script(provider: Raw) -> None:
        await provider.take_request()
        await provider.send(CHUNKED_HEAD + chunked(ONE, DONE, end=False))
        await gone.wait()
        await provider.send(chunked(late))

    async with asyncio.timeout(LIMIT), recorded_from(script) as wire:
        client = openai.AsyncOpenAI(base_url=wire.session.proxy.base_url("openai"), api_key=KEY, max_retries=0)
        async with client:
            stream = await client.chat.completions.create(model="m", messages=ASKED, stream=True)
            said = [piece.choices[0].delta.content async for piece in stream]
        gone.set()
    assert said == ["one"]
    cassette, exchange = exchange_of(wire)
    assert (exchange.data["closed_by"], exchange.data["closed_at"], exchange.data["complete"]) == ("client", 2, True)
    assert cassette.body(exchange) == ONE + DONE + late
    assert await served(wire) == [ONE, DONE, late]


async def test_a_client_that_leaves_on_the_replay_too_leaves_the_rest_of_the_run_in_order() -> None:
    def script(ask: Any) -> Say:
        return Say("one two three", pieces="events")

    def agent(wire: Wire) -> list[str | None]:
        with wire.openai() as client:
            stream = client.chat.completions.create(model="m", messages=ASKED, stream=True)
            first = next(iter(stream)).choices[0].delta.role
            stream.close()
            after = client.chat.completions.create(model="other", messages=ASKED)
            return [first, after.choices[0].message.content]

    done = await asyncio.to_thread(twice, agent, script)
    assert done.recorded == done.replayed == ["assistant", "one two three"]
    assert (done.report.verdict, done.report.relaxed) == ("equivalent", 0)
    assert done.cassette.body(done.exchanges[0]) == done.upstream[0].body


def test_a_client_that_gave_up_late_gives_up_again_and_is_not_given_what_it_never_got(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("worldline.engine.cassette.GRACE_SECONDS", 0.4)  # what passes in the record is longer

    def agent(wire: Wire) -> list[str]:
        with wire.openai(timeout=0.5) as client:
            try:
                return [str(client.chat.completions.create(model="slow", messages=ASKED).choices[0].message.content)]
            except openai.APITimeoutError:
                patient = client.with_options(timeout=120)  # only the slow one is given up
                return ["too late", str(patient.chat.completions.create(model="fast", messages=ASKED).model)]

    done = twice(agent, lambda ask: Say("late", first_delay=1.5 if ask.model == "slow" else 0))
    assert done.recorded == done.replayed == ["too late", "fast"]
    assert done.report.verdict == "equivalent"
