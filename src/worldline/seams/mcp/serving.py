"""Serving: recorded answers, each in its turn, with what the server had said before it said again where it came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from worldline.engine.boundary import its_turn
from worldline.engine.crossing import RecordEnds, Served
from worldline.engine.messages import SOURCE, Message
from worldline.engine.threads import in_thread
from worldline.model import canon
from worldline.seams.mcp import frames, words
from worldline.seams.mcp.acquaintance import Acquaintance
from worldline.seams.mcp.ends import Asked, Outlet, Question, Refusal, tell
from worldline.seams.mcp.frames import Frame
from worldline.seams.mcp.recorded import Recorded
from worldline.seams.mcp.words import Words
from worldline.seams.remote import RemoteServed
from worldline.seams.wire.http import ClientGone

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CANCELLED = "notifications/cancelled"
Row = Callable[[str, dict[str, Any], str | None], Awaitable[None]]


class Serving:
    """Serves one conversation. `questions` are those that wait for the client's answer; `row` writes one row.

    `last` is the call that ended last, live or served.
    """

    def __init__(
        self, spoken: Words, known: Acquaintance, general: Outlet, questions: dict[bytes, Question], row: Row
    ) -> None:
        self._words = spoken
        self._known = known
        self._general = general
        self._questions = questions
        self._row = row
        self._recorded = Recorded([])
        self.last: str | None = None

    async def begin(self, messages: Sequence[Message]) -> None:
        """With what the record has of the server's messages, of which the first may come before any call."""
        self._recorded = Recorded(messages)
        await self._tell_between(None)

    async def serve(self, asked: Asked, answer: Served) -> None:
        """Give a recorded answer. Raises what reading it raises, `RecordEnds`, `Diverged` for a question before it."""
        frame, error = asked.frame, answer.data.get("error") or {}
        questions: list[Question] = []
        for message in self._recorded.during(answer.call):
            await self._recorded.come(message, lambda: not all(each.answered.done() for each in questions))
            if (question := await self._tell(message, asked)) is not None:
                questions.append(question)
        if answer.never_ended:
            await _hold(asked, answer.patience)
            if asked.cancelled.is_set():
                return
            raise RecordEnds(answer.never_ended)
        for question in questions:
            await question.answered
        made = self._words.response(frame, answer)
        await turn(answer)
        self._known.served(frame, made)
        if error.get("type") == words.UNANSWERED:
            await self.leave(answer)
            await _hold(asked, None)
            return
        if "result" in made.value:
            self._words.learn(frame, made.value["result"])
        if error.get("type") == words.HTTP_STATUS:
            with suppress(ClientGone):
                await asked.outlet.refuse(frame, _refusal(error["attributes"]))
        else:
            await tell(asked.outlet, made)
        await self.leave(answer)
        await self._tell_between(answer.call)

    async def leave(self, answer: Served) -> None:
        """An answer has left: those behind it may. Raises what the door raises."""
        self.last = answer.call
        self._recorded.leave(answer.call)
        if isinstance(answer, RemoteServed):
            await in_thread(answer.left)

    async def _tell(self, message: Message, asked: Asked | None) -> Question | None:
        """Say a recorded message again; the question, where it is one."""
        value = message.content.value()
        frame = frames.Frame(b"", value)
        if asked is not None:
            _of_this_call(frame, asked.frame)
        frame = frames.Frame(frames.encode(value), value)
        question = None
        if frame.is_request:
            question = self._questions[frame.key] = Question(frame)
        elif frame.method == CANCELLED:
            taken_back = self._questions.pop(canon.canonical(frame.params.get("requestId")), None)
            if taken_back is not None:
                taken_back.settle()
        await tell(self._general if asked is None or message.apart else asked.outlet, frame)
        return question

    async def _tell_between(self, call: str | None) -> None:
        for message in self._recorded.behind(call):
            await self._tell(message, None)
            if call is None:  # no call says that it was heard before
                said = {"name": self._words.server, "value": message.content, "on": None, "after": None}
                await self._row(SOURCE, said, None)


async def _hold(asked: Asked, patience: float | None) -> None:
    """Wait until the client gives a request up, as it did."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asked.cancelled.wait(), patience)
        asked.done.set()


async def turn(answer: Served) -> None:
    """Return when an answer may leave."""
    if isinstance(answer, RemoteServed):
        await in_thread(answer.wait)
    else:
        await its_turn(answer)


def _of_this_call(frame: Frame, asked: Frame) -> None:
    """A message of a recorded call names that call by a token of its client: now by the token of this one."""
    if frame.method == "notifications/progress" and "progressToken" in asked.meta:
        frame.params["progressToken"] = asked.meta["progressToken"]
    if SUBSCRIPTION in frame.meta:
        frame.meta[SUBSCRIPTION] = asked.id


def _refusal(attributes: dict[str, Any]) -> Refusal:
    headers = tuple((str(name), str(value)) for name, value in attributes.get("headers", ()))
    return Refusal(
        int(attributes["status"]), str(attributes.get("reason", "")), headers, str(attributes.get("body", ""))
    )
