"""Frames: the messages of JSON-RPC 2.0 as MCP sends them, one JSON object each, read and made by hand.

A frame that came is passed on as the bytes that it was. What was recorded is made anew, compact, with its members in
the recorded order. Numbers of any size and texts with lone surrogates go through unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from worldline.model import canon

FRAME_MAX = 64 * 1024 * 1024
"""Bytes of one frame, by default."""

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
CANCELLED = -32800
SERVER_GONE = -32000  # what SDKs say of a connection that closed, too
REFUSED = -32050  # of Worldline's own: the run has no answer, or cannot record one


class NoMessage(Exception):
    """Bytes that are no message of JSON-RPC. `code` is what a client is told of its own."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class Frame(msgspec.Struct, frozen=True):
    """One message: the bytes that it came as, on one line, and its value."""

    raw: bytes
    value: dict[str, Any]

    @property
    def id(self) -> Any:
        """The id of a request or a response; None of a notification."""
        return self.value.get("id")

    @property
    def key(self) -> bytes:
        """The id as JSON: 1 and "1" are two ids."""
        return canon.canonical(self.id)

    @property
    def method(self) -> str | None:
        """The method of a request or notification; None of a response."""
        return self.value.get("method")

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of a request or notification; none where it has none."""
        found = self.value.get("params")
        return found if isinstance(found, dict) else {}

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of its parameters: who traces it, which token its progress has."""
        found = self.params.get("_meta")
        return found if isinstance(found, dict) else {}

    @property
    def is_request(self) -> bool:
        """Whether it waits for a response."""
        return self.method is not None and "id" in self.value

    @property
    def is_response(self) -> bool:
        """Whether it answers a request."""
        return self.method is None


def parse(raw: bytes) -> Frame:
    """The message in `raw`. Raises `NoMessage`."""
    try:
        value = _decoded(raw)
    except (ValueError, RecursionError) as error:
        raise NoMessage(PARSE_ERROR, f"not JSON: {error}") from None
    if isinstance(value, list):
        raise NoMessage(INVALID_REQUEST, "a batch of messages, which cannot be recorded one by one; send each alone")
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise NoMessage(INVALID_REQUEST, 'not a message of JSON-RPC 2.0: no object with "jsonrpc": "2.0"')
    method, identifier = value.get("method"), value.get("id")
    if isinstance(identifier, bool) or not isinstance(identifier, int | float | str | None):
        raise NoMessage(INVALID_REQUEST, "an id is a number or a text")
    if method is None and "id" in value and ("result" in value) != ("error" in value):
        return Frame(raw, value)
    if not isinstance(method, str):
        raise NoMessage(INVALID_REQUEST, "neither a method nor a whole answer")
    if not isinstance(value.get("params", {}), dict):
        raise NoMessage(INVALID_REQUEST, "the parameters of MCP are an object")
    return Frame(raw, value)


def _decoded(raw: bytes) -> Any:
    value = canon.parse(raw)
    canon.canonical(value)  # too deep to be written again is too deep to be passed on
    return value


def encode(value: Mapping[str, Any]) -> bytes:
    """A message as one line of JSON, without its line end. Not by msgspec, which writes NaN as null without a word."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def made(value: Mapping[str, Any]) -> Frame:
    """A frame of our own."""
    whole = {"jsonrpc": "2.0", **value}
    return Frame(encode(whole), whole)


def result(identifier: Any, value: Any) -> Frame:
    """The response that gives `value`."""
    return made({"id": identifier, "result": value})


def error(identifier: Any, code: int, message: str, data: Any = None) -> Frame:
    """The response that says what went wrong."""
    told = {"code": code, "message": message, **({"data": data} if data is not None else {})}
    return made({"id": identifier, "error": told})


def one_line(raw: bytes) -> bytes:
    """JSON without line breaks: outside of texts, where alone they may stand, they are white space."""
    return raw.translate(_BREAKS) if b"\n" in raw or b"\r" in raw else raw


_BREAKS = bytes(32 if code in b"\r\n" else code for code in range(256))


class Lines:
    """The frames of a byte stream, one a line. One of more than `most` bytes is dropped to its end and told once."""

    def __init__(self, most: int = FRAME_MAX) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._dropping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that `data` completes, empty ones left out; None stands for one that was too long."""
        lines: list[bytes | None] = []
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._take(part, lines)
            if not self._dropping and (line := b"".join(self._parts).strip()):
                lines.append(line)
            self._parts, self._size, self._dropping = [], 0, False
        self._take(rest, lines)
        return lines

    def end(self) -> bytes:
        """What came behind the last line end."""
        return b"" if self._dropping else b"".join(self._parts).strip()

    def _take(self, part: bytes, lines: list[bytes | None]) -> None:
        if self._dropping:
            return
        self._size += len(part)
        if self._size > self._most:
            self._parts, self._dropping = [], True
            lines.append(None)
        else:
            self._parts.append(part)
