"""Answers in one go: whole bodies, refusals and retries, compressed bodies, lists, and what is turned away."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import zlib
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
import openai
import pytest

from tests.seams.raw_http import Raw, raw_upstream
from tests.wires.drive import KEY, Wire, recording, replaying, twice
from worldline.engine.cassette import Cassette
from worldline.engine.steps import steps
from worldline.errors import Ineligible
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Fail, Provider, Say, ToolCall

ASKED: Any = [{"role": "user", "content": "refund #812"}]
SAID = Say("Zwei Lampen: 98,00 € 💡", [ToolCall("refund", {"order": 812})], usage=(11, 7))
RETRY_SOON = {"retry-after-ms": "1"}


def chat(client: openai.OpenAI, **more: Any) -> dict[str, Any]:
    return client.chat.completions.create(model="m", messages=ASKED, **more).model_dump(mode="json")


def every_api(wire: Wire) -> list[dict[str, Any]]:
    with wire.openai() as gpt, wire.anthropic() as claude:
        return [
            chat(gpt),
            gpt.responses.create(model="m", input="refund #812").model_dump(mode="json"),
            claude.messages.create(model="m", max_tokens=99, messages=ASKED).model_dump(mode="json"),
        ]


def test_whole_answers_of_the_three_apis_are_served_byte_for_byte_with_their_facts() -> None:
    done = twice(every_api, lambda ask: SAID)
    done.assert_same()
    for exchange, upstream in zip(done.exchanges, done.upstream, strict=True):
        assert done.cassette.body(exchange) == upstream.body
        assert exchange.data["gen_ai.usage.input_tokens"] == 11
        assert exchange.data["gen_ai.usage.output_tokens"] == 7
        assert [use["name"] for use in exchange.data["tool_uses"]] == ["refund"]
    assert [seen.headers["content-length"] for seen in done.at_replay] == [str(len(s.body)) for s in done.upstream]


def test_a_refused_call_and_its_retry_are_served_both_and_are_one_step() -> None:
    def script(ask: Ask) -> Fail | Say:
        return Fail(429, headers=RETRY_SOON) if ask.attempt == 0 else SAID

    def agent(wire: Wire) -> dict[str, Any]:
        with wire.openai(max_retries=2) as client:
            return chat(client)

    done = twice(agent, script)
    done.assert_same()
    assert [seen.status for seen in done.at_replay] == [429, 200]
    assert done.at_replay[0].headers["retry-after-ms"] == "1", "the SDK would wait on its own account"
    [step] = steps(done.cassette.recording)
    assert (step.attempts, step.status) == (2, 200)


def test_a_server_error_is_served_as_the_same_error() -> None:
    def agent(wire: Wire) -> list[Any]:
        errors: list[Any] = []
        with wire.openai() as gpt, wire.anthropic() as claude:
            with pytest.raises(openai.InternalServerError) as failed:
                chat(gpt)
            errors.append((failed.value.status_code, failed.value.body, str(failed.value), failed.value.request_id))
            with pytest.raises(Exception, match="on fire") as overloaded:
                claude.messages.create(model="m", max_tokens=9, messages=ASKED)
            errors.append((type(overloaded.value), str(overloaded.value)))
        return errors

    done = twice(agent, lambda ask: Fail(500 if ask.api == "openai.chat" else 529, message="on fire"))
    done.assert_same()
    assert done.recorded[0][:2] == (500, done.recorded[0][1])
    assert [seen.status for seen in done.at_replay] == [500, 529]
    assert all(step.error and "on fire" in step.error for step in steps(done.cassette.recording))


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("stream", [False, True])
def test_compressed_bodies_stay_as_they_came_and_are_read_for_their_facts(encoding: Any, stream: bool) -> None:
    def agent(wire: Wire) -> Any:
        with wire.openai() as client:
            if not stream:
                return chat(client)
            usage: Any = {"include_usage": True}
            answer = client.chat.completions.create(model="m", messages=ASKED, stream=True, stream_options=usage)
            return [event.model_dump(mode="json") for event in answer]

    done = twice(agent, lambda ask: Say(SAID.text, SAID.calls, usage=(11, 7), encoding=encoding, pieces="bytes:9"))
    done.assert_same()
    [exchange], [upstream], [replay] = done.exchanges, done.upstream, done.at_replay
    assert upstream.headers["content-encoding"] == replay.headers["content-encoding"] == encoding
    assert done.cassette.body(exchange) == upstream.body
    assert b"98,00" not in upstream.body, "the provider did not compress"
    assert "98,00" in zlib.decompress(upstream.body, wbits=47).decode()
    assert exchange.data["gen_ai.usage.output_tokens"] == 7
    [step] = steps(done.cassette.recording)
    assert (step.text, [call.name for call in step.calls]) == (SAID.text, ["refund"])


def test_lists_and_heads_are_served_and_a_head_has_no_body() -> None:
    def agent(wire: Wire) -> list[Any]:
        with wire.openai() as gpt, wire.anthropic() as claude, httpx2.Client() as plain:
            head = plain.head(f"{wire.base('openai')}/models", headers={"Authorization": f"Bearer {KEY}"})
            return [
                [model.id for model in gpt.models.list()],
                claude.models.retrieve("claude-haiku-5-5").model_dump(mode="json"),
                claude.messages.count_tokens(model="m", messages=ASKED).input_tokens,
                (head.status_code, head.content, head.headers["content-length"]),
            ]

    done = twice(agent, lambda ask: SAID)
    done.assert_same()
    status, body, length = done.recorded[-1]
    assert (status, body) == (200, b"") and int(length) > 0, "a HEAD announces the length of what it leaves out"


def test_a_chunked_request_is_the_same_call_as_one_with_a_length() -> None:
    body = json.dumps({"model": "m", "messages": ASKED}).encode()

    def ask(wire: Wire, content: Any) -> bytes:
        with httpx2.Client(headers={"Authorization": f"Bearer {KEY}"}) as client:
            return client.post(f"{wire.base('openai')}/chat/completions", content=content).content

    with Provider(lambda ask: SAID) as provider:
        with recording(provider.openai_url) as record:
            first = ask(record, iter([body[:9], body[9:]]))
        [request] = provider.requests
    assert request.body == body
    assert (request.header["content-length"], request.header.get("transfer-encoding")) == (str(len(body)), None)
    assert record.path is not None
    with replaying(record.path) as replay:
        assert ask(replay, body) == first
    assert replay.report is not None and replay.report.verdict == "equivalent"


def test_an_upstream_that_refuses_connections_is_recorded_and_served_as_the_same_502() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    def agent(wire: Wire) -> tuple[int, Any, str]:
        with wire.openai(max_retries=3) as client, pytest.raises(openai.InternalServerError) as failed:
            chat(client)
        return failed.value.status_code, failed.value.body, str(failed.value)

    with recording(f"http://127.0.0.1:{port}/v1") as record:
        first = agent(record)
    assert first[0] == 502 and f"127.0.0.1:{port}" in first[2]
    assert record.path is not None
    with replaying(record.path) as replay:
        assert agent(replay) == first
    assert replay.report is not None and (replay.report.verdict, replay.report.served) == ("equivalent", 1)
    assert [seen.chunks for seen in replay.tap.answers()] == [seen.chunks for seen in record.tap.answers()]


async def test_a_websocket_is_refused_in_one_line_and_makes_the_run_ineligible() -> None:
    with Provider() as provider:
        with recording(provider.openai_url) as record:
            async with aiohttp.ClientSession() as client:
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await client.ws_connect(f"{record.base('openai')}/realtime?model=m")
        assert provider.requests == []
    assert refused.value.status == 501
    [seen] = record.tap.answers()
    message = json.loads(seen.body)["error"]["message"]
    assert "websocket" in message and "openai" in message and "\n" not in message

    assert record.path is not None
    recorded = Recording(record.path)
    [loss] = [event for event in recorded.events() if event.name == "meta/loss"]
    assert loss.data["what"] == "a websocket connection to openai"
    with pytest.raises(Ineligible) as ineligible, replaying(record.path):
        pass
    assert any("a websocket connection to openai" in reason for reason in ineligible.value.facts["reasons"])


@pytest.mark.parametrize(
    "path", ["/wrong-token/openai/chat/completions", "/openai/chat/completions", "/", "/v1/models"]
)
def test_a_stranger_without_the_token_is_turned_away_and_nothing_is_recorded(path: str) -> None:
    with Provider() as provider:
        with recording(provider.openai_url) as record:
            where = urlsplit(record.session.proxy.url)
            connection = http.client.HTTPConnection(where.hostname or "", where.port)
            connection.request("POST", path, b"{}", {"Authorization": f"Bearer {KEY}"})
            answer = connection.getresponse()
            assert answer.status == 404
            assert "token" in json.loads(answer.read())["error"]["message"]
            connection.close()
        assert provider.connections == 0
    assert record.path is not None
    assert [event for event in Recording(record.path).events() if event.kind == "decision"] == []


def test_on_a_replay_an_unknown_call_is_refused_once_and_never_goes_out() -> None:
    def changed(wire: Wire) -> None:
        with wire.openai(max_retries=3) as client, pytest.raises(openai.APIStatusError) as refused:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "refund #813"}])
        assert refused.value.status_code == 424
        assert "$.messages[0].content" in str(refused.value)

    with (
        Provider(lambda ask: SAID) as provider,
        recording(provider.openai_url) as record,
        record.openai() as client,
    ):
        chat(client)
    assert record.path is not None
    with replaying(record.path) as replay:
        changed(replay)
    assert len(replay.tap.answers()) == 1, "the SDK retried a refusal"
    assert replay.report is not None and replay.report.verdict == "diverged"
    assert replay.report.divergence is not None
    assert (replay.report.divergence.kind, replay.report.divergence.path) == ("changed", "$.messages[0].content")


@pytest.mark.parametrize(
    "location", ["/v1/moved?a=1&token=quokka", "{base}/v1/moved?a=1&token=quokka", "moved?a=1&token=quokka"]
)
async def test_a_redirect_behind_the_same_base_url_stays_in_the_recording(location: str) -> None:
    targets: list[str] = []

    async def script(provider: Raw) -> None:
        while True:
            head, _ = await provider.take_request()
            targets.append(head.split(b" ")[1].decode())
            if len(targets) == 1:
                where = location.format(base=upstream.url)
                await provider.send(f"HTTP/1.1 307 Moved\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode())
            else:
                await provider.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    def agent(wire: Wire) -> list[Any]:
        with httpx2.Client(follow_redirects=True) as client:
            answer = client.post(f"{wire.base('openai')}/old", json={"a": 1})
            return [answer.status_code, answer.text, len(answer.history)]

    async with raw_upstream(script) as upstream:
        with recording(f"{upstream.url}/v1") as wire:
            told = await asyncio.to_thread(agent, wire)
    assert told == [200, "{}", 1]
    assert targets == ["/v1/old", "/v1/moved?a=1&token=quokka"]
    assert wire.path is not None
    assert b"quokka" not in b"".join(p.read_bytes() for p in wire.path.parent.rglob("*.jsonl"))
    with replaying(wire.path) as replay:
        assert await asyncio.to_thread(agent, replay) == told
    assert replay.report is not None and (replay.report.verdict, replay.report.served) == ("equivalent", 2)


async def test_a_redirect_that_leads_away_makes_a_replay_ineligible() -> None:
    async def script(provider: Raw) -> None:
        await provider.take_request()
        await provider.send(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n")

    def agent(wire: Wire) -> str:
        return httpx2.get(f"{wire.base('openai')}/file").headers["location"]

    async with raw_upstream(script) as upstream:
        with recording(f"{upstream.url}/v1") as wire:
            assert await asyncio.to_thread(agent, wire) == "http://127.0.0.1:9/"
    assert wire.path is not None
    with pytest.raises(Ineligible, match="a redirect to another address"), replaying(wire.path):
        pass


async def test_a_request_that_cannot_be_sent_on_has_an_end_in_the_record() -> None:
    with recording("http://127.0.0.1:9/v1 ") as wire:
        answer = await asyncio.to_thread(httpx2.post, f"{wire.base('openai')}?a=1", json={})
    assert answer.status_code == 502
    assert wire.path is not None
    [exchange] = Cassette(Recording(wire.path)).exchanges
    assert exchange.data["error"]["kind"] == "not-sendable"
