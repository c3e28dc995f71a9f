"""The two ends of the proxy, as the conversation in between sees them: where a client listens, and a server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

import msgspec

from worldline.engine.crossing import Call, Live
from worldline.errors import WorldlineError
from worldline.seams.mcp.frames import Frame
from worldline.seams.wire.http import ClientGone, Headers


class ServerGone(WorldlineError):
    """The server ended, or cannot be reached."""


class Refusal(msgspec.Struct, frozen=True):
    """A server over HTTP that said no before it read a message: 401, 404 ... `headers` are those a client acts on."""

    status: int
    reason: str
    headers: Headers
    body: str


class Outlet(Protocol):
    """Where a client listens. Raises `ClientGone` where it no longer does."""

    async def send(self, frame: Frame, event: str | None = None) -> None:
        """Tell it a message; `event` is its id in a stream that may be resumed."""

    async def prime(self, event: str) -> None:
        """Tell it the id that its stream begins with, so that it can be resumed before the first message."""

    async def refuse(self, frame: Frame, refusal: Refusal) -> None:
        """Tell it that its request was refused over HTTP."""


class Asked:
    """A client's request on its way: where its answer goes, and the live crossing once it is one.

    `headers` came with it over HTTP and go on with it. `settled` is set when it is with the server or answered, `done`
    when it was answered, `cancelled` when nobody waits for that any more.
    """

    def __init__(self, frame: Frame, outlet: Outlet, headers: Headers = ()) -> None:
        self.frame = frame
        self.outlet = outlet
        self.headers = headers
        self.live: Live | None = None
        self.call: Call | None = None
        self.settled = asyncio.Event()
        self.done = asyncio.Event()
        self.cancelled = asyncio.Event()


class Question:
    """A request of the server to its client. `answered` is done when the answer has crossed."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self) -> None:
        """It is answered, or taken back."""
        if not self.answered.done():
            self.answered.set_result(None)

    def fail(self, error: WorldlineError) -> None:
        """Its answer is not the recorded one."""
        if not self.answered.done():
            self.answered.set_exception(error)
            self.answered.exception()  # where nobody waits for it, nobody misses it


async def tell(outlet: Outlet, frame: Frame, event: str | None = None) -> None:
    """Tell a client something; where it has gone, the record is whole all the same."""
    with suppress(ClientGone):
        await outlet.send(frame, event)


class Server(Protocol):
    """A running server. What it says goes to the conversation that opened it; `gone` is set when it has ended."""

    gone: asyncio.Event

    async def send(self, frame: Frame, asked: Asked | None = None, headers: Headers = ()) -> None:
        """Pass a message on. What belongs to a request has `asked`. Raises `ServerGone`."""

    async def drop(self, asked: Asked) -> None:
        """Nobody waits for the answer to `asked` any more."""

    async def leave(self) -> None:
        """The client will say nothing more; what it asked may still be answered."""

    async def close(self, grace: float) -> None:
        """The client has gone: let it end, for at most `grace` seconds, then end it. May be called twice."""
