"""HTTP/1.1 on one loopback port: h11 reads and frames, asyncio moves the bytes.

Every piece of an answer leaves as one write and, when chunked, as exactly one transfer chunk; the next waits until the
kernel has taken it.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import h11

from worldline.testing.provider.routes import Answer, Request

HOST = "127.0.0.1"
_READ = 1 << 18
_HEAD_LIMIT = 1 << 18
_BODILESS = (204, 304)
_BACKLOG = 128
_ACCEPT_PAUSE = 0.05


class Server:
    """A listener and its connections. `connections` counts the accepted ones, also those that never sent a byte.

    It accepts by itself: `asyncio.start_server` loses a connection that comes while it is being closed, and the client
    would wait for ever.
    """

    def __init__(self, respond: Callable[[Request], Awaitable[Answer]]) -> None:
        self.connections = 0
        self._respond = respond
        self._open: dict[socket.socket, asyncio.StreamWriter | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: socket.socket | None = None

    def start(self, port: int) -> int:
        """Listen on `port`, or on a free one for 0, in the running loop; gives the port.

        Raises `OSError` when the port is taken and `OverflowError` when there is none of that number.
        """
        self._listener = socket.create_server((HOST, port), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._listen(self._listener)
        bound: int = self._listener.getsockname()[1]
        return bound

    def cut(self) -> None:
        """Stop listening and cut every connection, mid-answer or not. `closed` must follow."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for writer in self._open.values():
            if writer is not None:
                writer.transport.abort()

    async def closed(self) -> None:
        """Wait until nothing is served any more and close what was accepted but not yet served."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in self._open:
            connection.close()

    def _listen(self, listener: socket.socket) -> None:
        if self._listener is listener:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            # The client was gone again before its turn.
            return
        except OSError:
            # Out of descriptors: the listener stays readable, so leave it alone until some may be free.
            loop.remove_reader(listener)
            loop.call_later(_ACCEPT_PAUSE, self._listen, listener)
            return
        connection.setblocking(False)
        # As real servers do: else each small event waits for the client's delayed acknowledgement (40 ms).
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open[connection] = None
        task = loop.create_task(self._converse(connection, self.connections))
        self.connections += 1
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, connection: socket.socket, number: int) -> None:
        try:
            # The client may hang up at any moment, as SDKs do at the end of a stream, and `cut` may.
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(sock=connection)
                self._open[connection] = writer
                # No user-space buffer: `drain` returns when the kernel has the bytes, so an abort cuts where asked.
                writer.transport.set_write_buffer_limits(high=0)
                try:
                    await _Connection(reader, writer, number, self._respond).converse()
                finally:
                    writer.close()
        finally:
            self._open.pop(connection, None)


class _Connection:
    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        number: int,
        respond: Callable[[Request], Awaitable[Answer]],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._number = number
        self._respond = respond
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_LIMIT)

    async def converse(self) -> None:
        """Request after request, until either side ends the connection."""
        while True:
            try:
                request = await self._read()
            except h11.RemoteProtocolError as error:
                await self._refuse(error)
                return
            if request is None:
                return
            answer = await self._respond(request)
            await self._send(answer, head_only=request.method == "HEAD" or answer.status in _BODILESS)
            if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
                return
            self._h11.start_next_cycle()

    async def _read(self) -> Request | None:
        head: h11.Request | None = None
        body = bytearray()
        async for event in self._events():
            if isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = [
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.raw_items()
                ]
                return Request(head.method.decode(), head.target.decode(), headers, bytes(body), self._number)
        return None

    async def _events(self) -> AsyncIterator[h11.Event]:
        while True:
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                if self._h11.they_are_waiting_for_100_continue:
                    await self._write(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])))
                self._h11.receive_data(await self._reader.read(_READ))
            elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
                return
            else:
                assert not isinstance(event, type)
                yield event

    async def _send(self, answer: Answer, *, head_only: bool) -> None:
        delivery = answer.delivery
        if delivery.first_delay:
            await asyncio.sleep(delivery.first_delay)
        if answer.framing == "close":
            await self._send_until_close(answer, head_only=head_only)
            return
        await self._write(self._h11.send(_head(answer)))
        for number, piece in enumerate([] if head_only else answer.pieces):
            if delivery.abort_after == number:
                break
            if number and delivery.delay:
                await asyncio.sleep(delivery.delay)
            await self._write(self._h11.send(h11.Data(data=piece)))
        if _aborts(answer):
            self._writer.transport.abort()
            return
        await self._write(self._h11.send(h11.EndOfMessage()))

    async def _send_until_close(self, answer: Answer, *, head_only: bool) -> None:
        # By hand: h11 always frames what it sends to an HTTP/1.1 peer.
        lines = [f"HTTP/1.1 {answer.status} {_reason(answer.status)}"]
        lines += [f"{name}: {value}" for name, value in [*answer.headers, ("Connection", "close")]]
        await self._write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        for number, piece in enumerate([] if head_only else answer.pieces):
            if answer.delivery.abort_after == number:
                break
            if number and answer.delivery.delay:
                await asyncio.sleep(answer.delivery.delay)
            await self._write(piece)
        if _aborts(answer):
            self._reset()

    def _reset(self) -> None:
        # Where the end of the connection ends the body, only a reset tells an abort from a proper end.
        connection = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._h11.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = f"{error}\n".encode()
        headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), ("Connection", "close")]
        await self._write(self._h11.send(h11.Response(status_code=error.error_status_hint, headers=headers)))
        await self._write(self._h11.send(h11.Data(data=body)))
        await self._write(self._h11.send(h11.EndOfMessage()))

    async def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            await self._writer.drain()


def _head(answer: Answer) -> h11.Response:
    framing = (
        ("Content-Length", str(sum(map(len, answer.pieces))))
        if answer.framing == "length"
        else ("Transfer-Encoding", "chunked")
    )
    headers = answer.headers if answer.status in _BODILESS else [*answer.headers, framing]
    return h11.Response(status_code=answer.status, headers=headers, reason=_reason(answer.status).encode())


def _aborts(answer: Answer) -> bool:
    cut = answer.delivery.abort_after
    return cut is not None and cut <= len(answer.pieces)


def _reason(status: int) -> str:
    return http.HTTPStatus(status).phrase if status in http.HTTPStatus.__members__.values() else ""
