"""On the wire the provider does exactly what its script says, and what it was sent is seen byte for byte."""

from __future__ import annotations

import gzip
import json
import re
import socket
import zlib
from typing import Any

import anthropic
import openai
import pytest

from tests.testing.sdk_calls import ASKED, KEY, chat, client_for, messages
from worldline.testing.provider import Provider, Raw, Say, ToolCall

TEXT = "Zwei Lampen kosten 98,00 € – 灯が二つ 💡."
CALLS = (ToolCall("lookup", {"order": 812, "note": "ü€💡"}), ToolCall("ping"))
PATHS = {
    "openai.chat": "/v1/chat/completions",
    "openai.responses": "/v1/responses",
    "anthropic.messages": "/v1/messages",
}
BODY = {"model": "m", "max_tokens": 9, "messages": ASKED, "input": "refund #812", "stream": True}


def post(provider: Provider, api: str, body: Any = BODY, **extra: str) -> bytes:
    """All bytes that come back for a hand-made request, until the provider closes."""
    content = json.dumps(body).encode()
    headers = {
        "Host": "here",
        "Authorization": f"Bearer {KEY}",
        "anthropic-version": "2023-06-01",
        "Content-Length": str(len(content)),
        "Connection": "close",
    } | extra
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return exchange(provider, f"POST {PATHS[api]} HTTP/1.1\r\n{head}\r\n".encode() + content)


def exchange(provider: Provider, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", provider.port)) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def chunks_of(answer: bytes) -> tuple[list[bytes], bool]:
    """The transfer chunks of a chunked answer, and whether the last one was there (RFC 9112, 7.1)."""
    _, _, rest = answer.partition(b"\r\n\r\n")
    chunks: list[bytes] = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            assert rest == b"\r\n"
            return chunks, True
        chunks.append(rest[:length])
        assert rest[length : length + 2] == b"\r\n"
        rest = rest[length + 2 :]
    return chunks, False


def events_of(body: bytes) -> list[bytes]:
    return [part + b"\n\n" for part in body.split(b"\n\n")[:-1]]


@pytest.mark.parametrize("api", PATHS)
def test_transfer_chunks_end_exactly_where_the_script_says(api: str) -> None:
    def chunks(pieces: str, **more: Any) -> list[bytes]:
        with Provider(lambda ask: Say(TEXT, CALLS, pieces=pieces, **more)) as provider:
            found, ended = chunks_of(post(provider, api))
            assert ended
            return found

    [body] = chunks("whole")
    events = events_of(body)
    assert b"".join(events) == body
    assert TEXT.split()[1].encode() in body
    assert chunks("events") == events
    assert chunks("bytes:10") == [body[at : at + 10] for at in range(0, len(body), 10)]

    awkward = chunks("awkward")
    assert b"".join(awkward) == body
    assert any(chunk.endswith((b"\nda", b"}\n\nda")) or chunk == b"da" for chunk in awkward), "none within `data:`"
    assert any(not decodes(chunk) for chunk in awkward), "none within a character"
    assert any(b"\n\n" in chunk[:-2] for chunk in awkward), "none with the end of one event and the start of the next"

    packed = chunks("events", encoding="gzip")
    unpacker = zlib.decompressobj(wbits=31)
    assert [unpacker.decompress(chunk) for chunk in packed] == events
    assert gzip.decompress(b"".join(chunks("bytes:5", encoding="gzip"))) == body
    assert zlib.decompress(b"".join(chunks("awkward", encoding="deflate"))) == body


def decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("count", [0, 3])
def test_an_abort_comes_after_exactly_that_many_chunks(count: int) -> None:
    with Provider(lambda ask: Say(TEXT, abort_after=count)) as provider:
        chunks, ended = chunks_of(post(provider, "openai.chat"))
    assert (len(chunks), ended) == (count, False)


def test_the_same_requests_get_the_same_bytes_in_any_provider_and_ids_never_repeat() -> None:
    bodies = [
        {**BODY, "input": text, "messages": [{"role": "user", "content": text}]} for text in ("one", "two", "two")
    ]

    def run(order: list[int]) -> dict[int, bytes]:
        with Provider(lambda ask: Say(TEXT, CALLS)) as provider:
            return {n: b"".join(chunks_of(post(provider, "openai.chat", bodies[n]))[0]) for n in order}

    one, other = run([0, 1, 2]), run([1, 0, 2])
    assert one == other
    ids = [set(re.findall(rb'"id":"([^"]+)"', body)) for body in one.values()]
    assert all(len(found) == 3 for found in ids)
    assert not ids[0] & ids[1] and not ids[1] & ids[2], "an identical request is a new call"


def test_raw_replies_go_out_as_they_stand() -> None:
    headers = [("X-One", "1"), ("x-two", "2"), ("X-One", "3")]
    with Provider(lambda ask: Raw(418, headers, [b"ab", b"c"])) as provider:
        answer = post(provider, "openai.responses")
    assert answer.startswith(b"HTTP/1.1 418 I'm a Teapot\r\nX-One: 1\r\nx-two: 2\r\nX-One: 3\r\n")
    assert chunks_of(answer) == ([b"ab", b"c"], True)


def test_headers_look_like_the_platforms_own() -> None:
    with Provider() as provider:
        openai_head, _, _ = post(provider, "openai.chat").partition(b"\r\n\r\n")
        anthropic_head, _, _ = post(provider, "anthropic.messages").partition(b"\r\n\r\n")
    assert b"Content-Type: text/event-stream; charset=utf-8\r\n" in openai_head
    assert b"x-request-id: req_000000000000\r\n" in openai_head
    assert b"Set-Cookie: __cf_bm=" in openai_head
    assert b"request-id: req_000000000001" in anthropic_head
    assert b"Set-Cookie" not in anthropic_head


@pytest.mark.parametrize(
    ("api", "change", "status", "words"),
    [
        ("openai.chat", {"Authorization": ""}, 401, "API key"),
        ("openai.responses", {"Authorization": "Bearer "}, 401, "API key"),
        ("anthropic.messages", {"Authorization": ""}, 401, "x-api-key header is required"),
        ("anthropic.messages", {"anthropic-version": ""}, 400, "anthropic-version"),
        ("openai.chat", {"Upgrade": "websocket", "Connection": "Upgrade"}, 426, "WebSocket"),
    ],
)
def test_calls_without_credentials_or_by_websocket_are_refused(
    api: str, change: dict[str, str], status: int, words: str
) -> None:
    with Provider() as provider:
        head, _, body = post(provider, api, **change).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    error = json.loads(body)["error"]
    assert words in error["message"]
    assert ("code" in error) == api.startswith("openai")


@pytest.mark.parametrize(
    ("api", "body", "words"),
    [
        ("openai.chat", {"messages": ASKED}, "model"),
        ("openai.chat", {"model": "m", "messages": ["text"]}, "messages"),
        ("openai.responses", {"model": "m"}, "input"),
        ("anthropic.messages", {"model": "m", "messages": ASKED}, "max_tokens"),
        ("anthropic.messages", ["no object"], "JSON object"),
    ],
)
def test_malformed_calls_are_refused_and_never_reach_the_script(api: str, body: Any, words: str) -> None:
    with Provider(lambda ask: pytest.fail("asked")) as provider:
        answer = post(provider, api, body)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert words in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]


