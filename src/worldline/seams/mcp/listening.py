"""Streamable HTTP for clients: the proxy listens on a loopback port, and each client has its own conversation.

A client with a handshake has a session, named by the server or else here; all those without share one conversation, for
their requests lean on nothing that was said before. An answer goes out as JSON, or as a stream of events where anything
comes before it, or it takes a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Protocol
from urllib.parse import urlsplit

from worldline.engine import clock
from worldline.errors import WorldlineError
from worldline.seams.mcp import frames
from worldline.seams.mcp.conversation import Conversation
from worldline.seams.mcp.ends import Asked, Refusal
from worldline.seams.mcp.frames import Frame, NoMessage
from worldline.seams.mcp.http_server import LAST_EVENT, SESSION, HttpServer
from worldline.seams.mcp.sse import KEEP_ALIVE, Event
from worldline.seams.mcp.words import PROTOCOL
from worldline.seams.wire.http import ClientGone, Headers, ResponseHead, header
from worldline.seams.wire.server import Reply, Request, Server

HOST = "127.0.0.1"
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
KEEP_ALIVE_SECONDS = 5.0
HELD = 10_000  # messages that wait for a client to open its stream
STREAM: Headers = (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache, no-transform"))


class Opens(Protocol):
    """Opens the conversation of one client."""

    def __call__(self, general: Channel) -> Conversation:
        """`general` is where messages go that belong to no request."""


class Channel:
    """A client's own stream. What comes before it is open waits for it."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._reply: Reply | None = None
        self._one = asyncio.Lock()

    async def send(self, frame: Frame, event: str | None = None) -> None:
        """One event."""
        await self._write(Event(frames.one_line(frame.raw), event).encode())

    async def prime(self, event: str) -> None:
        """An event that has an id alone."""
        await self._write(Event(b"", event).encode())

    async def refuse(self, frame: Frame, refusal: Refusal) -> None:
        """Nothing is asked here."""

    async def carry(self, reply: Reply) -> None:
        """Open: from here on messages go to this reply, which the last one that was opened takes over."""
        await reply.start(_head(200, STREAM))
        async with self._one:
            self._reply, waiting, self._waiting = reply, self._waiting, []
            for data in waiting:
                await reply.piece(data)

    async def keep_alive(self) -> None:
        """A comment, so that nobody takes the stream for dead."""
        await self._write(KEEP_ALIVE, waits=False)

    def leave(self, reply: Reply) -> None:
        """The client has closed this one."""
        if self._reply is reply:
            self._reply = None

    async def _write(self, data: bytes, waits: bool = True) -> None:
        async with self._one:
            if self._reply is not None:
                try:
                    await self._reply.piece(data)
                    return
                except ClientGone:
                    self._reply = None
            if waits and len(self._waiting) < HELD:
                self._waiting.append(data)


class _Answering:
    """The answer to one posted request. An outlet."""

    def __init__(self, reply: Reply, asked: Frame, session: Callable[[Frame | None], str | None]) -> None:
        self._reply = reply
        self._asked = asked
        self._session = session
        self._one = asyncio.Lock()

    async def send(self, frame: Frame, event: str | None = None) -> None:
        """The answer alone as JSON; a message before it begins a stream."""
        async with self._one:
            is_answer = frame.is_response and frame.key == self._asked.key
            if self._reply.ended:
                raise ClientGone("it was answered already")
            if is_answer and not self._reply.started:
                head = _head(200, (("Content-Type", "application/json"), *self._named(frame)), len(frame.raw))
                await self._reply.start(head)
                await self._reply.piece(frame.raw)
                await self._reply.end()
                return
            await self._begun()
            await self._reply.piece(Event(frames.one_line(frame.raw), event).encode())
            if is_answer:
                await self._reply.end()

    async def prime(self, event: str) -> None:
        """Begin the stream with an id."""
        async with self._one:
            await self._begun()
            await self._reply.piece(Event(b"", event).encode())

    async def refuse(self, frame: Frame, refusal: Refusal) -> None:
        """The status, as it came; an error where the answer has begun already."""
        if self._reply.started:
            why = f"the server answered HTTP {refusal.status} {refusal.reason}".rstrip()
            await self.send(frames.error(frame.id, frames.SERVER_GONE, why))
            return
        await _refuse(self._reply, refusal)

    async def keep_alive(self) -> None:
        """Show the client that it is at work."""
        async with self._one:
            if not self._reply.ended:
                await self._begun()
                await self._reply.piece(KEEP_ALIVE)

    async def _begun(self) -> None:
        if not self._reply.started:
            await self._reply.start(_head(200, (*STREAM, *self._named())))

    def _named(self, answer: Frame | None = None) -> Headers:
        session = self._session(answer)
        return ((SESSION, session),) if session is not None else ()


