"""The two sides of a script: what the agent asked (`Ask`) and what the provider shall reply (`Say`, `Fail`, `Raw`).

A script is a callable from one to the other, plain or `async`. It runs in the provider's own thread and loop, so it
may await (to hold one answer back until another has been given) but should not block.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json import JSONDecodeError, loads
from typing import Any, Literal

Api = Literal["openai.chat", "openai.responses", "anthropic.messages", "gemini.generate"]
Framing = Literal["chunked", "length", "close"]
Encoding = Literal["gzip", "deflate"]
Headers = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Ask:
    """One model call, in a view that is the same for all APIs.

    `messages`, `tools` and `body` are as sent; `headers` has lower-case names. `tool_results` are the `(call id, text)`
    pairs of the newest turn, empty unless the call brings results; `last_user` is the newest text of the user. `n` is
    the 0-based index among all requests to this provider in order of arrival; `attempt` counts earlier requests with
    the same path and body, so it is 1 for the first retry. Decide by content or `attempt`, not by `n`, when an agent
    makes calls in parallel.
    """

    api: Api
    model: str
    messages: list[Any]
    tools: list[Any]
    tool_results: list[tuple[str, str]]
    last_user: str
    stream: bool
    n: int
    attempt: int
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """A call the model makes. Without `id` one is derived from the request, in the API's own form."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """How an answer's bytes travel; common to all replies.

    `first_delay` (seconds) passes before the status line, `delay` between two pieces. `abort_after=n` closes the socket
    abruptly after n pieces, with the body unfinished; where n is more than the pieces there are, nothing happens.
    `framing` is how the body is delimited: `chunked` (one transfer chunk a piece), `length` (Content-Length) or `close`
    (until the connection ends). By default streams are chunked and other bodies carry their length.
    """

    delay: float = 0.0
    first_delay: float = 0.0
    abort_after: int | None = None
    framing: Framing | None = None


@dataclass(frozen=True)
class Say(Delivery):
    """The model speaks: text, then tool calls, either may be empty.

    `usage` is (input tokens, output tokens), estimated from the sizes by default. `chunk` is the number of characters
    in a text or argument delta; 0 cuts text by words. `pieces` places the transfer borders: `events` (one server-sent
    event each), `whole` (one piece), `bytes:N` (N bytes each, so borders fall within characters and field names) or
    `awkward` (within each `data:`, within each multi-byte character and between the two newlines that end an event,
    but never between two events). `encoding` compresses; with `events` each piece can be decoded when it arrives.
    """

    text: str = ""
    calls: Sequence[ToolCall] = ()
    usage: tuple[int, int] | None = field(default=None, kw_only=True)
    chunk: int = field(default=0, kw_only=True)
    pieces: str = field(default="events", kw_only=True)
    encoding: Encoding | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Fail(Delivery):
    """The provider refuses, in its own error shape. `type` and `message` default to what it says for that status.

    For a quick retry give `headers={"retry-after-ms": "1"}`; the SDKs take `retry-after: 0` as no advice and back off
    for half a second. `code` is OpenAI's only.
    """

    status: int
    type: str | None = None
    message: str | None = None
    headers: Headers = ()
    code: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Raw(Delivery):
    """Anything else: a status, headers exactly in this order, and a body in exactly these pieces."""

    status: int
    headers: Headers = ()
    pieces: Sequence[bytes] = ()


Reply = Say | Fail | Raw
Script = Callable[[Ask], Reply | Awaitable[Reply]]

_CALL_LINE = re.compile(r"\s*call\s+([A-Za-z_][\w.-]*)\s*(\{.*\})?\s*")


def parrot(ask: Ask) -> Reply:
    """The default script: echoes the last user message.

    A line `call NAME {json}` becomes a tool call, several lines parallel calls, the other lines the text before them.
    Tool results are quoted back, each line behind `> `.
    """
    if ask.tool_results:
        return Say("\n".join(f"> {line}" for _, text in ask.tool_results for line in text.splitlines()))
    calls: list[ToolCall] = []
    said: list[str] = []
    for line in ask.last_user.splitlines():
        call = _call_in(line)
        if call is None:
            said.append(line)
        else:
            calls.append(call)
    return Say("\n".join(said), calls)


def _call_in(line: str) -> ToolCall | None:
    match = _CALL_LINE.fullmatch(line)
    if match is None:
        return None
    try:
        arguments = loads(match[2] or "{}")
    except JSONDecodeError:
        return None
    return ToolCall(match[1], arguments)
