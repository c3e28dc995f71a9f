"""The proxy's client side: sends one request to the provider and gives its answer with every transfer chunk border.

h11 reads the head, `bodies` what follows; the head of a request is written here, because h11 would reorder it. Nothing
is decoded: a gzip body passes as it came.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Literal
from urllib.parse import urljoin, urlsplit

import h11

from worldline.errors import UsageError
from worldline.seams.wire.bodies import HELD_MAX, body_of
from worldline.seams.wire.connection import Connection
from worldline.seams.wire.dial import HttpProxy, Origin, dial
from worldline.seams.wire.http import (
    Framing,
    Headers,
    NotSendable,
    Piece,
    RequestHead,
    ResponseHead,
    UpstreamError,
    encode_head,
    header,
    header_tokens,
    strip_hop_by_hop,
    with_header,
    without_headers,
)

HEAD_MAX = 256 * 1024
"""Bytes of a response head."""

__all__ = ["HEAD_MAX", "HELD_MAX", "IDLE_MAX", "Answer", "Upstream"]

IDLE_MAX = 32
"""Connections kept for reuse."""

_BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})


class Upstream:
    """A provider at a base URL, with its pool of kept connections. Lives in one event loop.

    `base_url` may have a path, which goes before each target. `connect_timeout` in seconds covers name, TCP, proxy and
    TLS together; `read_timeout` is the longest silence between two reads, None for a model that thinks as long as it
    likes. `proxy` is an `http://` forward proxy's URL: https goes through a CONNECT tunnel, http in absolute form.
    `connects` counts the connects attempted. Raises UsageError for an unusable URL.
    """

    def __init__(
        self,
        base_url: str,
        *,
        connect_timeout: float | None = 30.0,
        read_timeout: float | None = None,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
    ) -> None:
        self._origin = Origin(base_url, what="base URL")
        parts = urlsplit(base_url)
        if self._origin.credentials is not None or parts.query or parts.fragment:
            raise UsageError(
                f"the base URL of {self._origin.address} carries credentials, a query or a fragment: "
                "give scheme, host and path only"
            )
        self._path = parts.path.rstrip("/")
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._ssl_context = ssl_context
        self._proxy = HttpProxy(proxy) if proxy is not None else None
        self._idle: list[Connection] = []
        self._closed = False
        self.connects = 0

    async def send(self, method: str, target: str, headers: Headers, body: bytes) -> Answer:
        """Sends a request and returns when the response head has come.

        `target` begins with `/`. Hop-by-hop headers and Expect are left out; Host and Content-Length are set to what is
        true here, in their places; all else goes in the given case and order. A kept connection that turns out closed
        before any byte of the response is replaced once by a fresh one. Raises UpstreamError; NotSendable.
        """
        request = self._request(method, target, headers, body)
        kept = self._kept()
        if kept is not None:
            answer = self._answer(kept)
            try:
                return await answer._open(request)
            except UpstreamError as error:
                if error.kind != "broken" or answer._received:
                    raise
        return await self._answer(await self._fresh())._open(request)

    def inside(self, location: str, target: str) -> str | None:
        """The target behind this base URL that a redirect in the answer to `target` names; None where it leads away."""
        scheme = "https" if self._origin.tls else "http"
        base = f"{scheme}://{self._origin.authority}"
        try:
            parts = urlsplit(urljoin(base + self._path + target, location))
            there = Origin(parts.geturl(), what="redirect")
        except (ValueError, UsageError):
            return None
        here = self._origin
        if (there.tls, there.host, there.port) != (here.tls, here.host, here.port):
            return None
        if not parts.path.startswith(f"{self._path}/"):
            return None
        return parts.path[len(self._path) :] + (f"?{parts.query}" if parts.query else "")

    async def close(self) -> None:
        """Closes the kept connections. Answers under way go on and are not kept afterwards."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _request(self, method: str, target: str, headers: Headers, body: bytes) -> _Request:
        if not target.startswith("/"):
            raise NotSendable(f"request target {target!r} does not begin with '/'", target=target)
        path = self._path + target
        sent = without_headers(strip_hop_by_hop(headers), "expect")
        if header(sent, "host") is None:
            sent = (("Host", ""), *sent)
        sent = with_header(sent, "Host", self._origin.authority)
        if body or method in _BODY_METHODS or header(sent, "content-length") is not None:
            sent = with_header(sent, "Content-Length", str(len(body)))
        if self._proxy is not None and not self._origin.tls:
            path = f"http://{self._origin.authority}{path}"
            sent = (*sent, *self._proxy.authorization)
        return _Request(RequestHead(method, path, sent), body)

    def _answer(self, connection: Connection) -> Answer:
        return Answer(self._origin, connection, self._read_timeout, self._keep)

    def _kept(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
            connection.discard()
        return None

    async def _fresh(self) -> Connection:
        if self._origin.tls and self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
            self._ssl_context.set_alpn_protocols(["http/1.1"])
        self.connects += 1
        return await dial(self._origin, proxy=self._proxy, ssl_context=self._ssl_context, timeout=self._connect_timeout)

    def _keep(self, connection: Connection) -> None:
        if self._closed or not connection.reusable:
            connection.close()
            return
        self._idle.append(connection)
        if len(self._idle) > IDLE_MAX:
            self._idle.pop(0).close()


class _Request:
    """A request ready to be sent: its bytes, and the same as the events of the parser that will read the answer."""

    def __init__(self, head: RequestHead, body: bytes) -> None:
        self.head = head
        self.body = body
        self.head_bytes = encode_head(f"{head.method} {head.target} HTTP/1.1", head.headers)
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head.headers]
        try:
            start = h11.Request(method=head.method, target=head.target, headers=pairs)
        except (h11.LocalProtocolError, UnicodeEncodeError) as error:
            raise NotSendable(f"{head.method!r} {head.target!r} is no HTTP request: {error}") from error
        self.events: list[h11.Event] = [start, *([h11.Data(data=body)] if body else []), h11.EndOfMessage()]


