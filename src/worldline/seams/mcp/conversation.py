"""One client's conversation with one server: each request crosses the door, then goes on live or is served.

The server is started when the first call is live: at once where a run is recorded, behind the prefix on a branch, never
on a replay. On a branch it gets to know its client first, as the record has it. What the server says beside its answers
stands in the record with the place where it came, and is said there again.
"""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from worldline.engine.boundary import RecordBoundary
from worldline.engine.content import Content
from worldline.engine.crossing import Call, Live, Served
from worldline.engine.messages import SOURCE
from worldline.engine.threads import in_thread
from worldline.errors import ValueRefused, WorldlineError
from worldline.model import canon
from worldline.seams.lanes import MAIN
from worldline.seams.mcp import frames, words
from worldline.seams.mcp.acquaintance import Acquaintance
from worldline.seams.mcp.ends import Asked, Outlet, Question, Refusal, Server, ServerGone, tell
from worldline.seams.mcp.frames import Frame
from worldline.seams.mcp.serving import CANCELLED, Serving, turn
from worldline.seams.mcp.words import Words
from worldline.seams.remote import RemoteBoundary
from worldline.seams.wire.http import ClientGone, Headers

PING = "ping"
SETTLE_SECONDS = 0.5
NOTHING = Content(b"null")
GONE = "the client went away before it was answered"


