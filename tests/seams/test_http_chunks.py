"""Promises about the body on its way through: each chunk keeps its borders, at once; a break stays a break."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.seams.raw_http import (
    CHUNKED_HEAD,
    Raw,
    chunked,
    connected,
    raw_upstream,
    relay_to,
    relayed,
    serving,
    upstream_at,
)
from worldline.seams.wire.http import ClientGone, Piece, ResponseHead, UpstreamError
from worldline.seams.wire.server import Reply, Request
from worldline.seams.wire.upstream import HELD_MAX

ASK = b"GET /stream HTTP/1.1\r\nHost: agent\r\n\r\n"

bodies = st.lists(st.binary(min_size=1, max_size=300) | st.integers(1, 70_000).map(lambda n: b"x" * n), max_size=12)


def segments(data: bytes, cuts: list[float]) -> list[bytes]:
    places = sorted({0, len(data), *(int(cut * len(data)) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(places)]


@settings(max_examples=60, deadline=None)
@given(chunks=bodies, cuts=st.lists(st.floats(0, 1), max_size=20))
def test_client_sees_the_chunks_the_upstream_wrote_however_they_were_segmented(
    chunks: list[bytes], cuts: list[float]
) -> None:
    async def check() -> None:
        async def script(raw: Raw) -> None:
            await raw.take_head()
            await raw.send(*segments(CHUNKED_HEAD + chunked(*chunks), cuts))
            await raw.reader.read()

        async with relayed(script) as (client, _, _):
            await client.send(ASK)
            assert b"transfer-encoding: chunked" in (await client.take_head()).lower()
            assert await client.take_chunks() == chunks

    asyncio.run(check())


async def test_border_inside_a_code_point_and_one_byte_segments() -> None:
    euro = "data: 5 €\n\n".encode()
    chunks = [euro[:9], euro[9:], b"\r\n", b"0\r\n\r\n", b"\x1f\x8b\x08not really gzip"]

    async def script(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(*(bytes([b]) for b in CHUNKED_HEAD + chunked(*chunks)))
        await raw.reader.read()

    async with relayed(script) as (client, _, _):
        await client.send(ASK)
        await client.take_head()
        assert await client.take_chunks() == chunks


async def test_a_complete_chunk_is_handed_on_before_anything_else_comes() -> None:
    confirmed = asyncio.Event()

    async def script(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(CHUNKED_HEAD, b"5\r\nfirst")  # not even the chunk's line end has come
        await confirmed.wait()
        await raw.send(b"\r\n" + chunked(b"second"))
        await raw.reader.read()

    async with raw_upstream(script) as listening, upstream_at(listening.url) as upstream:
        answer = await upstream.send("GET", "/", (), b"")
        pieces = answer.pieces()
        assert await anext(pieces) == Piece(b"first", True)
        confirmed.set()
        assert [piece async for piece in pieces] == [Piece(b"second", True)]


async def test_each_read_of_a_length_body_is_handed_on_at_once() -> None:
    confirmed = asyncio.Event()

    async def script(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nfirst")
        await confirmed.wait()
        await raw.send(b"second")
        await raw.reader.read()

    async with relayed(script) as (client, _, _):
        await client.send(ASK)
        assert b"Content-Length: 11\r\n" in await client.take_head()
        assert await client.reader.readexactly(5) == b"first"
        confirmed.set()
        assert await client.reader.readexactly(6) == b"second"


async def test_a_chunk_too_long_to_hold_comes_in_parts_that_say_so() -> None:
    long = bytes(range(256)) * (5 * HELD_MAX // 512)

    async def script(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(CHUNKED_HEAD + chunked(b"short", long, b"x" * HELD_MAX, b"after"))
        await raw.reader.read()

    async with raw_upstream(script) as listening, upstream_at(listening.url) as upstream:
        answer = await upstream.send("GET", "/", (), b"")
        pieces = [piece async for piece in answer.pieces()]
    assert pieces[0] == Piece(b"short", True)
    assert pieces[-2:] == [Piece(b"x" * HELD_MAX, True), Piece(b"after", True)]
    assert b"".join(p.data for p in pieces[1:-2]) == long
    assert [p.ends_chunk for p in pieces[1:-2]] == [False] * (len(pieces) - 4) + [True]
    assert len(pieces) > 4


@pytest.mark.parametrize("reset", [False, True])
async def test_an_upstream_that_dies_in_mid_chunk_breaks_the_clients_body_after_all_that_came(reset: bool) -> None:
    arrived = asyncio.Event()

    async def script(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(CHUNKED_HEAD + chunked(b"whole", end=False), b"ff\r\nhal", b"f")
        await arrived.wait()
        raw.reset() if reset else raw.close()

    async with relayed(script) as (client, _, _):
        await client.send(ASK)
        await client.take_head()
        assert await client.take_chunk() == b"whole"
        arrived.set()
        assert await client.take_chunk() == b"half"
        assert await client.reader.read() == b""  # no terminator


async def test_what_came_before_a_reset_is_not_lost_to_a_reader_that_was_busy() -> None:
    head_came, reset = asyncio.Event(), asyncio.Event()

    async def script(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(CHUNKED_HEAD)
        await head_came.wait()
        await raw.send(chunked(b"one", b"two", end=False))
        raw.reset()
        reset.set()

    async with raw_upstream(script) as listening, upstream_at(listening.url) as upstream:
        answer = await upstream.send("GET", "/", (), b"")
        head_came.set()
        await reset.wait()
        await asyncio.sleep(0.05)
        pieces = answer.pieces()
        assert [await anext(pieces), await anext(pieces)] == [Piece(b"one", True), Piece(b"two", True)]
        with pytest.raises(UpstreamError):
            await anext(pieces)


async def test_an_upstream_that_dies_short_of_its_length_is_broken_after_what_came() -> None:
    async def script(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nsix by")

    async with relayed(script) as (client, upstream, _):
        await client.send(ASK)
        await client.take_head()
        assert await client.reader.read() == b"six by"
        answer = await upstream.send("GET", "/", (), b"")
        pieces, got = answer.pieces(), b""
        with pytest.raises(UpstreamError, match="in the middle") as caught:
            async for piece in pieces:
                got += piece.data
        assert (got, caught.value.kind) == (b"six by", "broken")


async def test_a_body_without_framing_ends_with_the_connection_and_a_reset_is_no_end() -> None:
    arrived = asyncio.Event()

    async def script(raw: Raw) -> None:
        head = await raw.take_head()
        await raw.send(b"HTTP/1.1 200 OK\r\nX-Kind: close\r\n\r\n", b"until ", b"the end")
        if b"GET /reset" in head:
            await arrived.wait()
            raw.reset()

    async with relayed(script) as (client, upstream, _):
        await client.send(ASK)
        assert b"\r\nConnection: close\r\n" in await client.take_head()
        assert await client.reader.read() == b"until the end"
        async with serving(relay_to(upstream)) as server, connected(server.port) as other:
            await other.send(ASK.replace(b"/stream", b"/reset"))
            await other.take_head()
            assert await other.reader.readexactly(13) == b"until the end"
            arrived.set()
            with pytest.raises(ConnectionResetError):
                await other.reader.read()


async def test_a_client_that_hangs_up_is_seen_while_nothing_is_written_and_the_upstream_can_be_drained() -> None:
    gone_seen = asyncio.Event()
    drained: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()

    async def script(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(CHUNKED_HEAD + chunked(b"one", end=False))
        await gone_seen.wait()  # the upstream is silent while the client leaves
        await raw.send(chunked(b"two", b"three"))
        await raw.reader.read()

    async with raw_upstream(script) as listening, upstream_at(listening.url) as upstream:

        async def handler(request: Request, reply: Reply) -> None:
            answer = await upstream.send("GET", "/", (), b"")
            await reply.start(answer.head)
            pieces = answer.pieces()
            got = [(await anext(pieces)).data]
            await reply.piece(got[0])
            await reply.gone.wait()
            gone_seen.set()
            async for piece in pieces:
                got.append(piece.data)
                with pytest.raises(ClientGone):
                    await reply.piece(piece.data)
            drained.set_result(got)
            await reply.end()

        async with serving(handler) as server:
            async with connected(server.port) as client:
                await client.send(ASK)
                await client.take_head()
                assert await client.take_chunk() == b"one"
            assert await drained == [b"one", b"two", b"three"]


async def test_a_slow_client_holds_the_handler_back() -> None:
    done = asyncio.Event()
    total = 96 * 1024 * 1024

    async def handler(request: Request, reply: Reply) -> None:
        await reply.start(ResponseHead(200, "OK", (), "length", total))
        for _ in range(total // 65536):
            await reply.piece(b"x" * 65536)
        await reply.end()
        done.set()

    async with serving(handler) as server, connected(server.port) as client:
        await client.send(ASK)
        await client.take_head()
        await asyncio.sleep(0.2)
        assert not done.is_set()
        left = total
        while left:
            left -= len(await client.reader.read(2**20))
        await done.wait()
