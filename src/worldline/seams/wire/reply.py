"""The answer to one request: a head in the case and order given, then pieces, each written as one transfer chunk."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Literal

import msgspec

from worldline.seams.wire.connection import Connection
from worldline.seams.wire.http import (
    ClientGone,
    Framing,
    Headers,
    NotSendable,
    ResponseHead,
    encode_head,
    header,
    header_tokens,
    with_header,
    without_headers,
)


class Reply:
    """What a handler answers with: `start`, any number of `piece`, `end`; or `json`; or `abort`.

    `gone` is set as soon as the client's EOF or reset is seen, also while nothing is written. After it, whatever still
    has bytes to write raises ClientGone. After `end`, `keep_alive` says whether the connection takes another request.
    """

    def __init__(self, connection: Connection, *, method: str, chunks_known: bool, keep_alive: bool) -> None:
        self.gone: asyncio.Event = connection.gone
        self.keep_alive = keep_alive
        self._connection = connection
        self._method = method
        self._chunks_known = chunks_known
        self._state: Literal["new", "started", "ended", "aborted"] = "new"
        self._framing: Framing = "none"
        self._owed = 0

    @property
    def started(self) -> bool:
        """True once a head was written."""
        return self._state != "new"

    @property
    def ended(self) -> bool:
        """True once the answer is complete, or was broken off by `abort`."""
        return self._state in ("ended", "aborted")

    async def start(self, head: ResponseHead) -> None:
        """Writes the head; its framing decides how pieces are written and how the body ends.

        Transfer-Encoding, Content-Length and Connection are made to agree with what is done, in their places if given.
        A HEAD request, 204 and 304 have no body whatever `head.framing` says; an HTTP/1.0 client gets `close` for
        `chunked`. Raises ClientGone; NotSendable.
        """
        self._expect("new")
        if head.status < 200:
            raise NotSendable(f"status {head.status} is no final answer", status=head.status)
        bodiless = self._method == "HEAD" or head.status in (204, 304)
        headers = self._frame(head, bodiless)
        if not self.keep_alive:
            headers = (*without_headers(headers, "connection"), ("Connection", "close"))
        encoded = encode_head(f"HTTP/1.1 {head.status} {head.reason}", headers)
        self._state = "started"
        await self._write(encoded)

    async def piece(self, data: bytes) -> None:
        """Writes body bytes: under `chunked` as exactly one transfer chunk; empty `data` writes nothing.

        Where there is no body (HEAD, 204, 304) the bytes are dropped. Waits while the client is slow. Raises
        ClientGone; NotSendable for more bytes than the head's length.
        """
        await self.pieces([data])

    async def pieces(self, pieces: list[bytes]) -> None:
        """Writes several pieces at once, each as it would stand alone."""
        self._expect("started")
        size = sum(map(len, pieces))
        if self._framing == "length" and size > self._owed:
            raise NotSendable(f"{size - self._owed} bytes more than Content-Length said")
        if self.gone.is_set():
            raise ClientGone("the client hung up in the middle of the answer")
        if not size or self._framing == "none":
            return
        if self._framing == "chunked":
            await self._write(b"".join([b"%x\r\n%b\r\n" % (len(data), data) for data in pieces if data]))
        else:
            if self._framing == "length":
                self._owed -= size
            await self._write(b"".join(pieces))

    async def end(self) -> None:
        """Ends the body. Raises ClientGone if the client left before it could know; NotSendable if bytes lack."""
        self._expect("started")
        if self._framing == "length" and self._owed:
            raise NotSendable(f"{self._owed} bytes less than Content-Length said")
        if self._framing == "chunked":
            await self._write(b"0\r\n\r\n")
        elif self._framing == "close" and self.gone.is_set():
            raise ClientGone("the client hung up before the end of the answer")
        self._state = "ended"

    def abort(self) -> None:
        """Breaks the answer off, as a dying upstream would: what was written still goes out, then the connection ends.

        The client sees a missing terminator, too few bytes or, where only the end of the connection would end the
        body, a reset. Before `start` it sees a connection closed without an answer.
        """
        if self._state == "started" and self._framing == "close":
            self._connection.reset()
        else:
            self._connection.close()
        self._state = "aborted"
        self.keep_alive = False

    async def json(self, status: int, obj: Any, headers: Headers = ()) -> None:
        """Writes a whole answer: `obj` as one JSON line. Raises ClientGone."""
        body = msgspec.json.encode(obj) + b"\n"
        reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
        headers = with_header(headers, "Content-Type", "application/json")
        await self.start(ResponseHead(status, reason, headers, "length", len(body)))
        await self.piece(body)
        await self.end()

    def _frame(self, head: ResponseHead, bodiless: bool) -> Headers:
        self._framing = "none" if bodiless else head.framing
        if self._framing == "chunked" and not self._chunks_known:
            self._framing = "close"
        if self._framing == "close" or "close" in header_tokens(head.headers, "connection"):
            self.keep_alive = False
        if self._framing == "chunked":
            return with_header(without_headers(head.headers, "content-length"), "Transfer-Encoding", "chunked")
        if self._framing == "close":
            return without_headers(head.headers, "content-length", "transfer-encoding")
        if bodiless:
            return head.headers
        self._owed = self._length(head)
        return with_header(without_headers(head.headers, "transfer-encoding"), "Content-Length", str(self._owed))

    def _length(self, head: ResponseHead) -> int:
        if self._framing == "none":
            return 0
        declared = header(head.headers, "content-length")
        if head.length is not None:
            return head.length
        if declared is None or not (declared.isascii() and declared.isdigit()):
            raise NotSendable(f"framing `length` without a length, Content-Length is {declared!r}")
        return int(declared)

    async def _write(self, data: bytes) -> None:
        if self.gone.is_set():
            raise ClientGone("the client hung up before the end of the answer")
        self._connection.write(data)
        try:
            await self._connection.drain()
        except ConnectionResetError as error:
            raise ClientGone("the client hung up in the middle of the answer") from error

    def _expect(self, state: Literal["new", "started"]) -> None:
        if self._state != state:
            raise NotSendable(f"the answer is {self._state}, it would have to be {state}")
