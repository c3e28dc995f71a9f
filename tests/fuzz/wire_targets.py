"""What reads the wire: requests of agents, answers of providers, event streams, and what dialects make of them.

What comes out must not depend on where the network cut what came; only errors of ours come out. See `store_targets`.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import msgspec

from worldline.engine.facts import Told, request_facts, response_facts
from worldline.model.dialects import what_changed
from worldline.model.dialects.reading import DIALECTS
from worldline.model.dialects.sse import SseEvent, SseParser
from worldline.seams.wire.dial import Origin
from worldline.seams.wire.http import NotSendable, UpstreamError, encode_head, strip_hop_by_hop
from worldline.seams.wire.server import Request, _Incoming, _Refused
from worldline.seams.wire.upstream import Answer, Upstream

LIMIT = 4096  # bytes of a head or a body here: what is longer is refused, and a fuzzer's inputs are short
ROUTES = tuple(DIALECTS)


class Bytes:
    """A connection that has said all that it will say."""

    peer = "127.0.0.1:1"
    reusable = False

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self.written = b""

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None: ...

    def discard(self) -> None: ...


@cache
def loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def cut(data: bytes, every: int) -> list[bytes]:
    """The data in pieces of so many bytes, whole for 0."""
    return [data[at : at + every] for at in range(0, len(data), every)] if every else [data] if data else []


def request(data: bytes) -> None:
    """The proxy's server side: the requests of one connection, the same however they were cut."""
    every, text = data[:1] or b"\0", data[1:]
    whole = loop().run_until_complete(_requests([text] if text else []))
    assert whole == loop().run_until_complete(_requests(cut(text, every[0] % 64)))


async def _requests(pieces: list[bytes]) -> list[Any]:
    incoming = _Incoming(Bytes(pieces), body_max=LIMIT, head_max=LIMIT)  # type: ignore[arg-type]
    found: list[Any] = []
    try:
        while (asked := await incoming.request()) is not None:
            found.append(asked)
            _looked_at(asked)
    except _Refused as refused:
        assert 400 <= refused.status < 600
        found.append(refused.status // 100)
    return found


def _looked_at(asked: Request) -> None:
    """What the proxy does with a request before it is sent on."""
    assert asked.keep_alive in (True, False) and asked.upgrade != ""
    head = asked.head
    try:
        encode_head(f"{head.method} {head.target} HTTP/1.1", strip_hop_by_hop(head.headers))
        Upstream("http://127.0.0.1:1/v1")._request(head.method, head.target, head.headers, asked.body)
    except NotSendable:
        return


def answer(data: bytes) -> None:
    """The proxy's client side: an answer's head and pieces, the same however they were cut."""
    every, text = data[:1] or b"\0", data[1:]
    method = "HEAD" if every[0] & 64 else "POST"
    whole = loop().run_until_complete(_answered(method, [text] if text else []))
    parts = loop().run_until_complete(_answered(method, cut(text, every[0] % 64)))
    assert whole == parts


async def _answered(method: str, pieces: list[bytes]) -> Any:
    origin = Origin("http://127.0.0.1:1", what="base URL")
    asked = Upstream("http://127.0.0.1:1")._request(method, "/v1/messages", (), b"{}")
    come, body, borders = Answer(origin, Bytes(pieces), None, lambda kept: None), b"", []  # type: ignore[arg-type]
    try:
        await come._open(asked)
        async for piece in come.pieces():
            assert piece.data, "an empty piece"
            body += piece.data
            if piece.ends_chunk and come.head.framing == "chunked":
                borders.append(len(body))
    except UpstreamError as error:
        assert error.kind in ("protocol", "broken")
        return "failed", getattr(come, "head", None), body, borders
    return "whole", come.head, body, borders


def sse(data: bytes) -> None:
    """Server-sent events: by the rules of the HTML standard, spelled out once more here, however they were cut."""
    every, text = data[:1] or b"\0", data[1:]
    whole, parts = SseParser(), SseParser()
    found = whole.feed(text)
    assert found == [event for piece in cut(text, every[0]) for event in parts.feed(piece)]
    assert found == _by_the_standard(text) and whole.dropped == parts.dropped == 0
    bounded = SseParser(max_event_bytes=64)
    given = [event for piece in cut(text, every[0]) for event in bounded.feed(piece)]
    assert len(given) + bounded.dropped >= len(found) and all(event in found for event in given)


def _by_the_standard(text: bytes) -> list[SseEvent]:
    events, name, lines = [], "", None
    text = text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for line in text.split(b"\n")[:-1]:
        field, colon, value = line.partition(b":")
        if not line:
            if lines is not None:
                said = b"\n".join(lines).decode("utf-8", "replace")
                events.append(SseEvent(name or "message", said))
            name, lines = "", None
        elif field == b"data":
            lines = [*(lines or []), value.removeprefix(b" ")]
        elif field == b"event" and (colon or not value):
            name = value.removeprefix(b" ").decode("utf-8", "replace")
    return events


def dialect(data: bytes) -> None:
    """What the record notes of a request and its answer: it never raises, and JSON can carry it."""
    which, kind, body = data[:1] or b"\0", data[1:2] or b"\0", data[2:]
    route = ROUTES[which[0] % len(ROUTES)]
    facts = [request_facts(route, body, Told())]
    headers = [["Content-Type", "text/event-stream" if kind[0] & 1 else "application/json"]]
    facts.append(response_facts(route, {"status": 200 if kind[0] & 2 else 500, "headers": headers}, body))
    what_changed(route, body, body[: len(body) // 2], "$.messages[0]")
    msgspec.json.encode(facts)
