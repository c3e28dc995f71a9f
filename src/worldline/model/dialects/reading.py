"""The registry of dialects, and the two doors in: a request body to an `Ask`, a response body to a `Decision`.

Both take whatever came over the wire and never raise: a stream cut anywhere, a JSON body cut anywhere, a gateway's
HTML page, bytes made to break a parser.
"""

from __future__ import annotations

from typing import Any

from worldline.model.dialects import anthropic, gemini, openai_chat, openai_responses, pydantic_ai
from worldline.model.dialects.assembly import Assembly
from worldline.model.dialects.cut import close
from worldline.model.dialects.dialect import Dialect
from worldline.model.dialects.foreign import decode, error_text, objects, parse
from worldline.model.dialects.routes import TOOLLESS, UNKNOWN, may_ask
from worldline.model.dialects.shapes import Ask, Decision
from worldline.model.dialects.sse import all_events

DIALECTS: dict[str, Dialect] = {
    dialect.route: dialect
    for dialect in (
        openai_chat.DIALECT,
        openai_responses.DIALECT,
        openai_responses.RETRIEVED,
        anthropic.DIALECT,
        gemini.DIALECT,
        pydantic_ai.DIALECT,
    )
}
"""Every dialect that can be read, by the name of its route."""

_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


def can_read(route_name: str) -> bool:
    """Whether the answers of this route can be read."""
    return route_name in DIALECTS


def model_of(route_name: str, path: str) -> str | None:
    """The model that a request's path names, where this route has it there."""
    return gemini.model_of(path) if route_name == gemini.ROUTE else None


def carries_tools(route_name: str, inputs: Any = None) -> bool:
    """Whether an answer of this route may call tools. `inputs` is what the record has of its method and path.

    Of a route that nobody knows, it may where the request looks as if it asked a model.
    """
    if route_name != UNKNOWN:
        return route_name not in TOOLLESS
    return isinstance(inputs, dict) and may_ask(inputs.get("method"), inputs.get("path"))


def read_request(route_name: str, body: bytes) -> Ask | None:
    """What a request asks for; None if the route is no known dialect or the body is no JSON object."""
    dialect = DIALECTS.get(route_name)
    parsed = read_object(body)
    if dialect is None or parsed is None:
        return None
    return dialect.ask(parsed)


def read_object(body: bytes) -> dict[str, object] | None:
    """A JSON object from bytes, or None."""
    try:
        parsed = parse(decode(body))
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def read_response(route_name: str, status: int, content_type: str, body: bytes) -> Decision | None:
    """The answer in a response body, whole or cut; None only if the route is no known dialect.

    `body` is decoded of any content coding. Its own first bytes decide between a stream and JSON before
    `content_type` does, since gateways mislabel both. A status of 400 or more always gives an `error`, in the
    provider's words where there are any.

    Of a cut body, what came stays: every fragment of a stream up to its last whole event, every value of a JSON body
    and the beginning of a text that was cut. The text of a cut stream is a prefix of the text of the whole one,
    unless the provider itself starts its message over.
    """
    dialect = DIALECTS.get(route_name)
    if dialect is None:
        return None
    assembly = Assembly()
    if _is_stream(content_type, body):
        _read_stream(dialect, assembly, body)
    else:
        _read_json(dialect, assembly, body)
    if status >= 400:
        assembly.fail(f"HTTP {status}")
    return assembly.decision()


def _is_stream(content_type: str, body: bytes) -> bool:
    start = body[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"{", b"[")):
        return False
    return start.startswith(_SSE_STARTS) or content_type.strip().lower().startswith("text/event-stream")


def _read_stream(dialect: Dialect, assembly: Assembly, body: bytes) -> None:
    for number, event in enumerate(all_events(body)):
        data = event.data.strip()
        if data == dialect.end_data:
            assembly.ended = True
            continue
        if not data:
            continue
        try:
            parsed = parse(data)
        except ValueError as fault:
            assembly.fail(f"event {number} is not JSON: {fault}")
            continue
        if isinstance(parsed, dict):
            dialect.event(assembly, parsed)


def _read_json(dialect: Dialect, assembly: Assembly, body: bytes) -> None:
    if not body.strip():
        return
    try:
        parsed = parse(decode(body))
    except ValueError as fault:
        try:
            parsed = parse(close(decode(body, whole=False)))
        except ValueError:
            assembly.fail(f"the answer is not JSON: {fault}")
            return
        _take(dialect, assembly, parsed)
        # A part cannot be an ended answer, whatever its fields say.
        assembly.ended = False
        return
    if not _take(dialect, assembly, parsed):
        assembly.fail(f"the answer is not an object: {error_text(parsed)[:200]}")


def _take(dialect: Dialect, assembly: Assembly, parsed: object) -> bool:
    """Read an answer, or a list of its events where the dialect sends one; False where it is neither."""
    if isinstance(parsed, dict):
        dialect.answer(assembly, parsed)
    elif isinstance(parsed, list) and dialect.listed:
        for _, event in objects(parsed):
            dialect.event(assembly, event)
    else:
        return False
    return True
