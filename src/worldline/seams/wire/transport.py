"""The in-process twin of the proxy: a transport for httpx and httpx2 that records or serves the same exchanges.

For tests and notebooks, where the agent runs in this process. Same calls, same keys, same cassette as the proxy; the
pieces are what the library's own transport gives. The library is the client's own: none is imported by itself.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import importlib
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple, Protocol

import msgspec

from worldline.engine.boundary import Boundary, Call, Live, RecordEnds, Served, inside, its_turn
from worldline.engine.threads import in_thread
from worldline.errors import UsageError, WorldlineError
from worldline.seams.lanes import lane
from worldline.seams.taken import is_model_taken
from worldline.seams.wire.exchange import call_of, recorded_headers, served_headers
from worldline.seams.wire.http import header
from worldline.seams.wire.server import error_body
from worldline.seams.wire.serving import NO_RETRY, REFUSED, hung_up_at

LIBRARIES = ("httpx2", "httpx")


class OpenRun(Protocol):
    """What a twin needs of a run: its own URL, and its door."""

    @property
    def url(self) -> str | None:
        """Its own URL; None where nothing records just now."""

    @property
    def boundary(self) -> Boundary:
        """The door."""


class _Twins(NamedTuple):
    """The transport classes for one library."""

    plain: Any
    awaited: Any


def twin(run: OpenRun, inner: Any) -> Any:
    """The twin around a transport of httpx or httpx2, sync or async. Raises `UsageError` for anything else."""
    library = _library_of(inner)
    twins = _twins(library.__name__)
    return (twins.awaited if isinstance(inner, library.AsyncBaseTransport) else twins.plain)(run, inner)


def wrap_client(run: OpenRun, client: Any) -> Any:
    """A copy of an SDK client (OpenAI, Anthropic, and what is built like them) that goes through the twin."""
    if run.url is not None and str(getattr(client, "base_url", "")).startswith(run.url):
        return client
    http_client = getattr(client, "_client", None)
    if http_client is None or not hasattr(client, "copy"):
        raise UsageError(f"cannot wrap a {type(client).__name__}: give its HTTP client run.transport(...) instead")
    library = _library_of(http_client)
    # A copy that shares all it was made with (proxies, certificates, headers, hooks, limits); only the way out is ours.
    own = copy.copy(http_client)
    kind: Any = type(http_client)
    own.__class__ = _sharing(kind)
    own.shared_with = http_client  # whose pool it is, and who closes it when forgotten: not while this one is used
    if isinstance(http_client, library.Client):
        ways = [http_client._transport, *filter(None, http_client._mounts.values())]
        weakref.finalize(own, _closed_together, weakref.ref(http_client), ways).atexit = False
    own._transport = _around(run, http_client._transport, http_client, library)
    own._mounts = {
        pattern: mounted and _around(run, mounted, http_client, library)
        for pattern, mounted in http_client._mounts.items()
    }
    return client.copy(http_client=own)


@functools.cache
def _sharing(kind: Any) -> Any:
    """The class for a copy of an HTTP client: SDKs close theirs when it is forgotten, and this one shares its pool."""
    if getattr(kind, "shares_pool", False):
        return kind
    return type(kind.__name__, (kind,), {"__del__": lambda self: None, "shares_pool": True})


def _closed_together(owner: weakref.ref[Any], ways: list[Any]) -> None:
    """Close a pool whose owner went with the copy: in one piece of garbage its sockets could be thrown away open."""
    if owner() is None:
        for way in ways:
            way.close()


def _around(run: OpenRun, transport: Any, http_client: Any, library: Any) -> Any:
    """The twin around a transport of `http_client`; around what is inside it where that is a twin already."""
    twins = _twins(library.__name__)
    inner = transport._inner if isinstance(transport, twins) else transport
    return (twins.awaited if isinstance(http_client, library.AsyncClient) else twins.plain)(run, inner)


def _library_of(thing: Any) -> Any:
    for kind in type(thing).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in LIBRARIES:
            return importlib.import_module(name)
    raise UsageError(f"{type(thing).__module__}.{type(thing).__name__} belongs to neither httpx nor httpx2")


def _call(run: OpenRun, request: Any, body: bytes) -> Call | None:
    """The call that a request is; None for one that is not ours: this run's proxy has it, or a seam further out."""
    if is_model_taken() or run.url is None or str(request.url).startswith(run.url):
        return None
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw)
    target = request.url.raw_path.decode("ascii")
    return call_of(request.method, target, headers, body, lambda value: None, lane(), inside.get())


