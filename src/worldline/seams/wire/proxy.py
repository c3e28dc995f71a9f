"""The proxy at the provider's base URL: hears every model call of any SDK in any language, records it or serves it.

    http://127.0.0.1:PORT/<token>/<provider>/...    the provider's API
    http://127.0.0.1:PORT/<token>/door/<verb>       the door, for processes of the run (`seams.door`)

Bytes go to the client as they come, border for border; the record is written beside. A client that hangs up (the
OpenAI SDK does so at `[DONE]`) does not cut the record: the upstream is drained, bounded.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from worldline.engine import clock
from worldline.engine.boundary import Boundary, Live, Served
from worldline.engine.threads import in_thread
from worldline.errors import WorldlineError
from worldline.seams.door import Door
from worldline.seams.way_out import WayOut
from worldline.seams.wire.exchange import INTERNAL, call_of, recorded_headers, recorded_location
from worldline.seams.wire.http import (
    ClientGone,
    Headers,
    NotSendable,
    ResponseHead,
    UpstreamError,
    header,
    with_header,
    without_headers,
)
from worldline.seams.wire.server import Reply, Request, Server, error_body
from worldline.seams.wire.serving import NO_RETRY, refuse, serve, upstream_failed
from worldline.seams.wire.upstream import Answer, Upstream

HOST = "127.0.0.1"
DRAIN_BYTES = 32 << 20
DRAIN_SECONDS = 30.0
QUIET_SECONDS = 0.1


class Proxy:
    """Serves one run on a loopback port, in a thread of its own.

    `upstreams` maps a provider's name to its base URL; `markers` names the secrets in a header's value. Raises
    `PortInUse`. In a replay nothing is ever sent upstream; what asks it as a forward proxy, for any other address, is
    refused, and stands in `strays`.
    """

    def __init__(
        self,
        boundary: Boundary,
        upstreams: Mapping[str, str],
        markers: Callable[[str], str | None],
        door: Door | None = None,
        port: int = 0,
        http_proxy: str | None = None,
    ) -> None:
        self.boundary = boundary
        self.token = clock.token()
        self.failure: WorldlineError | None = None
        self.strays: dict[str, None] = {}  # addresses, in the order in which they were first asked for
        self._upstreams = {name: Upstream(base, proxy=http_proxy) for name, base in upstreams.items()}
        self._markers = markers
        self._way_out = WayOut() if door is None else door.way_out
        self._door = door
        self._server = Server()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="worldline-proxy", daemon=True)
        self._thread.start()
        try:
            self._wait(self._server.start(HOST, port, self._handle))
        except BaseException:
            self._stop_loop()
            raise
        self.port = self._server.port

    @property
    def url(self) -> str:
        """The run's own URL, as WORLDLINE_URL carries it."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def base_url(self, provider: str) -> str:
        """What stands for a provider's base URL."""
        return f"{self.url}{provider}"

    @property
    def connects(self) -> int:
        """Connections made to providers so far."""
        return sum(upstream.connects for upstream in self._upstreams.values())

    def close(self, drain_seconds: float = 5.0) -> None:
        """Stop: running exchanges get `drain_seconds` to end. Closing again does nothing."""
        if self._loop.is_closed():
            return
        self._wait(self._server.close(drain_seconds))
        for upstream in self._upstreams.values():
            self._wait(upstream.close())
        self._stop_loop()

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _handle(self, request: Request, reply: Reply) -> None:
        if (address := _elsewhere(request.head.method, request.head.target)) is not None:
            self.strays[address] = None
            await refuse(reply, "not_recorded", f"{address} is not behind this run, and no calls are passed on to it")
            return
        path, mark, query = request.head.target.partition("?")
        _, token, place, rest = [*path.split("/", 3), "", "", ""][:4]
        if token != self.token:
            await reply.json(
                404, error_body("not_this_run", "this port belongs to a Worldline run; the token is not its own")
            )
        elif place == "door" and self._door is not None:
            status, answer = await self._door(rest, request.body)
            await reply.json(status, answer)
        elif place not in self._upstreams:
            await reply.json(404, error_body("unknown_provider", f"no provider '{place}' behind this run"))
        elif request.upgrade is not None:
            await self._refuse_upgrade(request, reply, place)
        else:
            await self._cross(request, reply, place, f"/{rest}{mark}{query}")

    async def _refuse_upgrade(self, request: Request, reply: Reply, provider: str) -> None:
        what = f"a {request.upgrade} connection to {provider}"
        self.boundary.note("meta", "loss", "main", {}, {"what": what, "why": "it is refused: only HTTP is recorded"})
        message = f"{what} cannot be recorded; use the HTTP transport of this API"
        await reply.json(501, error_body("upgrade_refused", message), NO_RETRY)

    async def _cross(self, request: Request, reply: Reply, provider: str, target: str) -> None:
        head = request.head
        call = call_of(head.method, target, head.headers, request.body, self._markers)
        try:
            answer = await in_thread(self.boundary.begin, call)
        except WorldlineError as error:
            self.failure = self.failure or error
            await refuse(reply, error.kind, str(error))
            return
        if isinstance(answer, Served):
            await serve(answer, reply, self._way_out, f"/{self.token}/{provider}")
        else:
            await self._forward(request, reply, provider, target, answer)

    async def _forward(self, request: Request, reply: Reply, provider: str, target: str, live: Live) -> None:
        upstream = self._upstreams[provider]
        headers = with_header(own_headers_left_out(request.head.headers), "Accept-Encoding", "identity")
        try:
            body = request.body if live.body is None else live.body
            answer = await upstream.send(request.head.method, target, headers, body)
        except (UpstreamError, NotSendable) as error:
            failure = {"type": "upstream", "kind": error.kind, "message": str(error)}
            live.fail(failure)
            await reply.json(502, upstream_failed(failure), NO_RETRY)
            return
        try:
            tail = self._redirect(upstream, target, answer.head)
            await _Tee(answer, reply, live, self._markers, tail, f"/{self.token}/{provider}").run()
        except asyncio.CancelledError:
            live.abandon("the recorder stopped before the answer was whole")
            raise
        except ClientGone:
            raise  # the record is whole; the server closes the connection
        except WorldlineError as error:
            self.failure = self.failure or error
            if not reply.ended:
                reply.abort()
        finally:
            await answer.close()

    def _redirect(self, upstream: Upstream, target: str, head: ResponseHead) -> str | None:
        """Where a redirect leads behind the same base URL. Leading away is a loss: what crosses there is unheard."""
        location = header(head.headers, "location") if 300 <= head.status < 400 else None
        if location is None:
            return None
        tail = upstream.inside(location, target)
        if tail is None:
            what, why = "a redirect to another address", "the client follows it past the proxy"
            self.boundary.note("meta", "loss", "main", {}, {"what": what, "why": why})
        return tail


