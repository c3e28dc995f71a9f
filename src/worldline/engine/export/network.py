"""HTTP exchanges in the form of HAR 1.2 entries, one line each: who was asked what, how long it took, how it ended.

Headers are those that the record keeps; the others' values are withheld there already. Bodies are not in it, only their
sizes (the log holds them), and no host, which no recording keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from worldline.engine.exchanges import Exchange
from worldline.engine.export.crossings import Crossings
from worldline.model.events import encode_json
from worldline.store.recording import Recording

NOT_KNOWN = -1  # HAR's word for a size or a time that nobody measured
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def network(recording: Recording) -> Iterator[bytes]:
    """The lines of `network.jsonl`: an entry for each HTTP exchange, as it ends."""
    crossings = Crossings(recording)
    for exchange in crossings:
        if exchange.kind == "decision":
            yield encode_json(_entry(crossings, exchange)) + b"\n"


def _entry(crossings: Crossings, exchange: Exchange) -> dict[str, Any]:
    data = exchange.data
    wait, elapsed = _milliseconds(data.get("first_ns")), _milliseconds(data.get("elapsed_ns"))
    receive = round(elapsed - wait, 3) if NOT_KNOWN not in (wait, elapsed) else NOT_KNOWN
    error = data.get("error")
    return {
        "startedDateTime": _moment(crossings.wall(exchange.start_t)),
        "time": max(elapsed, 0),
        "request": _request(exchange.start_data),
        "response": _response(data),
        "cache": {},
        "timings": {"send": NOT_KNOWN, "wait": wait, "receive": receive},
        "_call": exchange.call,
        "_seq": exchange.started,
        "_lane": exchange.lane,
        "_route": exchange.name,
        "_error": None if error is None else str(error.get("kind") or error.get("type")),
        "_complete": exchange.finished is not None and error is None and data.get("complete", True),
    }


def _request(data: dict[str, Any]) -> dict[str, Any]:
    inputs, body = data.get("inputs"), data.get("body")
    said: dict[str, Any] = inputs if isinstance(inputs, dict) else {}
    pairs = [pair for pair in _list(said.get("query")) if isinstance(pair, list) and len(pair) == 2]
    query = [(str(name), str(value)) for name, value in pairs]
    path = str(data.get("path", said.get("path", "")))
    size = body.get("size", body.get("$withheld", {}).get("size", NOT_KNOWN)) if isinstance(body, dict) else 0
    return {
        "method": str(said.get("method", "")),
        "url": f"{path}?{urlencode(query)}" if query else path,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _headers(data),
        "queryString": [{"name": name, "value": value} for name, value in query],
        "headersSize": NOT_KNOWN,
        "bodySize": size,
    }


def _response(data: dict[str, Any]) -> dict[str, Any]:
    headers, size = _headers(data), data.get("body_size", NOT_KNOWN)
    kind = next((pair["value"] for pair in headers if pair["name"].lower() == "content-type"), "")
    return {
        "status": data.get("status", 0),
        "statusText": str(data.get("reason", "")),
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": headers,
        "content": {"size": size, "mimeType": kind},
        "redirectURL": "",
        "headersSize": NOT_KNOWN,
        "bodySize": size,
    }


def _headers(data: dict[str, Any]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in data.get("headers", ())]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _milliseconds(nanoseconds: Any) -> float:
    return round(nanoseconds / 1e6, 3) if isinstance(nanoseconds, int) else NOT_KNOWN


def _moment(ns: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=ns // 1000)).isoformat(timespec="milliseconds")
    except OverflowError:  # behind the year 9999
        return _EPOCH.isoformat(timespec="milliseconds")
