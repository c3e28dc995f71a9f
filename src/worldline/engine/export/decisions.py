"""Model and tool calls as OpenTelemetry spans: one line of OTLP JSON per span, which collectors read as a file.

Names are those of the semantic conventions for generative AI: `chat`, `execute_tool`, `invoke_agent`, and `gen_ai.*`
attributes as the rows have them. Messages, arguments and results are not in them; the log holds those.

Ids are derived, so that the same run gives the same trace: trace = SHA-256("worldline/trace|" run) in 16 bytes,
span = SHA-256("worldline/span|" run "|" call) in 8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from worldline.engine.exchanges import Exchange
from worldline.engine.export.crossings import Crossings
from worldline.model.events import encode_json
from worldline.store.recording import Recording

INTERNAL, CLIENT = 1, 3  # SpanKind
ERROR = 2  # StatusCode
ROOT = ""  # the call of the span that holds all others


def decisions(recording: Recording) -> Iterator[bytes]:
    """The lines of `decisions.jsonl`: a span for each call as it ends, and at last the run's own."""
    crossings = Crossings(recording)
    for exchange in crossings:
        if not exchange.instant:
            yield _line(crossings, _span(crossings, exchange))
    agent = _agent(crossings)
    attributes = {"gen_ai.operation.name": "invoke_agent", **agent, "worldline.run.id": _run(crossings)}
    name = f"invoke_agent {agent.get('gen_ai.agent.name', '')}".strip()
    yield _line(crossings, _fields(crossings, ROOT, name, INTERNAL, 0, crossings.last, attributes))


def _span(crossings: Crossings, exchange: Exchange) -> dict[str, Any]:
    said = {**exchange.start_data, **exchange.data}
    attributes = {key: value for key, value in said.items() if key.startswith("gen_ai.")}
    kind, name = CLIENT, _name(exchange, said)
    if exchange.kind == "action":
        kind = INTERNAL
        attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": exchange.name}
    else:
        attributes["http.response.status_code"] = said.get("status")
    attributes["error.type"] = failure = _failure(exchange)
    attributes |= {"worldline.call": exchange.call, "worldline.seq": exchange.started, "worldline.lane": exchange.lane}
    end = next((t for t in (exchange.end_t, exchange.given_up_t) if t is not None), crossings.last)
    span = _fields(crossings, exchange.call, name, kind, exchange.start_t, end, attributes)
    span["parentSpanId"] = _id("span", f"{_run(crossings)}|{exchange.parent or ROOT}", 8)
    if failure is not None:
        span["status"] = {"code": ERROR}
    return span


def _name(exchange: Exchange, said: dict[str, Any]) -> str:
    if exchange.kind == "action":
        return f"execute_tool {exchange.name}"
    operation, model = said.get("gen_ai.operation.name"), said.get("gen_ai.request.model", "")
    return f"{operation} {model}".strip() if operation else exchange.name


def _failure(exchange: Exchange) -> str | None:
    """`error.type`: the class of the error, the HTTP status, or how the call stayed without an end; None for none."""
    data = exchange.data
    if exchange.finished is None:
        return "unknown"
    if "error" in data:
        return str(data["error"].get("kind") or data["error"].get("type"))
    if data.get("status", 0) >= 400:
        return str(data["status"])
    return None if data.get("complete", True) else f"closed by {data.get('closed_by', 'somebody')}"


def _fields(
    crossings: Crossings, call: str, name: str, kind: int, start: int, end: int, attributes: dict[str, Any]
) -> dict[str, Any]:
    return {
        "traceId": _id("trace", _run(crossings), 16),
        "spanId": _id("span", f"{_run(crossings)}|{call}", 8),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(crossings.wall(start)),
        "endTimeUnixNano": str(crossings.wall(end)),
        "attributes": _attributes(attributes),
    }


def _line(crossings: Crossings, span: dict[str, Any]) -> bytes:
    resource = {"service.name": _agent(crossings).get("gen_ai.agent.name", "worldline")}
    spans = {"scope": {"name": "worldline"}, "spans": [span]}
    whole = {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [spans]}]}
    return encode_json(whole) + b"\n"


def _agent(crossings: Crossings) -> dict[str, Any]:
    agent = crossings.header.get("agent", {})
    return {f"gen_ai.agent.{key}": str(agent[key]) for key in ("name", "version") if agent.get(key) is not None}


def _run(crossings: Crossings) -> str:
    return str(crossings.header.get("run"))


def _id(kind: str, name: str, size: int) -> str:
    return hashlib.sha256(f"worldline/{kind}|{name}".encode()).hexdigest()[: 2 * size]


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    pairs = ((key, _value(value)) for key, value in values.items())
    return [{"key": key, "value": value} for key, value in pairs if value is not None]


def _value(value: Any) -> dict[str, Any] | None:
    """A value in OTLP's JSON form; None for what has none."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [found for item in value if (found := _value(item)) is not None]}}
        case _:
            return None