def _elsewhere(method: str, target: str) -> str | None:
    """The address that a client asks for as it would a forward proxy; None for a request to us."""
    if method == "CONNECT":
        return target
    scheme, mark, rest = target.partition("://")
    return rest.partition("/")[0] if mark and scheme.isalpha() else None


class _Tee:
    """One live answer on its way: to the client as it comes, to the record beside."""

    def __init__(
        self,
        answer: Answer,
        reply: Reply,
        live: Live,
        markers: Callable[[str], str | None],
        redirect: str | None,
        place: str,
    ) -> None:
        self._redirect, self._place = redirect, place
        self._answer, self._reply, self._live = answer, reply, live
        self._markers = markers
        self._client_at: int | None = None  # the piece at which the client hung up, -1 before the head
        self._owed = answer.head.length
        self._finished = False

    async def run(self) -> None:
        """Carry the answer. Raises what recording raises."""
        head = self._answer.head
        self._live.encoded((header(head.headers, "content-encoding") or "identity").strip().lower())
        shown = head.headers
        if self._redirect is not None:
            shown = with_header(shown, "Location", self._place + self._redirect)
        await self._to_client(self._reply.start(msgspec.structs.replace(head, headers=shown)), -1)
        broken: UpstreamError | None = None
        self._quiet()
        try:
            await self._pieces()
        except UpstreamError as error:
            broken = error
        finally:
            self._timer.cancel()
        self._finish(broken)
        if self._client_at is None and broken is not None:
            self._reply.abort()
        elif self._client_at is None:
            await self._reply.end()
        else:
            raise ClientGone("the client hung up; the upstream was drained for the record")

    async def _pieces(self) -> None:
        index, drained, deadline = 0, 0, 0
        async for pieces in self._answer.reads():
            for data, ends_chunk in pieces:
                self._live.chunk(data, ends_chunk)
            size = sum(len(piece.data) for piece in pieces)
            self._at_its_end(size)
            if self._client_at is None:
                await self._to_client(self._reply.pieces([piece.data for piece in pieces]), index)
                deadline = clock.monotonic_ns() + int(DRAIN_SECONDS * 1e9)
            else:
                drained += size
                if drained > DRAIN_BYTES or clock.monotonic_ns() > deadline:
                    raise UpstreamError("not drained to its end", kind="broken", host="", port=0)
            index += len(pieces)

    def _quiet(self) -> None:
        """The provider may be silent for minutes; what it said before is on record all the same."""
        self._timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._quiet)
        with suppress(WorldlineError):  # such a recorder raises again, at the next piece or the end
            self._live.due()

    def _at_its_end(self, size: int) -> None:
        """A body of known length ends with its last byte: its row is written before the client can go on."""
        if self._owed is not None:
            self._owed -= size
            if self._owed == 0:
                self._finish(None)

    async def _to_client(self, write: Awaitable[None], index: int) -> None:
        try:
            await write
        except ClientGone:
            if self._client_at is None:
                self._client_at = index

    def _finish(self, broken: UpstreamError | None) -> None:
        if self._finished:
            return
        self._finished = True
        head = self._answer.head
        data: dict[str, Any] = {
            "status": head.status,
            "reason": head.reason,
            "headers": self._headers(head.headers),
            "framing": head.framing,
            "complete": broken is None,
        }
        if head.length is not None:
            data["length"] = head.length
        if self._client_at is not None:
            data |= {"closed_by": "client", "closed_at": self._client_at}
        elif broken is not None:
            data |= {"closed_by": "upstream", "why": str(broken)}
        self._live.finish(data)

    def _headers(self, headers: Headers) -> list[list[str]]:
        kept = recorded_headers(headers, self._markers)
        if self._redirect is None:
            return kept
        where = recorded_location(self._redirect)
        return [[name, where if name.lower() == "location" else value] for name, value in kept]


def own_headers_left_out(headers: Headers) -> Headers:
    """Headers less those that are between the agent and the recorder."""
    return without_headers(headers, *[name for name, _ in headers if name.lower().startswith(INTERNAL)])
