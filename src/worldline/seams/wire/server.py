"""The proxy's server side: HTTP/1.1 for the agent, with every transfer chunk written exactly as it is handed in.

h11 reads; heads and chunks are written here, because h11 would move and rename headers. One task per connection takes
its requests one after the other; a handler answers each through a `Reply`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import weakref
from collections.abc import Awaitable, Callable

import h11
import msgspec

from worldline.errors import PortInUse, UsageError, WorldlineError
from worldline.seams.wire.connection import Connection, let_go
from worldline.seams.wire.http import ClientGone, RequestHead, header, header_tokens
from worldline.seams.wire.reply import Reply

__all__ = ["BODY_MAX", "HEAD_MAX", "Handler", "Reply", "Request", "Server", "error_body"]

BODY_MAX = 256 * 1024 * 1024
"""Bytes of a request body, by default."""

HEAD_MAX = 64 * 1024
"""Bytes of a request head, by default."""

_FAREWELL_SECONDS = 2.0


class Request(msgspec.Struct, frozen=True):
    """A request whose body was read to its end (chunked ones too). `peer` is the client's `host:port`."""

    head: RequestHead
    body: bytes
    peer: str
    http_version: str = "1.1"

    @property
    def upgrade(self) -> str | None:
        """The lower-case protocol that the client wants to switch to, such as `websocket`, or None."""
        if "upgrade" not in header_tokens(self.head.headers, "connection"):
            return None
        wanted = header(self.head.headers, "upgrade")
        return wanted.strip().lower() if wanted else None

    @property
    def keep_alive(self) -> bool:
        """Whether the client lets the connection stand after the answer. HTTP/1.0 clients get one answer each."""
        return self.http_version >= "1.1" and "close" not in header_tokens(self.head.headers, "connection")


Handler = Callable[[Request, Reply], Awaitable[None]]


