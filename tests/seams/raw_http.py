"""Both ends of a wire under test, as plain sockets that show every byte: a scripted upstream, a raw client, a relay."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from worldline.seams.wire.http import ResponseHead, UpstreamError, strip_hop_by_hop
from worldline.seams.wire.server import Handler, Reply, Request, Server
from worldline.seams.wire.upstream import Upstream

Script = Callable[["Raw"], Awaitable[None]]


class Raw:
    """One end of a connection. `take_*` read what the other side wrote, at the grain of the wire."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *segments: bytes) -> None:
        """Each segment in a write of its own, with time for the other side (same loop) to read it alone."""
        for segment in segments:
            self.writer.write(segment)
            await self.writer.drain()
            for _ in range(4):
                await asyncio.sleep(0)

    async def take_head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def take_request(self) -> tuple[bytes, bytes]:
        head = await self.take_head()
        return head, await self.reader.readexactly(length_of(head))

    async def take_chunk(self) -> bytes:
        """The next transfer chunk; b"" is the terminator."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size + 2)
        assert data.endswith(b"\r\n")
        return data[:-2]

    async def take_chunks(self) -> list[bytes]:
        chunks = []
        while chunk := await self.take_chunk():
            chunks.append(chunk)
        return chunks

    async def take_answer(self) -> tuple[bytes, bytes]:
        head = await self.take_head()
        return head, await self.reader.readexactly(length_of(head))

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def length_of(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def chunked(*chunks: bytes, end: bool = True) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks) + (b"0\r\n\r\n" if end else b"")


CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Listening:
    """A scripted upstream: `script` runs once per connection; a failure in it fails the test on leaving."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connections = 0
        self.url = f"http://127.0.0.1:{port}"


@asynccontextmanager
async def raw_upstream(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Listening]:
    failures: list[BaseException] = []
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listening.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await script(Raw(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the other side left, or the test is over
        except Exception as error:  # noqa: BLE001 - raised again when the test leaves
            failures.append(error)
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    listening = Listening(server.sockets[0].getsockname()[1])
    try:
        yield listening
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if failures:
        raise failures[0]


@asynccontextmanager
async def serving(handler: Handler, **limits: int) -> AsyncIterator[Server]:
    """A running server. A handler that fails fails the test."""
    loop = asyncio.get_running_loop()
    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: reports.append(context))
    server = Server(**limits)
    await server.start("127.0.0.1", 0, handler)
    try:
        yield server
    finally:
        await server.close(drain_seconds=0)
        loop.set_exception_handler(None)
    if reports:
        raise AssertionError(reports)


@asynccontextmanager
async def upstream_at(url: str, **options: Any) -> AsyncIterator[Upstream]:
    upstream = Upstream(url, **options)
    try:
        yield upstream
    finally:
        await upstream.close()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    try:
        yield Raw(reader, writer)
    finally:
        writer.close()


def relay_to(upstream: Upstream) -> Handler:
    """The smallest proxy: everything is passed on; a broken upstream breaks the answer."""

    async def relay(request: Request, reply: Reply) -> None:
        try:
            answer = await upstream.send(request.head.method, request.head.target, request.head.headers, request.body)
            head = answer.head
            kept = strip_hop_by_hop(head.headers)
            await reply.start(ResponseHead(head.status, head.reason, kept, head.framing, head.length))
            async for piece in answer.pieces():
                await reply.piece(piece.data)
            await reply.end()
        except UpstreamError:
            reply.abort()

    return relay


@asynccontextmanager
async def relayed(script: Script) -> AsyncIterator[tuple[Raw, Upstream, Listening]]:
    """A raw client, connected through server and upstream to a scripted upstream."""
    async with (
        raw_upstream(script) as listening,
        upstream_at(listening.url) as upstream,
        serving(relay_to(upstream)) as server,
        connected(server.port) as client,
    ):
        yield client, upstream, listening