class _Tee:
    """The record of one live response."""

    def __init__(self, live: Live, response: Any) -> None:
        self._live = live
        self._response = response
        self._pieces = 0
        self._done = False
        self._headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers.raw]
        live.encoded((header(self._headers, "content-encoding") or "identity").strip().lower())

    def piece(self, data: bytes) -> None:
        self._pieces += 1
        self._live.chunk(data)

    def end(self, closed_by: str | None = None, why: str | None = None) -> None:
        if self._done:
            return
        self._done = True
        extensions = self._response.extensions
        data: dict[str, Any] = {
            "status": self._response.status_code,
            "reason": extensions.get("reason_phrase", b"").decode("latin-1"),
            "headers": recorded_headers(self._headers, lambda value: None),
            "framing": "chunked" if header(self._headers, "transfer-encoding") else "length",
            "complete": closed_by is None,
        }
        if closed_by is not None:
            data |= {"closed_by": closed_by, "closed_at": self._pieces, "why": why}
        self._live.finish(data)


def _failed(live: Live, error: BaseException) -> None:
    """Record that no response came: a failure of the upstream, or that nobody waited for one."""
    if isinstance(error, Exception):
        live.fail({"type": "upstream", "kind": type(error).__name__, "message": str(error)})
    else:
        live.abandon(f"interrupted by {type(error).__name__}")


