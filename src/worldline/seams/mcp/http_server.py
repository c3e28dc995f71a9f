"""A server behind streamable HTTP: messages are posted to it, answers come as JSON or as a stream of events.

Its session and the version of the protocol go with every message. A stream that breaks before its answer came is
resumed behind the last event that had an id.
"""

from __future__ import annotations

import asyncio
import base64
import re
from contextlib import suppress
from typing import Protocol
from urllib.parse import urlsplit

from worldline.errors import UsageError, WorldlineError
from worldline.seams.mcp import frames
from worldline.seams.mcp.ends import Asked, Outlet, Refusal, ServerGone
from worldline.seams.mcp.frames import Frame, NoMessage
from worldline.seams.mcp.sse import Event, Events, TooLong
from worldline.seams.mcp.stdio import Listener
from worldline.seams.mcp.words import PROTOCOL
from worldline.seams.wire.http import Headers, NotSendable, UpstreamError, header, with_header, without_headers
from worldline.seams.wire.upstream import Answer, Upstream

SESSION, VERSION, LAST_EVENT = "Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID"
ACCEPT = "application/json, text/event-stream"
RETRIES = 3
RETRY_SECONDS = 1.0
REFUSAL_MAX = 64 * 1024
_ACTED_ON = frozenset({"content-type", "www-authenticate", "retry-after", "allow"})
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_SAFE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_OURS = ("host", "content-length", "accept-encoding", "origin", "referer", SESSION, "expect")


class HttpListener(Listener, Protocol):
    """Who hears a server over HTTP."""

    async def refused(self, asked: Asked, refusal: Refusal) -> None:
        """It said no to a request."""

    async def lost(self, asked: Asked, why: str) -> None:
        """No answer to a request will come."""


