"""What the record notes of a model exchange beside its bytes: names of OpenTelemetry GenAI, tool uses, tool results.

Small facts for lists, steps and coverage. They are read from the bytes as recorded and can be read again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worldline.model.dialects import Decision, gen_ai_request, gen_ai_response, read_request, read_response


def request_facts(route: str, body: bytes, seen: set[str]) -> dict[str, Any]:
    """The facts of a request; `results` names the tool results that no request before it carried (`seen` grows)."""
    ask = read_request(route, body)
    facts: dict[str, Any] = gen_ai_request(route, ask)
    if ask is None:
        return facts
    fresh = [result.id for result in ask.tool_results if result.id not in seen]
    seen.update(fresh)
    if fresh:
        facts["results"] = fresh
    if ask.server_held:
        facts["server_held"] = ask.server_held
    return facts


def response_decision(route: str, data: Mapping[str, Any], body: bytes) -> Decision | None:
    """The assembled answer of a finished row (`status`, `headers`) and its body."""
    content_type = next((value for name, value in data.get("headers", ()) if name.lower() == "content-type"), "")
    return read_response(route, int(data.get("status", 0)), str(content_type), body)


def response_facts(route: str, data: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """The facts of a response: model, id, usage, finish reasons, and the tools that the agent is asked to run."""
    decision = response_decision(route, data, body)
    facts: dict[str, Any] = gen_ai_response(decision)
    if decision is None:
        return facts
    asked = [{"id": use.id, "name": use.name} for use in decision.tool_uses if use.runner == "client"]
    if asked:
        facts["tool_uses"] = asked
    if decision.error:
        facts["said_error"] = decision.error[:300]
    return facts