def test_models_are_listed_tokens_counted_and_other_paths_are_not_found() -> None:
    with Provider() as provider, client_for(chat, provider) as gpt, client_for(messages, provider) as claude:
        assert [model.id for model in gpt.models.list()] == ["gpt-4.1", "gpt-4.1-mini"]
        assert claude.models.retrieve("claude-haiku-5-5").type == "model"
        assert claude.messages.count_tokens(model="m", messages=ASKED).input_tokens > 0
        with pytest.raises(openai.NotFoundError):
            gpt.files.list()
        with pytest.raises(anthropic.NotFoundError) as missing:
            claude.models.retrieve("other")
        assert missing.value.body["error"]["type"] == "not_found_error"


def test_connections_are_kept_counted_and_requests_seen_byte_for_byte() -> None:
    with Provider() as provider:
        with client_for(chat, provider) as client:
            chat(client)
            chat(client)
        raw = post(provider, "openai.chat", **{"X-Odd-CASE": "kept"})
        assert raw.startswith(b"HTTP/1.1 200 OK\r\n")
        assert [request.connection for request in provider.requests] == [0, 0, 1]
        assert provider.connections == 2
        last = provider.requests[-1]
        assert (last.method, last.path, last.json) == ("POST", "/v1/chat/completions", BODY)
        assert last.body == json.dumps(BODY).encode()
        assert last.headers[-1] == ("X-Odd-CASE", "kept")


def test_expect_continue_and_a_very_large_body() -> None:
    text = "x" * 100_000_000
    content = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Length: {len(content)}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    with (
        Provider(lambda ask: Say(str(len(ask.last_user)))) as provider,
        socket.create_connection(("127.0.0.1", provider.port), timeout=60) as connection,
    ):
        connection.sendall(head.encode())
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 100 ")
        connection.sendall(content)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["choices"][0]["message"]["content"] == "100000000"
