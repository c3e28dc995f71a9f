"""Reading JSON that strangers wrote: parse without surprises, then ask for a value by its type or get nothing.

msgspec is the faster parser, and is trusted with what it reads right. It turns integers of 2^64 and more into floats in
silence and refuses lone surrogates; both are facts on the wire, and left to the standard library's parser.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

import msgspec

SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 8259, section 6)."""

_LONGEST_INTEGER = 400
_LONG_INTEGER = re.compile(r"[0-9]{19}")  # what may be no 64-bit integer
_MEDIA = ("image", "audio", "video", "screenshot", "file", "document")


def parse(text: str) -> object:
    """The value of a JSON text; NaN and infinities are accepted. Raises ValueError, also where it nests too deeply."""
    if _LONG_INTEGER.search(text) is None:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            pass  # the other parser says what it is, or reads it
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def decode(body: bytes, *, whole: bool = True) -> str:
    """A body as text: UTF-8 without its BOM, invalid bytes as U+FFFD; unless `whole`, a character cut at the end goes.

    Encoded surrogates are invalid UTF-8 and are replaced; escaped ones survive inside the JSON.
    """
    text = body.decode("utf-8", "replace") if whole else _decode_cut(body)
    return text.removeprefix("\ufeff")


def dump(value: object) -> str:
    """A value as compact JSON text, non-ASCII characters as they are."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return '"nested too deeply"'


def obj(value: object) -> dict[str, object]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def array(value: object) -> list[object]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def objects(value: object) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects of an array, with their places in it."""
    for place, element in enumerate(array(value)):
        if isinstance(element, dict):
            yield place, element


def string(value: object) -> str:
    """The value if it is a string, else the empty one."""
    return value if isinstance(value, str) else ""


def name(value: object) -> str | None:
    """The value if it is a string with anything in it, else None."""
    return value if isinstance(value, str) and value else None


def integer(value: object) -> int | None:
    """The value if it is a whole number that every reader keeps exactly, else None. `12.0` is whole, `true` is not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= SAFE_INTEGER:
        return value
    return None


def number(value: object) -> float | None:
    """The value if it is a finite number, as it was written (an integer stays one), else None."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    return integer(value)


def flatten(content: object, between: str = "\n") -> str:
    """Content as text: a string as it is, a list of parts joined, media as `[image]`, anything else as JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return between.join(_part(part) for part in content)
    return "" if content is None else _part(content)


def error_text(error: object) -> str:
    """A provider's error object as one line: `rate_limit_error: slow down`."""
    if not isinstance(error, dict):
        return flatten(error)
    # In an event of a stream, `type` may only say that this is an error.
    kind = next((kind for field in ("type", "code") if (kind := name(error.get(field))) not in (None, "error")), None)
    message = name(error.get("message"))
    if message is None:
        return dump(error)
    return f"{kind}: {message}" if kind else message


def _integer(digits: str) -> int | float:
    # Python refuses to parse integers of more than 4300 digits, and one absurd number must not hide a whole body.
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer)


def _decode_cut(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as fault:
        if fault.reason == "unexpected end of data":
            return body[: fault.start].decode("utf-8")
        return body.decode("utf-8", "replace")


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return str(part[key])
        kind = string(part.get("type"))
        for medium in _MEDIA:
            if medium in kind:
                return f"[{medium}]"
    return dump(part)
