"""Running the proxy: which run it joins or opens, and how it ends.

It joins the run that it was started in and does there what that run does: it records, serves or goes on from a prefix.
Outside of any run it records one of its own, sealed when its client has gone.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from worldline.engine.boundary import RecordBoundary
from worldline.errors import JoinError, WorldlineError
from worldline.seams.environment import check_command, provider_keys
from worldline.seams.mcp.conversation import Conversation
from worldline.seams.mcp.effects import Effects
from worldline.seams.mcp.ends import Outlet, Server
from worldline.seams.mcp.frames import FRAME_MAX
from worldline.seams.mcp.joining import run_url, server_environment
from worldline.seams.mcp.stdio import StdioClient, StdioServer
from worldline.seams.mcp.words import Words
from worldline.seams.remote import RemoteBoundary
from worldline.seams.wire.http import Headers
from worldline.store.secrets.vault import MIN_LENGTH

if TYPE_CHECKING:
    from worldline.engine.spec import Spec
    from worldline.seams.session import RecordingSession

HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
GRACE_SECONDS = 1.5  # for a server whose client has gone: clients kill after two
PATIENCE_SECONDS = 60.0  # for what a client asked before it closed its end; it may still listen
HURRIED_SECONDS = 0.5  # for one that is ended by a signal to us
SERVER_ENDED = 4


class Proxied(msgspec.Struct, frozen=True, kw_only=True):
    """What is proxied: a server's command, or its URL; `name` tells it from the other servers of a run.

    `credentials` are headers that go to the URL. Clients come over HTTP where there is a `port` (0 is a free one), else
    over stdin and stdout. `most` is the bytes of a message.
    """

    name: str
    effects: Effects
    command: tuple[str, ...] = ()
    url: str | None = None
    credentials: Headers = ()
    prefix: str = ""
    port: int | None = None
    most: int = FRAME_MAX


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """How a run of its own is recorded, where the proxy belongs to none. `secrets` are by label."""

    store: Path
    task: str | None = None
    secrets: dict[str, str] = {}


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: the exit code; the recording, where it was one of its own; what went wrong, if anything did."""

    code: int
    path: Path | None = None
    why: str | None = None


def proxy(proxied: Proxied, own: Own, environment: Mapping[str, str], say: Callable[[str], None]) -> Ended:
    """Serve the client behind stdin and stdout until it goes, or those that come over HTTP until a signal does.

    `say` tells the user a line.

    Raises `JoinError` where its run cannot be reached or would write one of its secrets, `CommandNotFound`, and what
    recording raises.
    """
    if proxied.url is not None:
        from worldline.seams.mcp.http_server import address

        address(proxied.url)
    url = run_url(environment)
    if url is not None:
        boundary = RemoteBoundary(url)
        _check_secrets(boundary, own.secrets, environment)
        if boundary.mode == "record" and proxied.url is None:
            check_command(proxied.command)
        return asyncio.run(_Proxy(boundary, proxied, server_environment(environment, url), say).run())
    if proxied.url is None:
        check_command(proxied.command)
    # Imported where it is used: the client of a proxy waits for it to start, and one that joins a run needs none of it.
    from worldline.seams.session import RecordingSession

    session = RecordingSession(_spec(proxied, own, environment), environment)
    opened = session.boundary
    assert isinstance(opened, RecordBoundary), "nothing else was asked for"
    return _recorded(session, _Proxy(opened, proxied, dict(environment), say), say)


def _spec(proxied: Proxied, own: Own, environment: Mapping[str, str]) -> Spec:
    from worldline.engine.spec import Spec

    secrets = {**provider_keys(environment, MIN_LENGTH), **own.secrets}
    agent = {"name": f"client of {proxied.name}", "server": list(proxied.command) or [proxied.name]}
    return Spec(store=own.store, task=own.task, agent=agent, secrets=secrets)


def _recorded(session: RecordingSession, running: _Proxy, say: Callable[[str], None]) -> Ended:
    """Run it in a recording of its own, and seal that; one in which nothing crossed leaves no trace."""
    recorder = session.recorder
    say(f"recording {recorder.run}")
    try:
        ended = asyncio.run(running.run())
    except BaseException:
        if recorder.log.seq == 1:
            session.discard()
        else:
            session.leave()
        raise
    if recorder.log.seq == 1:
        session.discard()
        return ended
    recorder.outcome = {"outcome": "failed" if ended.why else "succeeded", **recorder.outcome}
    if ended.why:
        recorder.outcome["error"] = recorder.vault.masked(ended.why)
    try:
        path = session.close("partial" if running.interrupted else "complete", running.interrupted)
    except WorldlineError:
        session.leave()
        raise
    return msgspec.structs.replace(ended, path=path)