class Answer:
    """A response whose head has come. Its connection is kept once `pieces` is exhausted; else call `close`."""

    head: ResponseHead

    def __init__(
        self,
        origin: Origin,
        connection: Connection,
        read_timeout: float | None,
        keep: Callable[[Connection], None],
    ) -> None:
        self._origin = origin
        self._connection = connection
        self._read_timeout = read_timeout
        self._keep = keep
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        self._received = False
        self._ended = False
        self._state: Literal["open", "read", "closed"] = "open"

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """The pieces of `reads`, one by one. Closing the iterator early closes the answer."""
        async with aclosing(self.reads()) as reads:
            async for pieces in reads:
                for piece in pieces:
                    yield piece

    async def reads(self) -> AsyncGenerator[list[Piece], None]:
        """The body, once, as it comes: the pieces that one read completes, each at once; see `Piece`.

        Raises UpstreamError (broken, timeout, protocol) after giving all that had come. Closing the iterator early
        closes the answer.
        """
        if self._state != "open":
            raise NotSendable("the body of this answer was already read or given up")
        self._state = "read"
        body = body_of(self.head)
        try:
            came, self._ended = self._parser.trailing_data
            if pieces := body.feed(came):
                yield pieces
            while not (body.ended or body.fault):
                try:
                    data = await self._read()
                except UpstreamError:
                    if pieces := body.close():
                        yield pieces
                    raise
                if pieces := body.feed(data) if data else body.close():
                    yield pieces
                if self._ended and not body.ended:
                    raise self._origin.fail("broken", "closed the connection in the middle of its answer")
            if body.fault:
                raise self._origin.fail("protocol", f"sent what is no HTTP/1.1: {body.fault}")
            self._finish(body.rest())
        finally:
            await self.close()

    async def close(self) -> None:
        """Gives the answer up: the connection is closed unless the body was read to its end. May be called twice."""
        if self._state != "closed":
            self._state = "closed"
            self._connection.discard()

    async def _open(self, request: _Request) -> Answer:
        try:
            for event in request.events:
                # Only to tell the parser what is asked; the bytes that h11 makes of it are not those that are sent.
                self._parser.send_with_data_passthrough(event)
            # Not drained: the body is in memory anyway, and an upstream that answers before it has read all of it
            # (401, 413) would block both sides if nobody read.
            self._connection.write(request.head_bytes)
            self._connection.write(request.body)
            answer = await self._next_event()
            while isinstance(answer, h11.InformationalResponse) and answer.status_code != 101:
                answer = await self._next_event()
            if not isinstance(answer, h11.Response):
                raise self._origin.fail("protocol", "switched protocols, which was not asked for")
        except BaseException:
            await self.close()
            raise
        self.head = _response_head(request.head.method, answer)
        return self

    def _finish(self, unread: bytes) -> None:
        self._state = "closed"
        # h11 has read of both heads whether the connection is for more than this exchange.
        if self._parser.our_state is h11.DONE and not unread and not self._ended:
            self._keep(self._connection)
        else:
            self._connection.close()

    async def _next_event(self) -> h11.Event:
        origin = self._origin
        while True:
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError as error:
                if self._ended:
                    raise origin.fail("broken", "closed the connection in the middle of its answer") from error
                raise origin.fail("protocol", f"sent what is no HTTP/1.1: {error}") from error
            if isinstance(event, h11.ConnectionClosed):
                raise origin.fail("broken", "closed the connection without an answer")
            if event is h11.PAUSED:
                raise origin.fail("protocol", "stopped speaking HTTP/1.1")
            if isinstance(event, h11.Event):
                return event
            self._parser.receive_data(await self._read())

    async def _read(self) -> bytes:
        """What comes next, nothing at the end of the connection."""
        try:
            if self._read_timeout is None:
                data = await self._connection.read()
            else:
                async with asyncio.timeout(self._read_timeout):
                    data = await self._connection.read()
        except TimeoutError as error:
            raise self._origin.fail("timeout", f"silent for {self._read_timeout:g} s") from error
        except OSError as error:
            raise self._origin.fail("broken", f"broke the connection ({error.strerror or error})") from error
        self._received = self._received or bool(data)
        self._ended = not data
        return data


def _response_head(method: str, event: h11.Response) -> ResponseHead:
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers.raw_items())
    declared = header(headers, "content-length")
    framing: Framing
    if method == "HEAD" or event.status_code in (204, 304):
        framing = "none"
    elif header_tokens(headers, "transfer-encoding"):
        framing = "chunked"
    else:
        framing = "close" if declared is None else "length"
    length = int(declared) if framing == "length" and declared is not None else None
    return ResponseHead(event.status_code, event.reason.decode("latin-1"), headers, framing, length)