class Server:
    """Listens on one port and gives each request to the handler.

    A request that is no HTTP or is too large is answered here, with a JSON line. A handler that raises `ClientGone`
    just ends; one that raises anything else, or returns without having answered, leaves the client a 500, or a broken
    body if the answer had begun, and the exception goes to the event loop's exception handler. `port` is the port
    listened on, which the system chose if `start` was given 0.
    """

    def __init__(self, *, body_max: int = BODY_MAX, head_max: int = HEAD_MAX) -> None:
        self._body_max = body_max
        self._head_max = head_max
        self._closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._handler: Handler
        self.port = 0

    async def start(self, host: str, port: int, handler: Handler) -> None:
        """Begins to listen. Raises PortInUse; UsageError if the address cannot be listened on for another reason."""
        self._handler = handler
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(lambda: Connection(self._accept), host, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                message = f"port {port} on {host} is in use: name another, or 0 to let the system choose"
                raise PortInUse(message, host=host, port=port) from error
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        self.port = self._listener.sockets[0].getsockname()[1]
        _open_servers.add(self)

    async def close(self, drain_seconds: float = 5.0) -> None:
        """Stops accepting, lets running handlers finish for up to `drain_seconds`, then cancels and awaits them."""
        self._closing = True
        if self._listener is not None:
            self._listener.close()
        for task in self._tasks - self._busy:
            task.cancel()
        if self._busy:
            await asyncio.wait(set(self._busy), timeout=drain_seconds)
        remaining = set(self._tasks)
        for task in remaining:
            task.cancel()
        if remaining:
            await asyncio.wait(remaining)
        if self._listener is not None:
            await self._listener.wait_closed()

    def leave_in_child(self) -> None:
        """A forked child answers nobody: who connects once its parent has closed must be refused, not kept waiting."""
        for sock in self._listener.sockets if self._listener is not None else ():
            let_go(sock)

    def _accept(self, connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(self._converse(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, connection: Connection) -> None:
        task = asyncio.current_task()
        assert task is not None
        incoming = _Incoming(connection, body_max=self._body_max, head_max=self._head_max)
        try:
            while not self._closing and (request := await incoming.request()) is not None:
                self._busy.add(task)
                try:
                    if not await self._answer(request, connection):
                        break
                finally:
                    self._busy.discard(task)
        except _Refused as refusal:
            await _say_farewell(connection, refusal)
        except OSError:
            # The client's reset between two requests; nobody is left to be told.
            connection.discard()
        finally:
            connection.close()

    async def _answer(self, request: Request, connection: Connection) -> bool:
        """Runs the handler; True if the connection can take another request."""
        reply = Reply(
            connection,
            method=request.head.method,
            chunks_known=request.http_version >= "1.1",
            keep_alive=request.keep_alive and not self._closing,
        )
        try:
            await self._handler(request, reply)
            if not reply.ended:
                raise RuntimeError(f"{request.head.method} {request.head.target} was left without a whole answer")
        except ClientGone:
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is owed an answer; _fail reports it
            await _fail(reply, error)
            return False
        finally:
            if not reply.ended:
                reply.abort()
        return reply.keep_alive


class _Refused(Exception):
    """A request that gets no handler: `status` and message go to the client, then the connection ends."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Incoming:
    """The requests of one connection, in order."""

    def __init__(self, connection: Connection, *, body_max: int, head_max: int) -> None:
        self._connection = connection
        self._body_max = body_max
        self._head_max = head_max
        self._unparsed = b""

    async def request(self) -> Request | None:
        """The next request, whole; None at the regular end of the connection. Raises _Refused; OSError."""
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=self._head_max)
        if self._unparsed:
            parser.receive_data(self._unparsed)
        start = await self._event(parser)
        if not isinstance(start, h11.Request):
            return None
        declared = header([(n.decode("latin-1"), v.decode("latin-1")) for n, v in start.headers], "content-length")
        self._check_size(int(declared or 0))
        body = bytearray()
        while isinstance(event := await self._event(parser), h11.Data):
            body += event.data
            self._check_size(len(body))
        self._unparsed = parser.trailing_data[0]
        pairs = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in start.headers.raw_items())
        head = RequestHead(start.method.decode("ascii"), start.target.decode("ascii"), pairs)
        return Request(head, bytes(body), self._connection.peer, start.http_version.decode("ascii"))

    async def _event(self, parser: h11.Connection) -> h11.Event:
        while True:
            try:
                event = parser.next_event()
            except h11.RemoteProtocolError as error:
                raise _Refused(error.error_status_hint, f"not an HTTP/1.1 request: {error}") from error
            if isinstance(event, h11.Event):
                return event
            if parser.they_are_waiting_for_100_continue:
                go_on = parser.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
                self._connection.write(go_on or b"")
            parser.receive_data(await self._connection.read())

    def _check_size(self, size: int) -> None:
        if size > self._body_max:
            raise _Refused(413, f"request body of {size} bytes or more, the limit is {self._body_max}")


async def _say_farewell(connection: Connection, refusal: _Refused) -> None:
    """Answers what cannot be handled, then waits briefly for the client's end: closing on unread bytes resets it."""
    reply = Reply(connection, method="", chunks_known=False, keep_alive=False)
    try:
        await reply.json(refusal.status, error_body("bad-request", str(refusal)))
        connection.write_eof()
        async with asyncio.timeout(_FAREWELL_SECONDS):
            while await connection.read():
                pass
    except (ClientGone, TimeoutError, OSError):
        # The client has left, or does not leave: in both cases nothing is owed to it any more.
        connection.discard()


async def _fail(reply: Reply, error: Exception) -> None:
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "a handler of the HTTP server failed", "exception": error})
    if reply.started:
        return
    kind = error.kind if isinstance(error, WorldlineError) else "internal-error"
    message = str(error) if isinstance(error, WorldlineError) else f"{type(error).__name__} in the handler"
    try:
        await reply.json(500, error_body(kind, message))
    except ClientGone:
        # The failure was reported above; the client it is owed to has left.
        reply.abort()


def error_body(kind: str, message: str) -> dict[str, dict[str, str]]:
    """The JSON object of an error answer, in the shape whose message the providers' SDKs show to their user."""
    return {"error": {"type": kind, "message": message}}


_open_servers: weakref.WeakSet[Server] = weakref.WeakSet()


def _leave_in_child() -> None:
    for server in list(_open_servers):
        server.leave_in_child()


os.register_at_fork(after_in_child=_leave_in_child)