class Conversation:
    """`hear` takes what the client says, `told` what the server does. `opens` starts the server.

    `general` is where a message goes that belongs to no request; `say` tells the user a line. `facts` may add to the
    record of how the client was welcomed.
    """

    def __init__(
        self,
        boundary: RemoteBoundary | RecordBoundary,
        spoken: Words,
        opens: Callable[[Conversation], Awaitable[Server]],
        general: Outlet,
        say: Callable[[str], None],
    ) -> None:
        self.general = general
        self._boundary = boundary
        self._begin: Callable[[Call], Served | Live] = boundary.begin
        if isinstance(boundary, RemoteBoundary):
            self._begin = functools.partial(boundary.begin, waits=False)
        self._words = spoken
        self._opens = opens
        self._say = say
        self.server: Server | None = None
        self.ended: str | None = None  # why the server is gone
        self.over = asyncio.Event()
        self.live = asyncio.Event()  # there is a server
        self._opening = asyncio.Lock()
        self._order: dict[Any, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._pending: dict[bytes, Asked] = {}
        self._questions: dict[bytes, Question] = {}
        self._known = Acquaintance(spoken.server)
        self._served = Serving(spoken, self._known, general, self._questions, self._row)

    async def start(self) -> None:
        """Begin: with a live server where all is live, and with what the record has where it is not."""
        if self._boundary.mode == "record":
            await self._live_server()  # an eager start: it gets ready while its client does
            return
        await self._served.begin(await in_thread(self._boundary.heard, self._words.server))

    async def hear(self, frame: Frame, outlet: Outlet, headers: Headers = ()) -> None:
        """A message of the client. Of a request it returns when that was answered, or nobody waits for it any more."""
        if frame.is_response:
            await self._answered(frame, headers)
        elif frame.is_request:
            await self.ask(Asked(frame, outlet, headers))
        elif frame.method == CANCELLED:
            await self._cancelled(frame, headers)
        else:
            async with self._order[self._place(frame)]:
                self._known.hear(frame)
                await self._pass_on(frame, headers=headers)

    async def ask(self, asked: Asked) -> None:
        """A request of the client, answered when this returns."""
        frame = asked.frame
        if frame.method == PING and self.server is None:
            await tell(asked.outlet, frames.result(frame.id, {}))
            return
        self._pending[frame.key] = asked
        try:
            async with self._order[self._place(frame)]:
                if frame.method == PING:
                    answer = None
                    await self._pass_on(frame, asked, asked.headers)
                else:
                    call = self._words.call(frame)
                    answer = await in_thread(self._begin, call)
                    if isinstance(answer, Live):
                        asked.live, asked.call = answer, call
                        await self._go(asked)
            if isinstance(answer, Served):
                await self._served.serve(asked, answer)
            else:
                asked.settled.set()
                await asked.done.wait()
        except WorldlineError as error:
            await tell(asked.outlet, words.refused(frame, error))
        finally:
            self._forget(asked)
            asked.settled.set()

    async def cancel(self, asked: Asked, why: str) -> None:
        """Nobody waits for a request any more."""
        asked.cancelled.set()
        if asked.live is not None and not asked.done.is_set():
            await self._give_up(asked, why)
            if self.server is not None:
                await self.server.drop(asked)

    async def told(
        self, frame: Frame, on: Asked | None = None, event: str | None = None, *, apart: bool = False
    ) -> None:
        """A message of the server; `on` is the request in whose stream it came, `apart` that it came in no such one."""
        if frame.is_response:
            await self._response(frame, on, event)
            return
        on = on or self._owner(frame)
        outlet = self.general if on is None or apart else on.outlet
        if frame.is_request:
            self._questions[frame.key] = Question(frame)
        if frame.method != PING:
            await self._note(frame, on, apart)
        await tell(outlet, frame, event)

    async def refused(self, asked: Asked, refusal: Refusal) -> None:
        """The server said no to a request over HTTP."""
        headers = [list(pair) for pair in refusal.headers]
        why = f"the server answered HTTP {refusal.status} {refusal.reason}".rstrip()
        failed = words.broken(
            words.HTTP_STATUS, why, status=refusal.status, reason=refusal.reason, headers=headers, body=refusal.body
        )
        await self._fail(asked, failed)
        with suppress(ClientGone):
            await asked.outlet.refuse(asked.frame, refusal)
        asked.done.set()

    async def lost(self, asked: Asked, why: str) -> None:
        """No answer to a request will come, although its client waits."""
        await self._fail(asked, words.broken(words.SERVER_ENDED, why))
        await tell(asked.outlet, frames.error(asked.frame.id, frames.SERVER_GONE, why))
        asked.done.set()

    async def server_ended(self, why: str) -> None:
        """The server is gone: whoever waits is told."""
        self.ended = why
        for asked in list(self._pending.values()):
            if asked.live is not None and not asked.done.is_set():
                await self.lost(asked, why)
        self.over.set()

    async def stray(self, data: bytes, why: str) -> None:
        """The server wrote what is no message: its client never sees it, the record and the user do."""
        text = data[:2000].decode("utf-8", "replace")
        self._say(f"{self._words.server} wrote what is no message of MCP ({why}): {text[:200]}")
        await self._row("mcp_stray", {"name": self._words.server, "value": Content.of(text)}, None)

    async def settle(self, seconds: float) -> None:
        """Return when all that the client asked is with the server or answered, or the time is up."""
        waits = [asyncio.ensure_future(asked.settled.wait()) for asked in self._pending.values()]
        if waits:
            await asyncio.wait(waits, timeout=seconds)
        for wait in waits:
            wait.cancel()

    async def leave(self, seconds: float, stopped: asyncio.Event) -> None:
        """The client will say nothing more: return when what it asked is answered, can no longer be, or is to stop."""
        if self.server is None:
            return
        await self.server.leave()
        answered: asyncio.Future[Any] = asyncio.gather(
            *(asked.done.wait() for asked in self._pending.values() if asked.live is not None)
        )
        waits = {answered}
        waits.update(asyncio.ensure_future(event.wait()) for event in (stopped, self.over, self.server.gone))
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    @property
    def open_calls(self) -> int:
        """How many requests are with the server."""
        return sum(asked.live is not None and not asked.done.is_set() for asked in self._pending.values())

    async def close(self, grace: float) -> None:
        """The client has gone: the server ends, what it had not answered stays so, on record."""
        await self.settle(min(grace, SETTLE_SECONDS))  # what crosses at this moment is then known to be open
        if self.server is not None:
            await self.server.close(grace)
        for asked in list(self._pending.values()):
            asked.cancelled.set()
            if asked.live is not None and not asked.done.is_set():
                with suppress(WorldlineError):  # a recorder that broke has said so
                    await self._give_up(asked, GONE)
        for question in self._questions.values():
            question.answered.cancel()

    # -------------------------------------------------------------------------------------------------------- live

    async def _go(self, asked: Asked) -> None:
        """Send a live request on, to a server that is started for it where there is none."""
        if asked.cancelled.is_set():
            await self._give_up(asked, "cancelled by the client")
            return
        try:
            server = await self._live_server()
            await server.send(asked.frame, asked, asked.headers)
        except ServerGone as gone:
            await self.lost(asked, str(gone))
        except WorldlineError as error:
            await self._fail(asked, words.broken(words.SERVER_ENDED, str(error)))
            raise

    async def _live_server(self) -> Server:
        async with self._opening:
            if self.ended is not None:
                raise ServerGone(self.ended)
            if self.server is None:
                self.server = await self._opens(self)
                self.live.set()
                if warning := await self._known.introduce(self.server):
                    self._say(warning)
                    said = {"name": self._words.server, "value": Content.of(warning)}
                    await self._row("mcp_server", said, None)
            return self.server

    async def _pass_on(self, frame: Frame, asked: Asked | None = None, headers: Headers = ()) -> None:
        """Send on what crosses no door, where there is a server."""
        if self.server is None or self.ended is not None:
            if asked is not None:
                raise ServerGone(self.ended or "there is no server")
            return
        await self.server.send(frame, asked, headers)

    async def _response(self, frame: Frame, on: Asked | None, event: str | None) -> None:
        if self._known.answered(frame):
            return
        asked = on or self._pending.get(frame.key)
        if asked is None or asked.done.is_set():  # cancelled, and answered all the same
            await tell(self.general if asked is None else asked.outlet, frame, event)
            return
        try:
            await self._finish(asked, frame)
        except WorldlineError as error:
            frame = words.refused(asked.frame, error)
        await tell(asked.outlet, frame, event)
        asked.done.set()

    async def _finish(self, asked: Asked, frame: Frame) -> None:
        """Write down the answer to a live request."""
        live = asked.live
        if live is None:  # a ping
            return
        if "error" in frame.value:
            await self._fail(asked, words.failure(frame))
            return
        value = frame.value["result"]
        self._words.learn(asked.frame, value)
        data: dict[str, Any] = {}
        content: Content | None = None
        try:
            content = Content.of(value)
        except ValueRefused as refused:
            data["unrecordable"] = {"path": refused.facts["path"], "type": refused.facts["type"]}
        if asked.call is not None and asked.call.kind == "observation":
            data["arguments"] = asked.call.inputs
        await in_thread(live.finish, data, content)
        self._served.last = live.call

    async def _fail(self, asked: Asked, error: dict[str, Any]) -> None:
        if asked.live is not None:
            await in_thread(asked.live.fail, error)
            self._served.last = asked.live.call

    async def _give_up(self, asked: Asked, why: str) -> None:
        """A live request that nobody waits for: of a tool's call nobody knows how it ended, a sample says so itself."""
        live = asked.live
        if live is None:
            return
        asked.done.set()
        if asked.call is not None and asked.call.kind == "action":
            await in_thread(live.abandon, why)
        else:
            await in_thread(live.fail, words.broken(words.UNANSWERED, why))
            self._served.last = live.call

    async def _cancelled(self, frame: Frame, headers: Headers) -> None:
        asked = self._pending.get(canon.canonical(frame.params.get("requestId")))
        async with self._order[self._place(asked.frame if asked is not None else frame)]:
            with suppress(ServerGone):
                await self._pass_on(frame, headers=headers)
            if asked is not None:
                reason = frame.params.get("reason")
                await self.cancel(asked, f"cancelled by the client: {reason}" if reason else "cancelled by the client")

    def _owner(self, frame: Frame) -> Asked | None:
        """The request to which a message belongs: by the token of its progress, else the last one that is open."""
        waiting = [asked for asked in self._pending.values() if asked.live is not None and not asked.done.is_set()]
        if frame.method == "notifications/progress":
            token = frame.params.get("progressToken")
            waiting = [asked for asked in waiting if asked.frame.meta.get("progressToken") == token] or waiting
        return waiting[-1] if waiting else None

    async def _note(self, frame: Frame, on: Asked | None, apart: bool) -> None:
        try:
            value = Content.of(frame.value)
        except ValueRefused as refused:
            self._say(f"a message of {self._words.server} cannot be recorded: {refused}")
            return
        call = on.live.call if on is not None and on.live is not None else None
        said = {"name": self._words.server, "value": value, "on": call, "after": self._served.last}
        said |= {"apart": True} if apart else {}
        await self._row(SOURCE, said, call or self._served.last)

    async def _row(self, src: str, data: dict[str, Any], parent: str | None) -> None:
        try:
            await in_thread(self._boundary.note, "observation", src, MAIN, {"parent_id": parent}, data)
        except WorldlineError as error:
            self._say(f"a message of {self._words.server} is not in the record: {error}")

    # ------------------------------------------------------------------------------------------------- both of them

    async def _answered(self, frame: Frame, headers: Headers) -> None:
        """The client's answer to a question of the server, which crosses, too: it is the agent's."""
        question = self._questions.pop(frame.key, None)
        if question is None or question.frame.method == PING:
            await self._pass_on(frame, headers=headers)
            return
        try:
            call = self._words.answer(question.frame, frame)
            answer = await in_thread(self._begin, call)
            if isinstance(answer, Live):
                await in_thread(answer.finish, {"arguments": call.inputs}, NOTHING)
                self._served.last = answer.call
            else:
                await turn(answer)
                await self._served.leave(answer)
        except WorldlineError as error:
            question.fail(error)
            frame = words.refused(frame, error)
        question.settle()
        with suppress(ServerGone):
            await self._pass_on(frame, headers=headers)

    def _place(self, frame: Frame) -> Any:
        """What goes in order: all that is recorded; where answers are served, what has one key."""
        if self._boundary.mode == "record":
            return None
        return frame.method, canon.canonical(frame.params.get("arguments", frame.params.get("uri")))

    def _forget(self, asked: Asked) -> None:
        if self._pending.get(asked.frame.key) is asked:
            del self._pending[asked.frame.key]
