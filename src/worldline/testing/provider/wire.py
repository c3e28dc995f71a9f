"""From values to the pieces of a body: JSON, server-sent events, compression, and where one piece ends.

Server-sent events are as in the HTML standard, section 9.2: an optional `event:` line, a `data:` line, an empty line.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from worldline.errors import UsageError
from worldline.testing.provider.script import Encoding

_ARGUMENT_FRAGMENT = 8
"""Characters in a fragment of tool arguments when the script names no size; about two tokens."""

_WINDOW_BITS = {"gzip": 31, "deflate": 15}
"""zlib's `wbits` for each Content-Encoding; HTTP's deflate carries the zlib header (RFC 9110, 8.4.1.2)."""


def dump(value: Any, indent: int | None = None) -> str:
    """JSON as providers write it: compact unless `indent` is given, non-ASCII characters as themselves."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    if any("\ud800" <= character <= "\udfff" for character in text):
        # A lone surrogate has no UTF-8 form; an escape is the only way to say it.
        return json.dumps(value, indent=indent, separators=separators)
    return text


def event(data: dict[str, Any] | str, name: str | None = None) -> bytes:
    """One server-sent event; a dict is written as JSON."""
    text = data if isinstance(data, str) else dump(data)
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {text}\n\n".encode()


def words(text: str, size: int) -> list[str]:
    """The deltas of a text: `size` characters each, or a word with the space before it when `size` is 0."""
    return _every(text, size) if size else re.findall(r"\s*\S+|\s+", text)


def argument_fragments(text: str, size: int) -> list[str]:
    """The deltas of a tool call's arguments, given as JSON text."""
    return _every(text, size or _ARGUMENT_FRAGMENT)


def _every(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def encode(events: Sequence[bytes], encoding: Encoding | None) -> list[bytes]:
    """The events under a Content-Encoding, still one item each: every item is flushed, so it decodes on arrival."""
    if encoding is None:
        return list(events)
    if encoding not in _WINDOW_BITS:
        raise UsageError(f"encoding {encoding!r} is unknown; use 'gzip' or 'deflate'", encoding=encoding)
    packer = zlib.compressobj(wbits=_WINDOW_BITS[encoding])
    packed = [packer.compress(item) + packer.flush(zlib.Z_SYNC_FLUSH) for item in events[:-1]]
    return [*packed, packer.compress(events[-1] if events else b"") + packer.flush()]


def cut(events: Sequence[bytes], pieces: str) -> list[bytes]:
    """The same bytes with borders as `Say.pieces` names them. No piece is empty."""
    body = b"".join(events)
    style, _, size = pieces.partition(":")
    if pieces == "events":
        borders = _ends(events)
    elif pieces == "whole":
        borders = []
    elif pieces == "awkward":
        borders = _awkward_borders(events)
    elif style == "bytes" and size.isdecimal() and int(size) > 0:
        borders = list(range(int(size), len(body), int(size)))
    else:
        raise UsageError(
            f"pieces {pieces!r} is unknown; use 'events', 'whole', 'awkward' or 'bytes:N' with N of 1 or more",
            pieces=pieces,
        )
    edges = [0, *borders, len(body)]
    return [body[start:end] for start, end in pairwise(edges) if end > start]


def _ends(events: Sequence[bytes]) -> list[int]:
    ends: list[int] = []
    for item in events:
        ends.append((ends[-1] if ends else 0) + len(item))
    return ends


def _awkward_borders(events: Sequence[bytes]) -> list[int]:
    borders: set[int] = set()
    start = 0
    for number, item in enumerate(events):
        borders.add(start + max(item.find(b"data:"), 0) + 2)
        # Only every second one, so that some pieces end one event and begin the next.
        if number % 2:
            borders.add(start + len(item) - 1)
        borders.update(start + at + 1 for at, byte in enumerate(item) if byte >= 0xC0)
        start += len(item)
    return sorted(border for border in borders if border < start)
