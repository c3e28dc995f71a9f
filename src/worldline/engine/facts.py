"""What the record notes of a model exchange beside its bytes: names of OpenTelemetry GenAI, tool uses, tool results.

Small facts for lists, steps and coverage. They are read from the bytes as recorded and can be read again at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from worldline.model.dialects import (
    Decision,
    ToolResult,
    gen_ai_request,
    gen_ai_response,
    model_of,
    read_request,
    read_response,
)


class Told:
    """The tool calls that a recording's models asked for, and the results that its requests have carried (`seen`).

    A result is told of once. One whose id no model gave belongs to the first call of its tool that waits: some clients
    drop a call's id, and some make one up. A call that is asked for under an id once more (where the wire has none, the
    tool's name stands for it) has another result to come.
    """

    def __init__(self, seen: Iterable[str] = ()) -> None:
        self.seen = set(seen)
        self._waiting: dict[str, dict[str, None]] = {}  # tool -> ids of its calls, in order

    def asked(self, call: str, name: str) -> None:
        """A model asked for a call."""
        self.seen.discard(call)
        self._waiting.setdefault(name, {})[call] = None

    def fresh(self, results: Iterable[ToolResult]) -> list[str]:
        """The calls whose results no request has carried before."""
        found = []
        for result in results:
            if result.id in self.seen:
                continue
            waiting = self._waiting.get(result.name, {}) if result.name else {}
            call = result.id if result.id in waiting else next(iter(waiting), result.id)
            waiting.pop(call, None)
            self.seen.update((call, result.id))
            found.append(call)
        return found


def request_facts(route: str, body: bytes, told: Told, path: str = "") -> dict[str, Any]:
    """The facts of a request; `results` names the calls whose results no request before it carried (`told` grows)."""
    ask = read_request(route, body)
    facts: dict[str, Any] = gen_ai_request(route, ask)
    if ask is None:
        return facts
    if model := model_of(route, path):
        facts.setdefault("gen_ai.request.model", model)
    if fresh := told.fresh(ask.tool_results):
        facts["results"] = fresh
    if ask.server_held:
        facts["server_held"] = ask.server_held
    return facts


def response_decision(route: str, data: Mapping[str, Any], body: bytes) -> Decision | None:
    """The assembled answer of a finished row (`status`, `headers`) and its body."""
    content_type = next((value for name, value in data.get("headers", ()) if name.lower() == "content-type"), "")
    return read_response(route, int(data.get("status", 0)), str(content_type), body)


def response_facts(route: str, data: Mapping[str, Any], body: bytes, told: Told | None = None) -> dict[str, Any]:
    """The facts of a response: model, id, usage, finish reasons, and the tools that the agent is asked to run."""
    decision = response_decision(route, data, body)
    facts: dict[str, Any] = gen_ai_response(decision)
    if decision is None:
        return facts
    asked = [{"id": use.id, "name": use.name} for use in decision.tool_uses if use.runner == "client"]
    if asked:
        facts["tool_uses"] = asked
    if told is not None:
        for use in asked:
            told.asked(use["id"], use["name"])
    if decision.error:
        facts["said_error"] = decision.error[:300]
    return facts
