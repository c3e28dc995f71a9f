"""An HTTP exchange as the door sees it: how a request becomes a call, and which headers the record keeps.

Headers are kept by allow-list. Another header's name is kept and its value withheld, unless a registered secret stands
in it: then the secret's marker does, so that people see which key went where. Host, port and token never enter a key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from worldline.engine.boundary import Call
from worldline.engine.content import Content
from worldline.model.dialects import route
from worldline.seams.wire.http import Headers, header, with_header

WITHHELD = "[withheld]"
LANE, PARENT, INTERNAL = "x-worldline-lane", "x-worldline-parent", "x-worldline-"
_SAFE = frozenset(
    [
        "accept",
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "cache-control",
        "content-encoding",
        "content-language",
        "content-length",
        "content-type",
        "date",
        "idempotency-key",
        "openai-beta",
        "openai-model",
        "openai-processing-ms",
        "openai-version",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "server",
        "traceparent",
        "transfer-encoding",
        "user-agent",
        "vary",
        "via",
        "x-request-id",
        "x-should-retry",
    ]
)
_SAFE_PREFIXES = ("x-stainless-", "x-ratelimit-", "anthropic-ratelimit-")
_CREDENTIAL = re.compile(r"(?i)key|token|secret|signature|credential|password|^sig$|^code$|^auth|^samlresponse$")


def call_of(
    method: str,
    target: str,
    headers: Headers,
    body: bytes,
    markers: Callable[[str], str | None],
    lane: str = "main",
    parent: str | None = None,
) -> Call:
    """The call that a request is. `target` is its path and query without the token and the provider's name."""
    path, _, query = target.partition("?")
    where = route(method, path)
    inputs = {"method": method, "path": where.tail, "query": recorded_query(query)}
    return Call(
        kind="decision",
        name=where.name,
        inputs=Content.of(inputs),
        body=body,
        key_body=_without_boundary(header(headers, "content-type"), body),
        lane=header(headers, LANE) or lane,
        parent=header(headers, PARENT) or parent,
        facts={"path": path, "headers": recorded_headers(headers, markers)},
    )


def recorded_query(query: str) -> list[list[str]]:
    """A query's pairs, sorted, credentials withheld by their name."""
    pairs = parse_qsl(query, keep_blank_values=True)
    return sorted([name, WITHHELD if _CREDENTIAL.search(name) else value] for name, value in pairs)


def recorded_headers(headers: Iterable[tuple[str, str]], markers: Callable[[str], str | None]) -> list[list[str]]:
    """The headers as the record keeps them. `markers` gives the markers of the secrets inside a value, or None."""
    kept = []
    for name, value in headers:
        plain = name.lower()
        if plain.startswith(INTERNAL) or plain == "host":
            continue
        if plain in _SAFE or plain.startswith(_SAFE_PREFIXES):
            kept.append([name, value])  # the vault's choke point looks into it
        else:
            kept.append([name, markers(value) or WITHHELD])
    return kept


def recorded_location(tail: str) -> str:
    """Where a redirect leads behind the same base URL, credentials in its query withheld."""
    path, mark, query = tail.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(_CREDENTIAL.search(name) for name, _ in pairs):
        return tail
    return path + mark + urlencode([(name, WITHHELD if _CREDENTIAL.search(name) else value) for name, value in pairs])


def led_on(headers: Headers, place: str) -> Headers:
    """Headers whose redirect, as recorded, leads through the proxy: `place` is the base path of the provider there."""
    location = header(headers, "location")
    inside = location is not None and location.startswith("/")
    return with_header(headers, "Location", f"{place}{location}") if inside else headers


def served_headers(data: Mapping[str, Any]) -> Headers:
    """The headers to serve from a finished row: what was withheld is left out, and an encoding that is undone too."""
    decoded = "decoded" in data
    return tuple(
        (name, value)
        for name, value in data["headers"]
        if value != WITHHELD and not (decoded and name.lower() in ("content-encoding", "content-length"))
    )


def _without_boundary(content_type: str | None, body: bytes) -> bytes | None:
    """A multipart body with its random boundary masked, as the key reads it; None for other bodies."""
    found = re.search(r'(?i)^multipart/.*boundary="?([^";]+)', content_type or "")
    return body.replace(found[1].encode("latin-1"), b"boundary") if found else None
