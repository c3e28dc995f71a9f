"""Clients that are no SDK, against one cassette: what any of them recorded, every other is served."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from tests.wires.drive import KEY, Wire, recording, replaying
from tests.wires.tap import Seen
from worldline.engine.cassette import Cassette
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Provider, Say

HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
QUESTIONS = ["one ü", "two €", "three 💡"]
STREAM_QUESTION = "and now slowly"


def script(ask: Ask) -> Say:
    return Say(f"{ask.last_user}: 98,00 € – 灯", pieces="awkward" if ask.stream else "events")


def asked(question: str, stream: bool = False) -> dict[str, Any]:
    more = {"stream": True} if stream else {}
    return {"messages": [{"role": "user", "content": question}], "model": "m", **more}


def with_sdk(wire: Wire) -> list[bytes]:
    with wire.openai() as client:
        create = client.chat.completions.with_raw_response.create
        bodies = [create(model="m", messages=asked(question)["messages"]).content for question in QUESTIONS]
        streaming = client.chat.completions.with_streaming_response.create
        with streaming(model="m", messages=asked(STREAM_QUESTION)["messages"], stream=True) as answer:
            return [*bodies, b"".join(answer.iter_bytes())]


async def with_aiohttp(wire: Wire) -> list[bytes]:
    url = f"{wire.base('openai')}/chat/completions"
    bodies = []
    async with aiohttp.ClientSession(headers=HEADERS) as client:
        for question in QUESTIONS:
            async with client.post(url, json=asked(question)) as answer:
                bodies.append(await answer.read())
        async with client.post(url, json=asked(STREAM_QUESTION, stream=True)) as answer:
            return [*bodies, b"".join([chunk async for chunk, _ in answer.content.iter_chunks()])]


def with_http_client(wire: Wire) -> list[bytes]:
    """One kept connection, as `requests` and urllib3 keep theirs; JSON with white space and in another order."""
    where = urlsplit(wire.base("openai"))
    connection = http.client.HTTPConnection(where.hostname or "", where.port)
    bodies = []
    for question in [*QUESTIONS, STREAM_QUESTION]:
        ask = dict(reversed(asked(question, stream=question == STREAM_QUESTION).items()))
        body = json.dumps(ask, indent=1, ensure_ascii=True).encode()
        connection.request("POST", f"{where.path}/chat/completions", body, HEADERS)
        bodies.append(connection.getresponse().read())
    connection.close()
    return bodies


def bodies_of(answers: list[Seen]) -> list[list[bytes]]:
    return [seen.chunks for seen in answers]


async def test_what_one_client_recorded_every_other_is_served() -> None:
    with Provider(script) as provider, recording(provider.openai_url) as record:
        told = with_sdk(record)
    assert record.path is not None
    for client in (with_aiohttp, with_http_client, with_sdk):
        with replaying(record.path) as replay:
            again = await with_aiohttp(replay) if client is with_aiohttp else client(replay)
        assert again == told
        assert replay.report is not None and replay.report.verdict == "equivalent", replay.report
        assert bodies_of(replay.tap.answers()) == bodies_of(record.tap.answers())


async def test_aiohttp_records_what_the_sdk_is_served() -> None:
    with Provider(script) as provider, recording(provider.openai_url) as record:
        told = await with_aiohttp(record)
    assert record.path is not None
    with replaying(record.path) as replay:
        assert with_sdk(replay) == told
    assert replay.report is not None and replay.report.verdict == "equivalent"


def test_a_kept_connection_carries_every_call_at_record_and_replay() -> None:
    with Provider(script) as provider, recording(provider.openai_url) as record:
        told = with_http_client(record)
        assert record.tap.connections == 1
        assert record.session.proxy.connects == provider.connections == 1, "the upstream's was not kept"
    assert record.path is not None
    with replaying(record.path) as replay:
        assert with_http_client(replay) == told
        assert replay.tap.connections == 1
    assert len(Cassette(Recording(record.path)).exchanges) == 4