class _Client:
    """A client with its conversation. `session` names it, where it has one."""

    def __init__(self, opens: Opens) -> None:
        self.channel = Channel()
        self.conversation = opens(self.channel)
        self.session: str | None = None


class Listening:
    """Serves clients on a port until it is closed."""

    def __init__(self, opens: Opens, most: int) -> None:
        self._opens = opens
        self._server = Server(body_max=most)
        self._clients: dict[str, _Client] = {}
        self._shared: asyncio.Future[_Client] | None = None
        self._all: list[_Client] = []

    async def start(self, port: int) -> int:
        """Begin; the port. Raises `PortInUse`."""
        await self._server.start(HOST, port, self._handle)
        return self._server.port

    @property
    def open_calls(self) -> int:
        """How many requests are with servers."""
        return sum(client.conversation.open_calls for client in self._all)

    async def close(self, grace: float) -> None:
        """Every client's conversation ends."""
        for client in self._all:
            await client.conversation.close(grace)
        await self._server.close(drain_seconds=grace)

    async def _handle(self, request: Request, reply: Reply) -> None:
        headers = request.head.headers
        origin = header(headers, "origin")
        if origin is not None and urlsplit(origin).hostname not in LOCAL:
            await _say(reply, 403, frames.INVALID_REQUEST, "a page of another origin may not speak to this server")
            return
        session = header(headers, SESSION)
        if session is not None and session not in self._clients:
            await _say(reply, 404, frames.INVALID_REQUEST, "there is no such session; begin a new one")
            return
        match request.head.method:
            case "POST":
                await self._posted(request, reply, session)
            case "GET":
                await self._listened(reply, headers, session)
            case "DELETE" if session is not None:
                await self._leave(self._clients.pop(session))
                await reply.start(_head(200, (), 0))
                await reply.end()
            case _:
                await _refuse(reply, Refusal(405, "Method Not Allowed", (("Allow", "GET, POST, DELETE"),), ""))

    async def _leave(self, client: _Client) -> None:
        """A client has ended its session."""
        self._all.remove(client)
        await client.conversation.close(0.0)

    async def _posted(self, request: Request, reply: Reply, session: str | None) -> None:
        try:
            frame = frames.parse(request.body)
        except NoMessage as error:
            await _say(reply, 400, error.code, str(error))
            return
        try:
            client = await self._client(frame, session)
        except WorldlineError as error:
            await _say(reply, 502, frames.REFUSED, str(error), frame)
            return
        if frame.is_request:
            await self._ask(client, frame, request, reply)
            return
        await client.conversation.hear(frame, client.channel, request.head.headers)
        await reply.start(_head(202, (), 0))
        await reply.end()

    async def _client(self, frame: Frame, session: str | None) -> _Client:
        """Whose message it is. Raises what opening a server raises."""
        if session is not None:
            return self._clients[session]
        if frame.method == "initialize":
            return await self._new()
        if self._shared is None or (self._shared.done() and self._shared.exception() is not None):
            self._shared = asyncio.ensure_future(self._new())
        return await asyncio.shield(self._shared)

    async def _new(self) -> _Client:
        client = _Client(self._opens)
        self._all.append(client)
        await client.conversation.start()
        return client

    async def _ask(self, client: _Client, frame: Frame, request: Request, reply: Reply) -> None:
        outlet = _Answering(reply, frame, lambda answer: self._named(client, frame, answer))
        asked = Asked(frame, outlet, request.head.headers)
        asking = asyncio.ensure_future(client.conversation.ask(asked))
        gone = asyncio.ensure_future(reply.gone.wait())
        try:
            while not asking.done():
                await asyncio.wait({asking, gone}, timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if gone.done() and not asking.done():
                    if PROTOCOL in frame.meta:  # without a handshake, that is how a client cancels
                        await client.conversation.cancel(asked, "cancelled by the client: it closed the stream")
                    await asking
                elif not asking.done():
                    with suppress(ClientGone):
                        await outlet.keep_alive()
            asking.result()
        finally:
            gone.cancel()
            asking.cancel()
        if not reply.ended:
            if reply.gone.is_set():
                raise ClientGone("the client hung up before it was answered")
            await outlet.send(frames.error(frame.id, frames.CANCELLED, "cancelled by the client"))

    def _named(self, client: _Client, frame: Frame, answer: Frame | None) -> str | None:
        """The session that a handshake begins, once its answer is on its way."""
        if frame.method != "initialize" or (answer is not None and "error" in answer.value):
            return None
        if client.session is None:
            server = client.conversation.server
            theirs = server.session if isinstance(server, HttpServer) else None
            if theirs is None and isinstance(server, HttpServer):  # it keeps no sessions, so its clients have none
                self._shared = asyncio.get_running_loop().create_future()
                self._shared.set_result(client)
                return None
            client.session = theirs or clock.token()
            self._clients[client.session] = client
        return client.session

    async def _listened(self, reply: Reply, headers: Headers, session: str | None) -> None:
        """A client's own stream, to its end."""
        client = self._clients.get(session) if session is not None else None
        if client is None:
            await _refuse(reply, Refusal(405, "Method Not Allowed", (("Allow", "POST"),), ""))
            return
        conversation = client.conversation
        gone = asyncio.ensure_future(reply.gone.wait())
        passing: asyncio.Future[None] | None = None
        if header(headers, LAST_EVENT) is None or not isinstance(conversation.server, HttpServer):
            await client.channel.carry(reply)
        try:
            while not gone.done():
                if passing is None and isinstance(conversation.server, HttpServer):
                    passing = asyncio.ensure_future(self._pass_stream(conversation.server, client, reply, headers))
                waits = {gone, *({passing} if passing is not None else ())}
                await asyncio.wait(waits, timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if passing is not None and passing.done():
                    break
                await client.channel.keep_alive()
        finally:
            gone.cancel()
            client.channel.leave(reply)
            if passing is not None:
                passing.cancel()
        if reply.gone.is_set():
            raise ClientGone("the client closed its stream")
        await reply.end()

    async def _pass_stream(self, server: HttpServer, client: _Client, reply: Reply, headers: Headers) -> None:
        """The server's stream, to the client's own, behind the event that the client names."""
        if not reply.started:
            await client.channel.carry(reply)
        with suppress(WorldlineError):
            refusal = await server.listen(client.channel, headers)
            if refusal is not None:  # it has none: the client's stays open, and silent
                await asyncio.Event().wait()


def _head(status: int, headers: Headers, length: int | None = None) -> ResponseHead:
    reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    return ResponseHead(status, reason, headers, "chunked" if length is None else "length", length)


async def _say(reply: Reply, status: int, code: int, why: str, frame: Frame | None = None) -> None:
    told = frames.error(None if frame is None else frame.id, code, f"worldline: {why}")
    await reply.json(status, told.value)


async def _refuse(reply: Reply, refusal: Refusal) -> None:
    body = refusal.body.encode("utf-8", "replace")
    head = ResponseHead(refusal.status, refusal.reason, refusal.headers, "length", len(body))
    await reply.start(head)
    await reply.piece(body)
    await reply.end()
