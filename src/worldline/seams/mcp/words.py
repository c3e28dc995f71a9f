"""How the words of MCP cross the door: which request is what crossing, and what was recorded as a response again.

A tool call is an action of the tool's name. Every other request is a sample named after its method (`mcp.tools/list`):
it has no effect, so only what came back counts. `_meta` (who traces it, the token of its progress), ids, and the name
and version by which a client introduces itself are no part of what is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from worldline.engine.content import Content
from worldline.engine.crossing import Call, Served
from worldline.errors import ValueRefused, WorldlineError
from worldline.model import values
from worldline.seams.lanes import MAIN
from worldline.seams.mcp import frames
from worldline.seams.mcp.effects import Effects
from worldline.seams.mcp.frames import Frame

TOOL_CALL = "tools/call"
SAYS_WHO = {"initialize": ("clientInfo",)}
PROTOCOL = "io.modelcontextprotocol/protocolVersion"  # in `_meta` of clients that shake no hands
_OF_A_RESULT = frozenset(
    {"content", "structuredContent", "isError", "resultType", "inputRequests", "requestState", "task", "toolResult"}
)

MCP_ERROR, SERVER_ENDED, UNANSWERED, HTTP_STATUS = "McpError", "ServerEnded", "Unanswered", "HttpStatus"
"""The types of recorded failures: the server's own error; it ended; it never answered; it said no over HTTP."""


class Words:
    """Makes crossings of requests, for one server. `prefix` stands before its tools' names, as its client does it."""

    def __init__(self, server: str, prefix: str, effects: Effects) -> None:
        self.server = server
        self._effects = effects
        self._prefix = prefix
        self._schemas: dict[str, dict[str, Any]] = {}  # of results, by tool

    def call(self, frame: Frame) -> Call:
        """The crossing of a client's request. Raises `ValueRefused` for what no record can carry."""
        tool = frame.params.get("name")
        if frame.method == TOOL_CALL and isinstance(tool, str):
            return self._tool(tool, frame.params)
        silent = ("_meta", *SAYS_WHO.get(str(frame.method), ()))
        asked = {name: value for name, value in frame.params.items() if name not in silent}
        return self._sample(str(frame.method), {"params": asked})

    def answer(self, question: Frame, answer: Frame) -> Call:
        """The crossing of a client's answer to a question of the server: what it said. The question is a message."""
        return self._sample(str(question.method), {"answer": _said(answer)})

    def learn(self, frame: Frame, listed: Any) -> None:
        """Take from an answer, where it is one to `tools/list`, what it says of each tool."""
        if frame.method != "tools/list":
            return
        self._effects.learn(listed)
        tools = listed.get("tools") if isinstance(listed, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("outputSchema"), dict):
                self._schemas[str(tool.get("name"))] = tool["outputSchema"]

    def response(self, frame: Frame, served: Served) -> Frame:
        """The response to `frame` from what the record, a mock or the gate gives.

        Raises what reading a content raises.
        """
        told = served.data.get("error")
        if told is not None:
            return self._failed(frame, told)
        value = served.value()
        if frame.method == TOOL_CALL and not (isinstance(value, dict) and _OF_A_RESULT & value.keys()):
            value = self._result(frame, value)
        return frames.result(frame.id, value)

    def _failed(self, frame: Frame, told: Mapping[str, Any]) -> Frame:
        kind, message = str(told["type"]), str(told["message"])
        if kind == MCP_ERROR:
            attributes = values.restore(told.get("attributes", {}))
            plain = {"code": frames.INTERNAL_ERROR, "message": message}
            return frames.made({"id": frame.id, "error": attributes.get("error", plain)})
        if kind in (SERVER_ENDED, UNANSWERED, HTTP_STATUS) or frame.method != TOOL_CALL:
            return frames.error(frame.id, frames.SERVER_GONE, message)
        advice = self._effects.advice(str(frame.params.get("name")))
        return frames.result(frame.id, self._result(frame, f"{message}; {advice}" if advice else message, failed=True))

    def _result(self, frame: Frame, value: Any, failed: bool = False) -> dict[str, Any]:
        """A value as a tool of MCP gives it: for what a rule mocks, an edit says or the gate refuses."""
        text = value if isinstance(value, str) else frames.encode(value).decode("utf-8", "replace")
        shaped: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
        schema = self._schemas.get(str(frame.params.get("name")), {})
        if not failed and isinstance(value, dict):
            shaped["structuredContent"] = value
        elif not failed and list(schema.get("properties", ())) == ["result"]:  # how SDKs wrap what is no object
            shaped["structuredContent"] = {"result": value}
        return {"resultType": "complete", **shaped} if PROTOCOL in frame.meta else shaped

    def _tool(self, tool: str, params: Mapping[str, Any]) -> Call:
        given = params.get("arguments")
        arguments = dict(given) if isinstance(given, dict) else {} if given is None else {"mcp:arguments": given}
        judged = self._effects.of(tool, arguments)
        # What goes with the arguments says which call it is, too: the client's answers in a second round, a task.
        more = {f"mcp:{k}": v for k, v in params.items() if k not in ("name", "arguments", "_meta")}
        return Call(
            kind="action",
            name=self._prefix + tool,
            inputs=Content.of({**arguments, **more}),
            effect=str(judged.effect),
            idempotency_key=judged.idempotency_key,
            lane=MAIN,
            facts={"server": self.server, **judged.facts},
        )

    def _sample(self, method: str, inputs: Mapping[str, Any]) -> Call:
        whole = Content.of({"server": self.server, **inputs})
        return Call(kind="observation", name=f"mcp.{method}", inputs=whole, lane=MAIN)


def _said(answer: Frame) -> dict[str, Any]:
    """A response without what only pairs it with its request."""
    if "error" in answer.value:
        return {"error": answer.value["error"]}
    result = answer.value["result"]
    if isinstance(result, dict):
        result = {name: value for name, value in result.items() if name != "_meta"}
    return {"result": result}


def failure(answer: Frame) -> dict[str, Any]:
    """The error of a response as a row has it."""
    told = answer.value["error"]
    told = told if isinstance(told, dict) else {"code": frames.INTERNAL_ERROR, "message": str(told)}
    found: dict[str, Any] = {"type": MCP_ERROR, "message": values.readable(str(told.get("message", ""))), "args": None}
    with suppress(ValueRefused, values.TooDeep):
        found["attributes"] = values.plain({"error": told})
    return found


def broken(kind: str, why: str, **attributes: Any) -> dict[str, Any]:
    """A failure that is no response of the server."""
    found: dict[str, Any] = {"type": kind, "message": values.readable(why), "args": None}
    return {**found, "attributes": values.plain(attributes)} if attributes else found


def refused(frame: Frame, error: WorldlineError) -> Frame:
    """What a client is told where the run has no answer: the error, and its facts to be read by a program."""
    facts = {name: value for name, value in error.facts.items() if isinstance(value, str | int | float | list | None)}
    return frames.error(frame.id, frames.REFUSED, f"worldline: {error}", {"worldline": error.kind, **facts})