def _check_secrets(boundary: RemoteBoundary, secrets: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """A run that is joined froze its secrets when it began. Raises `JoinError` where it would write one of ours."""
    labels = boundary.info["secrets"]
    held = {environment.get(label) for label in labels}
    missing = [label for label, value in secrets.items() if label not in labels and value not in held]
    if missing and boundary.mode != "replay":
        raise JoinError(
            f"the run that is joined does not hold back {', '.join(missing)}; name the variable when that run begins: "
            "`worldline record --secret-env NAME`",
            labels=missing,
        )


class _Proxy:
    """The proxy at work: conversations of one client or of many, each with a server of its own."""

    def __init__(
        self,
        boundary: RemoteBoundary | RecordBoundary,
        proxied: Proxied,
        environment: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._boundary = boundary
        self._proxied = proxied
        self._environment = environment
        self._say = say
        self._words = Words(proxied.name, proxied.prefix, proxied.effects)
        self._signal: signal.Signals | None = None
        self._stopped = asyncio.Event()
        self._left = False  # the client has gone by itself, whatever hurries us then
        self.interrupted: str | None = None  # why its recording is partial

    async def run(self) -> Ended:
        """From the first message of a client to the last."""
        with _signals(self._stop):
            return await (self._piped() if self._proxied.port is None else self._listening(self._proxied.port))

    async def _piped(self) -> Ended:
        client = StdioClient(most=self._proxied.most)
        conversation = self._conversation(client)
        await conversation.start()
        hearing = asyncio.create_task(_hear(client, conversation))
        await _first(hearing, self._stopped, conversation.over)
        if hearing.done() and hearing.exception() is None and not self._stopped.is_set():
            await conversation.leave(PATIENCE_SECONDS, self._stopped)
            self._left = True
        self._look(conversation.open_calls)
        await conversation.close(self._grace)
        if hearing.done() and (failed := hearing.exception()) is not None:
            raise failed
        hearing.cancel()
        if conversation.over.is_set():
            return Ended(code=SERVER_ENDED, why=conversation.ended)
        return Ended(code=self._code)

    async def _listening(self, port: int) -> Ended:
        from worldline.seams.mcp.listening import Listening

        listening = Listening(self._conversation, self._proxied.most)
        self._say(f"listening on http://127.0.0.1:{await listening.start(port)}/mcp")
        await self._stopped.wait()
        self._look(listening.open_calls)
        await listening.close(self._grace)
        return Ended(code=0)  # a signal is how it is ended

    def _conversation(self, general: Outlet) -> Conversation:
        return Conversation(self._boundary, self._words, self._open, general, self._say)

    async def _open(self, conversation: Conversation) -> Server:
        at = self._proxied
        if at.url is None:
            return await StdioServer.open(at.command, self._environment, conversation, at.name, at.most)
        from worldline.seams.mcp.http_server import HttpServer

        listens = at.port is not None
        return HttpServer(at.url, conversation, at.name, credentials=at.credentials, listens=listens, most=at.most)

    def _stop(self, number: int) -> None:
        self._signal = self._signal or signal.Signals(number)
        self._stopped.set()

    def _look(self, open_calls: int) -> None:
        if self._signal is not None and open_calls and not self._left:
            self.interrupted = f"interrupted by {self._signal.name}"

    @property
    def _grace(self) -> float:
        return GRACE_SECONDS if self._signal is None else HURRIED_SECONDS

    @property
    def _code(self) -> int:
        return 0 if self._signal is None or self._left else 128 + self._signal


async def _first(task: asyncio.Task[None], *events: asyncio.Event) -> None:
    """Return when the task has ended or an event has come."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait([task, *waits], return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _hear(client: StdioClient, conversation: Conversation) -> None:
    """All that a client says, each message in its order, requests beside each other."""
    tasks: set[asyncio.Task[None]] = set()
    async for frame in client.messages():
        task = asyncio.create_task(conversation.hear(frame, client))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.sleep(0)  # what came last is under way, too
    await conversation.settle(GRACE_SECONDS)


@contextmanager
def _signals(take: Callable[[int], None]) -> Iterator[None]:
    """Signals to us, for as long as it lasts; those that were ignored when we began stay so."""
    loop = asyncio.get_running_loop()
    heard = [number for number in HEARD if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, take, number)
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)
