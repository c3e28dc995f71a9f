"""Promises of the server side: heads as given, many requests on one connection, bad clients, a bounded end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.seams.raw_http import Raw, connected, serving
from worldline.errors import PortInUse
from worldline.seams.wire.http import ClientGone, NotSendable, ResponseHead
from worldline.seams.wire.server import Reply, Request, Server


async def echo(request: Request, reply: Reply) -> None:
    """Answers with what was seen of the request."""
    head = request.head
    await reply.json(200, [head.method, head.target, head.headers, request.body.decode("latin-1"), request.upgrade])


async def ask(client: Raw, request: bytes) -> Any:
    await client.send(request)
    head, body = await client.take_answer()
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    return json.loads(body)


async def test_a_request_is_seen_as_it_was_sent_one_after_the_other_on_one_connection() -> None:
    async with serving(echo) as server, connected(server.port) as client:
        headers = b"X-B: 1\r\nhOST: a\r\nx-a: \xe9\r\nX-B: 2\r\nCoNtEnT-LeNgTh: 3\r\n\r\n"
        seen = [["X-B", "1"], ["hOST", "a"], ["x-a", "é"], ["X-B", "2"], ["CoNtEnT-LeNgTh", "3"]]
        first = await ask(client, b"POST /v1/%C3%A9?q=a%20b&c HTTP/1.1\r\n" + headers + b"abc")
        assert first == ["POST", "/v1/%C3%A9?q=a%20b&c", seen, "abc", None]
        te = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert (await ask(client, te + b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"))[3] == "abcd"
        await client.send(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        for path in ("/1", "/2"):  # pipelined
            head, body = await client.take_answer()
            assert json.loads(body)[1] == path
            assert (b"Connection: close" in head) == (path == "/2")
        assert await client.reader.read() == b""


async def test_a_heads_bytes_are_those_given() -> None:
    headers = (
        ("x-Last", "z"),
        ("DATE", "now"),
        ("set-cookie", "b=2"),
        ("Set-Cookie", "a=1"),
        ("transfer-encoding", "chunked"),
    )

    async def handler(request: Request, reply: Reply) -> None:
        await reply.start(ResponseHead(418, "Ich bin é", headers, "chunked"))
        await reply.end()

    async with serving(handler) as server, connected(server.port) as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        lines = ["HTTP/1.1 418 Ich bin é", *(f"{name}: {value}" for name, value in headers)]
        assert await client.take_head() == "\r\n".join([*lines, "", ""]).encode("latin-1")
        assert await client.take_chunks() == []


async def test_framing_headers_never_contradict_the_framing() -> None:
    given_headers = (("Content-Length", "99"), ("Connection", "keep-alive"), ("Transfer-Encoding", "chunked"))
    heads = {
        "/chunked": ResponseHead(200, "", given_headers, "chunked"),
        "/length": ResponseHead(200, "", given_headers, "length", 2),
        "/close": ResponseHead(200, "", given_headers, "close"),
    }

    async def handler(request: Request, reply: Reply) -> None:
        await reply.start(heads[request.head.target])
        await reply.piece(b"ok")
        await reply.end()

    async def bytes_for(target: str, version: str = "1.1") -> tuple[bytes, bytes]:
        async with connected(server.port) as client:
            await client.send(f"GET {target} HTTP/{version}\r\nHost: a\r\n\r\n".encode())
            head = await client.take_head()
            return head, await client.reader.read() if b"close" in head else await client.reader.readexactly(2)

    async with serving(handler) as server:
        assert await bytes_for("/length") == (
            b"HTTP/1.1 200 \r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n",
            b"ok",
        )
        close = (b"HTTP/1.1 200 \r\nConnection: close\r\n\r\n", b"ok")
        assert await bytes_for("/close") == close
        assert await bytes_for("/chunked", "1.0") == close  # knows no chunks
        async with connected(server.port) as client:
            await client.send(b"GET /chunked HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"Content-Length" not in await client.take_head()
            assert await client.take_chunks() == [b"ok"]


async def test_answers_without_a_body_leave_the_connection_in_step() -> None:
    async def handler(request: Request, reply: Reply) -> None:
        status = int(request.head.target[1:])
        await reply.start(ResponseHead(status, "", (("ETag", "x"),), "chunked" if status == 200 else "none"))
        await reply.piece(b"never sent")
        await reply.end()

    async with serving(handler) as server, connected(server.port) as client:
        for method, status in (("HEAD", 200), ("GET", 204), ("GET", 304), ("GET", 204)):
            await client.send(f"{method} /{status} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert (await client.take_head()).startswith(f"HTTP/1.1 {status} ".encode())
        client.writer.write_eof()
        assert await client.reader.read() == b""


async def test_expect_100_continue_is_answered_before_the_body() -> None:
    async with serving(echo, body_max=10) as server:
        expecting = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        async with connected(server.port) as client:
            await client.send(expecting % 4)
            assert await client.take_head() == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert (await ask(client, b"body"))[3] == "body"
        async with connected(server.port) as client:
            await client.send(expecting % 11)
            assert (await client.take_head()).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16000000\r\n\r\n" + b"x" * 16_000_000, 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d000\r\n" + b"x" * 512_000, 413),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 300_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01", 400),
    ],
)
async def test_a_request_that_cannot_be_taken_gets_a_json_line_even_while_it_is_still_sending(
    request_bytes: bytes, status: int
) -> None:
    async with serving(echo, body_max=100_000) as server, connected(server.port) as client:
        await client.send(request_bytes)  # all of it: like most clients this one reads only afterwards
        head, body = await client.take_answer()
        assert head.startswith(b"HTTP/1.1 %d " % status)
        assert b"Connection: close" in head
        assert body.endswith(b"\n")
        assert json.loads(body)["error"]["type"] == "bad-request"


shards = (
    *(b"GET / HTTP/1.1", b"CONNECT a:1 HTTP/1.1", b"HTTP/9.9", b"Host: a", b"Content-Length: ", b"-1", b"9" * 21),
    *(
        b"Transfer-Encoding: chunked",
        b"Upgrade: x",
        b"Expect: 100-continue",
        b"zz",
        b"\xff",
        b"\r\n",
        b"\n",
        b"\0",
        b" ",
        b":",
    ),
)
heads = st.binary(max_size=400) | st.lists(st.sampled_from(shards), max_size=30).map(b"".join)


@settings(max_examples=100, deadline=None)
@given(garbage=heads, hang_up=st.booleans())
@example(garbage=b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\nzz", hang_up=False)
def test_no_bytes_kill_the_server(garbage: bytes, hang_up: bool) -> None:
    async def check() -> None:
        async with serving(echo) as server:
            async with connected(server.port) as client:
                await client.send(garbage)
                if hang_up:
                    client.reset()
                else:
                    client.writer.write_eof()
                    await client.reader.read()
            async with connected(server.port) as client:
                assert (await ask(client, b"GET /alive HTTP/1.1\r\nHost: a\r\n\r\n"))[1] == "/alive"

    asyncio.run(check())


async def test_a_websocket_upgrade_is_the_handlers_to_refuse() -> None:
    async with serving(echo) as server, connected(server.port) as client:
        upgrade = b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n"
        assert (await ask(client, upgrade))[4] == "websocket"
        assert (await ask(client, b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n"))[4] is None


async def test_a_failing_handler_is_reported_and_the_client_gets_a_500_or_a_broken_body() -> None:
    async def handler(request: Request, reply: Reply) -> None:
        if request.head.target == "/early":
            raise LookupError("no such thing")
        await reply.start(ResponseHead(200, "OK", (), "chunked"))
        await reply.piece(b"begun")
        if request.head.target == "/late":
            raise LookupError("no such thing")

    with pytest.raises(AssertionError) as reported:
        async with serving(handler) as server:
            async with connected(server.port) as client:
                await client.send(b"GET /early HTTP/1.1\r\nHost: a\r\n\r\n")
                head, body = await client.take_answer()
                assert head.startswith(b"HTTP/1.1 500 ")
                assert json.loads(body)["error"]["type"] == "internal-error"
            for target in (b"/late", b"/unfinished"):
                async with connected(server.port) as client:
                    await client.send(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % target)
                    await client.take_head()
                    assert await client.reader.read() == b"5\r\nbegun\r\n"
    assert [type(report["exception"]) for report in reported.value.args[0]] == [LookupError, LookupError, RuntimeError]


async def test_a_reply_cannot_be_made_to_say_something_else() -> None:
    async def handler(request: Request, reply: Reply) -> None:
        with pytest.raises(NotSendable):
            await reply.piece(b"before the head")
        for head in (
            ResponseHead(200, "OK", (("X", "1\r\nSet-Cookie: forged=1"),), "none"),
            ResponseHead(200, "OK", (("X y", "1"),), "none"),
            ResponseHead(200, "OK\nX: 1", (), "none"),
            ResponseHead(200, "OK", (("X", "€"),), "none"),
            ResponseHead(101, "", (), "none"),
            ResponseHead(200, "OK", (), "length"),
        ):
            with pytest.raises(NotSendable):
                await reply.start(head)
        await reply.start(ResponseHead(200, "OK", (), "length", 2))
        with pytest.raises(NotSendable):
            await reply.piece(b"too long")
        await reply.piece(b"o")
        with pytest.raises(NotSendable):
            await reply.end()
        await reply.piece(b"k")
        await reply.end()

    async with serving(handler) as server, connected(server.port) as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await client.take_answer() == (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"ok")


async def test_abort_before_the_head_closes_without_an_answer() -> None:
    async def handler(request: Request, reply: Reply) -> None:
        reply.abort()

    async with serving(handler) as server, connected(server.port) as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await client.reader.read() == b""


async def test_a_port_in_use_is_named() -> None:
    async with serving(echo) as server:
        with pytest.raises(PortInUse, match=str(server.port)) as caught:
            await Server().start("127.0.0.1", server.port, echo)
    assert caught.value.facts["port"] == server.port


async def test_close_lets_handlers_finish_then_cancels_and_ends_idle_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, ahead = asyncio.get_running_loop(), [0.0]
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + ahead[0])  # set forward once the time to drain is to be over
    entered, may_finish = asyncio.Queue[str](), asyncio.Event()
    ended: dict[str, str] = {}

    async def handler(request: Request, reply: Reply) -> None:
        target = request.head.target
        await entered.put(target)
        try:
            await may_finish.wait() if target == "/finishes" else await asyncio.Event().wait()
            await reply.json(200, "done")
            ended[target] = "answered"
        except asyncio.CancelledError:
            ended[target] = "cancelled"
            raise

    server = Server()
    await server.start("127.0.0.1", 0, handler)
    async with connected(server.port) as one, connected(server.port) as two, connected(server.port) as idle:
        await one.send(b"GET /finishes HTTP/1.1\r\nHost: a\r\n\r\n")
        await two.send(b"GET /hangs HTTP/1.1\r\nHost: a\r\n\r\n")
        assert {await entered.get(), await entered.get()} == {"/finishes", "/hangs"}
        port = server.port
        closing = asyncio.create_task(server.close(drain_seconds=300))
        assert await idle.reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        may_finish.set()
        assert (await one.take_answer())[1] == b'"done"\n'
        assert await one.reader.read() == b""
        assert not closing.done() and ended == {"/finishes": "answered"}
        ahead[0] = 300.0
        await closing
        assert await two.reader.read() == b""
    assert ended == {"/finishes": "answered", "/hangs": "cancelled"}


async def test_client_gone_after_a_length_body_was_whole_is_no_failure() -> None:
    outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handler(request: Request, reply: Reply) -> None:
        chunks = request.head.target == "/chunked"
        await reply.start(ResponseHead(200, "OK", (), "chunked" if chunks else "length", None if chunks else 2))
        await reply.piece(b"ok")
        await reply.gone.wait()
        try:
            await reply.end()
            outcome.set_result("whole")
        except ClientGone:
            outcome.set_result("gone")
            raise

    async with serving(handler) as server:
        for target, expected in ((b"/length", "whole"), (b"/chunked", "gone")):
            outcome = asyncio.get_running_loop().create_future()
            async with connected(server.port) as client:
                await client.send(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % target)
                await client.take_head()
            assert await outcome == expected