@functools.cache
def _twins(name: str) -> _Twins:
    """The two transports and four streams of one library; its base classes make them be accepted by its clients."""
    library = importlib.import_module(name)

    def refused(request: Any, error: WorldlineError) -> Any:
        """A refusal as a response: SDKs would retry an exception, and show this message."""
        body = msgspec.json.encode(error_body(f"worldline_{error.kind}", str(error)))
        return library.Response(
            REFUSED, headers=[*NO_RETRY, ("content-type", "application/json")], content=body, request=request
        )

    def sent(request: Any, body: bytes | None) -> Any:
        """The request to send: with another body where a fork changed it."""
        if body is None:
            return request
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
        extensions = dict(request.extensions)
        return library.Request(request.method, request.url, headers=headers, content=body, extensions=extensions)

    def failure_class(kind: Any) -> Any:
        """The library's class of that name (agents tell timeouts from refusals), else that of a failed connection."""
        found = getattr(library, str(kind), None)
        is_one = isinstance(found, type) and issubclass(found, library.TransportError)
        return found if is_one else library.ConnectError

    def served(request: Any, answer: Served, stream: Any) -> Any:
        data = answer.data
        if "error" in data:
            raise failure_class(data["error"].get("kind"))(str(data["error"].get("message")), request=request)
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": data["reason"].encode("latin-1")}
        headers = list(served_headers(data))
        return library.Response(data["status"], headers=headers, stream=stream, extensions=extensions, request=request)

    class Replayed(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[name-defined,misc]
        """A recorded body."""

        def __init__(self, answer: Served) -> None:
            self._answer = answer

        def __iter__(self) -> Iterator[bytes]:
            pieces = [piece for piece, _ in self._answer.pieces()]
            yield from pieces[:-1]
            self._answer.turn().result()
            yield from pieces[-1:]
            _check_whole(library, self._answer)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            pieces = [piece for piece, _ in self._answer.pieces()]
            hung_up = hung_up_at(self._answer.data)
            for index, piece in enumerate(pieces[:-1]):
                if index == hung_up:
                    await asyncio.sleep(self._answer.patience)  # to be cancelled here, as it was
                yield piece
            await its_turn(self._answer)
            for piece in pieces[-1:]:
                yield piece
            _check_whole(library, self._answer)

        def close(self) -> None:
            self._answer.turn()  # one that was left before its end holds up nobody

        async def aclose(self) -> None:
            self._answer.turn()

    class Recorded(library.SyncByteStream):  # type: ignore[name-defined,misc]
        """A live body, recorded as it is read."""

        def __init__(self, inner: Any, tee: _Tee) -> None:
            self._inner, self._tee, self._parts = inner, tee, iter(inner)

        def __iter__(self) -> Iterator[bytes]:
            try:
                for part in self._parts:
                    self._tee.piece(part)
                    yield part
            except library.TransportError as error:
                self._tee.end("upstream", str(error))
                raise
            self._tee.end()

        def close(self) -> None:
            self._tee.end("client")
            self._inner.close()

    class AsyncRecorded(library.AsyncByteStream):  # type: ignore[name-defined,misc]
        """`Recorded` for an event loop."""

        def __init__(self, inner: Any, tee: _Tee) -> None:
            self._inner, self._tee = inner, tee

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for part in self._inner:
                    self._tee.piece(part)
                    yield part
            except library.TransportError as error:
                self._tee.end("upstream", str(error))
                raise
            self._tee.end()

        async def aclose(self) -> None:
            await in_thread(self._tee.end, "client")
            await self._inner.aclose()

    class Twin(library.BaseTransport):  # type: ignore[name-defined,misc]
        """The sync transport."""

        def __init__(self, run: OpenRun, inner: Any) -> None:
            self._run, self._inner = run, inner

        def handle_request(self, request: Any) -> Any:
            call = _call(self._run, request, request.read())
            if call is None:
                return self._inner.handle_request(request)
            try:
                answer = self._run.boundary.begin(call)
            except WorldlineError as error:
                return refused(request, error)
            if isinstance(answer, Served) and answer.never_ended:
                threading.Event().wait(answer.patience)
                return refused(request, RecordEnds(answer.never_ended))
            if isinstance(answer, Served):
                return served(request, answer, Replayed(answer))
            request = sent(request, answer.body)
            try:
                response = self._inner.handle_request(request)
            except BaseException as error:
                _failed(answer, error)
                raise
            tee = _Tee(answer, response)
            if response.is_closed:  # made whole by its transport: nobody will read the stream
                for part in response.stream:
                    tee.piece(part)
                tee.end()
            else:
                response.stream = Recorded(response.stream, tee)
            return response

        def close(self) -> None:
            self._inner.close()

    class AsyncTwin(library.AsyncBaseTransport):  # type: ignore[name-defined,misc]
        """The async transport."""

        def __init__(self, run: OpenRun, inner: Any) -> None:
            self._run, self._inner = run, inner

        async def handle_async_request(self, request: Any) -> Any:
            call = _call(self._run, request, await request.aread())
            if call is None:
                return await self._inner.handle_async_request(request)
            try:
                answer = await in_thread(self._run.boundary.begin, call)
            except WorldlineError as error:
                return refused(request, error)
            if isinstance(answer, Served) and answer.never_ended:
                await asyncio.sleep(answer.patience)  # to be cancelled, as it was
                return refused(request, RecordEnds(answer.never_ended))
            if isinstance(answer, Served):
                if hung_up_at(answer.data) == -1:
                    await asyncio.sleep(answer.patience)
                return served(request, answer, Replayed(answer))
            request = sent(request, answer.body)
            try:
                response = await self._inner.handle_async_request(request)
            except Exception as error:
                await in_thread(_failed, answer, error)
                raise
            except BaseException as error:
                _failed(answer, error)  # a task that is cancelled waits for nothing
                raise
            tee = _Tee(answer, response)
            if response.is_closed:
                async for part in response.stream:
                    tee.piece(part)
                await in_thread(tee.end)
            else:
                response.stream = AsyncRecorded(response.stream, tee)
            return response

        async def aclose(self) -> None:
            await self._inner.aclose()

    return _Twins(Twin, AsyncTwin)


def _check_whole(library: Any, answer: Served) -> None:
    """A body that broke off in the record breaks off here too."""
    if not answer.data["complete"] and answer.data.get("closed_by") == "upstream":
        raise library.RemoteProtocolError(str(answer.data.get("why")))