class HttpServer:
    """Speaks to the server at `url` for one client. `credentials` go with every message that has none of its own.

    Where the client `listens` itself for what belongs to no request, its own stream is passed on; else one is kept open
    here. Raises `UsageError` for an unusable URL.
    """

    def __init__(
        self, url: str, listener: HttpListener, name: str, *, credentials: Headers, listens: bool, most: int
    ) -> None:
        base, self._target = address(url)
        self._upstream = Upstream(base)
        self._listener = listener
        self._name = name
        self._credentials = credentials
        self._listens = listens
        self._most = most
        self._version: str | None = None
        self._tasks: dict[asyncio.Task[None], Asked | None] = {}
        self._closed = False
        self.gone = asyncio.Event()  # over HTTP nobody hears of it
        self.session: str | None = None

    async def send(self, frame: Frame, asked: Asked | None = None, headers: Headers = ()) -> None:
        """Post a message. A request's answer comes by and by. Raises `ServerGone` for what is no request."""
        sent = self._headers(frame, headers)
        if frame.is_request:
            self._start(self._ask(frame, asked, sent), asked)
            return
        try:
            answer = await self._upstream.send("POST", self._target, sent, frame.raw)
            await answer.close() if answer.head.status == 202 else await self._body(answer)
        except (UpstreamError, NotSendable, TooLong) as error:
            raise ServerGone(f"{self._name} cannot be reached: {error}") from None
        if frame.method == "notifications/initialized" and not self._listens and self.session is not None:
            self._start(self._keep_listening())

    async def listen(self, outlet: Outlet, headers: Headers) -> Refusal | None:
        """The client's own stream for what belongs to no request, as long as it lasts; or why there is none.

        Raises `ServerGone`.
        """
        sent = without_headers(self._headers(None, headers), "content-type")
        try:
            answer = await self._upstream.send(
                "GET", self._target, with_header(sent, "Accept", "text/event-stream"), b""
            )
            if not _streams(answer):
                return await self._refusal(answer)
            await self._events(answer, None, outlet)
        except (UpstreamError, NotSendable, TooLong) as error:
            raise ServerGone(f"{self._name} cannot be reached: {error}") from None
        return None

    async def drop(self, asked: Asked) -> None:
        """Close the stream of its answer: that is how a client without handshakes cancels."""
        if PROTOCOL in asked.frame.meta:
            for task in [task for task, whose in self._tasks.items() if whose is asked]:
                task.cancel()

    async def leave(self) -> None:
        """Nothing to do: each message stands alone."""

    async def close(self, grace: float) -> None:
        """End the session, where there is one."""
        if self._closed:
            return
        self._closed = True
        pending = [task for task, asked in self._tasks.items() if asked is not None]
        if pending:
            await asyncio.wait(pending, timeout=grace)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        if self.session is not None:
            with suppress(UpstreamError, NotSendable, TimeoutError):
                async with asyncio.timeout(max(grace, 0.5)):
                    answer = await self._upstream.send("DELETE", self._target, self._headers(None, ()), b"")
                    await answer.close()
        await self._upstream.close()

    # ------------------------------------------------------------------------------------------------------- answers

    def _start(self, work: object, asked: Asked | None = None) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks[task] = asked
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _ask(self, frame: Frame, asked: Asked | None, headers: Headers) -> None:
        try:
            answer = await self._upstream.send("POST", self._target, headers, frame.raw)
            if frame.method == "initialize":
                self.session = header(answer.head.headers, SESSION) or None
            if answer.head.status >= 300 or not (_streams(answer) or _is_json(answer)):
                await self._refused(frame, asked, await self._refusal(answer))
            elif _streams(answer):
                await self._stream(frame, asked, answer, headers)
            else:
                await self._heard(frames.parse(await self._body(answer)), frame, asked, None)
        except NoMessage as error:
            await self._lost(frame, asked, f"{self._name} answered with what is no message of MCP: {error}")
        except TooLong:
            await self._lost(frame, asked, f"{self._name} sent a message of more than {self._most:,} bytes")
        except (UpstreamError, NotSendable) as error:
            await self._lost(frame, asked, f"{self._name} gave no answer: {error}")

    async def _stream(self, frame: Frame, asked: Asked | None, answer: Answer, headers: Headers) -> None:
        """The events of one answer, over as many connections as it takes."""
        last, tries = None, 0
        while True:
            broken: WorldlineError | None = None
            try:
                last, ended = await self._events(answer, asked, None, frame, last)
                if ended:
                    return
            except UpstreamError as error:
                broken = error
            if last is None or tries == RETRIES:
                why = f": {broken}" if broken else ""
                await self._lost(frame, asked, f"{self._name} ended its stream without an answer{why}")
                return
            tries += 1
            await asyncio.sleep(RETRY_SECONDS if self._retry is None else self._retry / 1000)
            sent = without_headers(with_header(headers, "Accept", "text/event-stream"), "content-type")
            answer = await self._upstream.send("GET", self._target, with_header(sent, LAST_EVENT, last), b"")
            if not _streams(answer):
                await self._refused(frame, asked, await self._refusal(answer))
                return

    _retry: int | None = None

    async def _events(
        self,
        answer: Answer,
        asked: Asked | None,
        outlet: Outlet | None,
        frame: Frame | None = None,
        last: str | None = None,
    ) -> tuple[str | None, bool]:
        """Hear a stream to the answer, or its end: the id of its last event, and whether the answer came."""
        events = Events(self._most)
        try:
            async for piece in answer.pieces():
                for event in events.feed(piece.data):
                    last = event.id or last
                    self._retry = event.retry if event.retry is not None else self._retry
                    if await self._event(event, asked, outlet, frame):
                        return last, True
        finally:
            await answer.close()
        return last, False

    async def _event(self, event: Event, asked: Asked | None, outlet: Outlet | None, frame: Frame | None) -> bool:
        """One event; whether it was the answer."""
        if not event.data:
            where = asked.outlet if asked is not None else outlet
            if event.id is not None and where is not None:
                await where.prime(event.id)
            return False
        try:
            told = frames.parse(event.data)
        except NoMessage as error:
            await self._listener.stray(event.data, str(error))
            return False
        return await self._heard(told, frame, asked, event.id)

    async def _heard(self, told: Frame, frame: Frame | None, asked: Asked | None, event: str | None) -> bool:
        """A message that came; whether it is the answer to `frame`."""
        is_answer = told.is_response and frame is not None and told.key == frame.key
        if is_answer and frame is not None and frame.method == "initialize" and "result" in told.value:
            version = told.value["result"].get("protocolVersion") if isinstance(told.value["result"], dict) else None
            self._version = version if isinstance(version, str) else None
        on = asked if is_answer or not told.is_response else None
        await self._listener.told(told, on, event, apart=frame is None and not told.is_response)
        return is_answer

    async def _refused(self, frame: Frame, asked: Asked | None, refusal: Refusal) -> None:
        """A status in place of an answer: where its body is an error of JSON-RPC that is what the client reads."""
        with suppress(NoMessage):
            told = frames.parse(refusal.body.encode("utf-8", "surrogatepass"))
            if "error" in told.value and not (refusal.status == 404 and self.session is not None):
                await self._heard(frames.made({**told.value, "id": frame.id}), frame, asked, None)
                return
        if asked is not None and asked.live is not None:
            await self._listener.refused(asked, refusal)
        else:
            await self._lost(frame, asked, f"{self._name} answered HTTP {refusal.status} {refusal.reason}".rstrip())

    async def _lost(self, frame: Frame, asked: Asked | None, why: str) -> None:
        if asked is not None:
            await self._listener.lost(asked, why)
        else:  # a request of ours
            await self._listener.told(frames.error(frame.id, frames.SERVER_GONE, why))

    async def _refusal(self, answer: Answer) -> Refusal:
        body = (await self._body(answer))[:REFUSAL_MAX].decode("utf-8", "replace")
        kept = tuple(pair for pair in answer.head.headers if pair[0].lower() in _ACTED_ON)
        return Refusal(answer.head.status, answer.head.reason, kept, body)

    async def _body(self, answer: Answer) -> bytes:
        body = bytearray()
        async for piece in answer.pieces():
            body += piece.data
            if len(body) > self._most:
                await answer.close()
                raise TooLong
        return bytes(body)

    async def _keep_listening(self) -> None:
        """The stream for what belongs to no request, opened again behind its last event where it ends."""
        last, tries = None, 0
        while tries < RETRIES and not self._closed:
            headers = without_headers(self._headers(None, ()), "content-type")
            headers = with_header(headers, "Accept", "text/event-stream")
            if last is not None:
                headers = with_header(headers, LAST_EVENT, last)
            try:
                answer = await self._upstream.send("GET", self._target, headers, b"")
                if not _streams(answer):  # it has no such stream
                    await answer.close()
                    return
                tries = 0
                last, _ = await self._events(answer, None, None, None, last)
            except (UpstreamError, NotSendable, TooLong):
                tries += 1
            await asyncio.sleep(RETRY_SECONDS if self._retry is None else self._retry / 1000)

    def _headers(self, frame: Frame | None, given: Headers) -> Headers:
        """What goes with a message: the client's own headers where it has some, and what the transport needs."""
        sent = without_headers(given, *_OURS)
        needed = [("Accept", ACCEPT), ("Content-Type", "application/json"), *self._credentials]
        if frame is not None and (version := frame.meta.get(PROTOCOL)) is not None:
            needed += [(VERSION, str(version)), ("Mcp-Method", str(frame.method))]
            if (name := frame.params.get(_NAMED.get(str(frame.method), ""))) is not None:
                needed.append(("Mcp-Name", _safe(str(name))))
        elif self._version is not None and (frame is None or frame.method != "initialize"):
            needed.append((VERSION, self._version))
        for name, value in needed:
            if header(sent, name) is None:
                sent = (*sent, (name, value))
        if self.session is not None:
            sent = (*sent, (SESSION, self.session))
        return (*sent, ("Accept-Encoding", "identity"))


def address(url: str) -> tuple[str, str]:
    """The origin of a server and the target behind it. Raises `UsageError`."""
    parts = urlsplit(url)
    if parts.fragment or parts.username is not None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("the URL of a server is http or https, without a password in it; --bearer-env gives one")
    return f"{parts.scheme}://{parts.netloc}", (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _media_type(answer: Answer) -> str:
    return (header(answer.head.headers, "content-type") or "").partition(";")[0].strip().lower()


def _streams(answer: Answer) -> bool:
    return answer.head.status == 200 and _media_type(answer) == "text/event-stream"


def _is_json(answer: Answer) -> bool:
    return _media_type(answer) == "application/json"


def _safe(value: str) -> str:
    """A text as a header may carry it."""
    if _SAFE.fullmatch(value) and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode('ascii')}?="
