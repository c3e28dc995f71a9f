"""The door's client side: a `Boundary` for a process that joins the run named by WORLDLINE_URL.

Connections are kept per thread. A run that cannot be reached raises `JoinError`: what would cross unrecorded does not
cross at all.
"""

from __future__ import annotations

import base64
import http.client
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any
from urllib.parse import urlsplit

import msgspec

from worldline import errors
from worldline.engine import failure, matcher
from worldline.engine.agent_state import Dumped
from worldline.engine.asking import Decision, Request
from worldline.engine.boundary import Call, Live, Served
from worldline.engine.content import Content
from worldline.engine.messages import Message
from worldline.engine.order import at_once
from worldline.engine.threads import in_thread
from worldline.errors import JoinError, WorldlineError
from worldline.model.values import refusal
from worldline.seams.door import pack_call, pack_content, pack_fields, unpack_content

_OURS = {
    name: value
    for module in (errors, failure, matcher)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, WorldlineError)
}


class RemoteBoundary:
    """Speaks to the recorder or replayer of another process at `url` (`http://127.0.0.1:PORT/<token>/`).

    Raises `JoinError` where nothing answers there.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._parts = urlsplit(url)
            self._address = (self._parts.hostname or "", self._parts.port)
        except ValueError as error:
            raise JoinError(f"WORLDLINE_URL is no URL of a run: {error}", url=url) from None
        self._local = threading.local()
        self.info = self.ask("info", {})
        self.mode: str = self.info["mode"]
        self.asks = RemoteAsks(self)

    def begin(self, call: Call, waits: bool = True) -> Served | Live:
        """Ask the run. Raises what its boundary raises.

        A served answer comes when its turn has; where `waits` is False at once, and `RemoteServed.wait` is its turn.
        """
        answer = self.ask("begin", pack_call(call) if waits else {**pack_call(call), "waits": False})
        if "served" in answer:
            return RemoteServed(answer["served"], None if waits else self, answer.get("never_ended"))
        changed = answer.get("body")
        return RemoteLive(self, answer["live"], changed and base64.b64decode(changed), answer.get("seed"))

    def note(self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Add a row that is no crossing."""
        self.ask("note", {"kind": kind, "src": src, "lane": lane, "keys": dict(keys), "data": pack_fields(data)})

    def forks(self) -> int | None:
        """How many forks the agent of that run came past."""
        passed: int | None = self.ask("forks", {})["forks"]
        return passed

    def restored(self) -> Dumped | None:
        """The state that the agent goes on from, on a branch that restores it."""
        told = self.ask("restored", {})
        content = unpack_content(told["state"])
        return None if content is None else Dumped(told["schema"], content.value())

    def heard(self, server: str) -> list[Message]:
        """What the record has of a server's messages beside its answers."""
        told = self.ask("heard", {"server": server})["messages"]
        return [Message(**{**each, "content": unpack_content(each["content"])}) for each in told]

    def ask(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """One verb of the door. Raises the door's own error, or `JoinError`."""
        try:
            encoded = msgspec.json.encode(body)
        except (UnicodeEncodeError, TypeError):
            raise refusal("what is no plain text or data", "$") from None
        try:
            status, answer = self._post(verb, encoded)
        except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            raise JoinError(f"cannot reach the run at WORLDLINE_URL ({self._parts.netloc}): {error}") from error
        if status != 200:
            told = answer.get("error", {})
            kind = _OURS.get(told.get("class", ""), JoinError)
            raise kind(told.get("message", f"the run refused: HTTP {status}"), **told.get("facts", {}))
        return answer

    def _post(self, verb: str, body: bytes) -> tuple[int, dict[str, Any]]:
        kept: tuple[int, http.client.HTTPConnection] | None = getattr(self._local, "connection", None)
        if kept is None or kept[0] != os.getpid():  # a forked child must not share its parent's connection
            kept = (os.getpid(), http.client.HTTPConnection(*self._address))
            self._local.connection = kept
        connection = kept[1]
        try:
            connection.request("POST", f"{self._parts.path}door/{verb}", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, msgspec.json.decode(response.read(), type=dict[str, Any])
        except BaseException:
            connection.close()
            self._local.connection = None
            raise


class RemoteAsks:
    """Asks for permission in the run of another process: whoever watches that run answers."""

    def __init__(self, boundary: RemoteBoundary) -> None:
        self._boundary = boundary

    def ask(self, request: Request) -> Decision:
        """Ask, and wait. Raises what recording raises, `JoinError` where the run is gone."""
        packed = {**msgspec.structs.asdict(request), "facts": pack_content(Content.of(request.facts))}
        return Decision(**self._boundary.ask("ask", packed))

    async def ask_async(self, request: Request) -> Decision:
        """The same, in a thread."""
        return await in_thread(self.ask, request)


class RemoteServed(Served):
    """An answer of the record, released by the other side already; where there is an `owner`, once `wait` returns."""

    def __init__(
        self, packed: Mapping[str, Any], owner: RemoteBoundary | None = None, never_ended: str | None = None
    ) -> None:
        self.never_ended = never_ended
        self._owner = owner
        self.call = packed["call"]
        self.data: Mapping[str, Any] = packed["data"]
        self.patience = packed["patience"]
        self._result = unpack_content(packed["result"])
        self._pieces = [(base64.b64decode(data), ends) for data, ends in packed["pieces"]]

    def content(self) -> Content | None:
        """The recorded result."""
        return self._result

    def pieces(self) -> list[tuple[bytes, bool]]:
        """The recorded body."""
        return self._pieces

    def wait(self) -> None:
        """Return when its turn has come. Whose turn is next waits until `left` says that this one has gone out."""
        if self._owner is not None:
            self._owner.ask("turn", {"call": self.call})

    def left(self) -> None:
        """It has gone out."""
        if self._owner is not None:
            self._owner.ask("left", {"call": self.call})

    def turn(self, into: Future[None] | None = None) -> Future[None]:
        """Come already: the other side waited, or `wait` did."""
        return at_once(into)


class RemoteLive(Live):
    """A call that this process carries out and the other side records."""

    def __init__(self, boundary: RemoteBoundary, call: str, body: bytes | None = None, seed: str | None = None) -> None:
        self.call = call
        self.body = body
        self.seed = seed
        self._boundary = boundary

    def encoded(self, encoding: str) -> None:
        """Name the body's content encoding."""
        self._boundary.ask("encoded", {"call": self.call, "encoding": encoding})

    def chunk(self, data: bytes, ends_chunk: bool = True) -> None:
        """Record a piece of the body."""
        packed = base64.b64encode(data).decode("ascii")
        self._boundary.ask("chunk", {"call": self.call, "data": packed, "ends_chunk": ends_chunk})

    def due(self) -> None:
        """Nothing to do: the pieces that are with the recorder already are written with the next one, or the end."""

    def finish(self, data: Mapping[str, Any], result: Content | None = None) -> None:
        """Record the answer."""
        self._boundary.ask("finish", {"call": self.call, "data": pack_fields(data), "result": pack_content(result)})

    def fail(self, error: Mapping[str, Any]) -> None:
        """Record the failure."""
        self._boundary.ask("fail", {"call": self.call, "error": dict(error)})

    def abandon(self, why: str) -> None:
        """Leave the call unfinished."""
        self._boundary.ask("abandon", {"call": self.call, "why": why})
