"""Keys: when is a crossing the same crossing? A canonical form of its inputs, its digest, and the first difference.

Two crossings are the same when their kind, name and inputs are, with object keys in any order. Integers and floats
stay distinct (1 is not 1.0), numbers of any size are exact. RFC 8785 is not used: it reads all numbers as doubles.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from worldline.model.values import step

_AS_ZERO = bytes(48 if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))
_LONG_NUMBER = b"0" * 16
_sorted_json = msgspec.json.Encoder(order="sorted")


class _NotFinite(float):
    """NaN or an infinity. msgspec refuses subclasses; a plain NaN it would write as null, without a word."""


def _float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _NotFinite(value)


def parse(body: bytes) -> Any:
    """The JSON value of `body`, integers of any size exact. Raises `ValueError` where it is no JSON (or too deep)."""
    if _LONG_NUMBER not in body.translate(_AS_ZERO):  # eight times faster than a regular expression
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # lone surrogates, NaN: the standard library reads them
    try:
        return json.loads(body, parse_float=_float, parse_constant=_NotFinite)
    except RecursionError:
        raise ValueError("JSON nested too deep to parse") from None


def canonical(value: Any) -> bytes:
    """One byte string for each JSON value, whatever the order of its keys. Raises `ValueError` where it is too deep."""
    try:
        return _canonical(value)
    except RecursionError:
        raise ValueError("JSON nested too deep to encode") from None


def _canonical(value: Any) -> bytes:
    try:
        return _sorted_json.encode(value)
    except (TypeError, ValueError, OverflowError, UnicodeEncodeError):
        # The values JSON libraries quarrel about (2**64, NaN, lone surrogates); ASCII escapes carry them all.
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def is_plain(value: Any) -> bool:
    """Whether every JSON reader takes `value`; NaN and lone surrogates are quoted by their canonical text."""
    try:
        _sorted_json.encode(value)
    except (TypeError, ValueError, OverflowError, UnicodeEncodeError):
        return False
    return True


def op_key(kind: str, name: str, inputs: bytes) -> str:
    """The key of a crossing: 32 hex digits over kind, name and canonical inputs."""
    digest = _begun(kind, name).copy()
    digest.update(len(inputs).to_bytes(8, "big") + inputs)
    return digest.hexdigest()[:32]


@lru_cache(maxsize=1024)
def _begun(kind: str, name: str) -> hashlib._Hash:
    """The digest over kind and name, which many crossings share: to be copied."""
    digest = hashlib.sha256()
    for part in (kind.encode(), name.encode("utf-8", "surrogatepass")):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest


def differences(recorded: Any, actual: Any, path: str = "$") -> Iterator[tuple[str, Any, Any]]:
    """The places where two JSON values differ, in document order: (JSON path, recorded, actual).

    A side that lacks the place gives `MISSING`. No recursion: any depth.
    """
    work: list[tuple[str, Any, Any]] = [(path, recorded, actual)]
    while work:
        where, left, right = work.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            keys = list(left) + [key for key in right if key not in left]
            pairs = [(where + step(k), left.get(k, MISSING), right.get(k, MISSING)) for k in keys]
        elif isinstance(left, list) and isinstance(right, list):
            pairs = [
                (f"{where}[{i}]", left[i] if i < len(left) else MISSING, right[i] if i < len(right) else MISSING)
                for i in range(max(len(left), len(right)))
            ]
        else:
            # By their text, since 0.0 == -0.0 and NaN != NaN.
            if type(left) is not type(right) or (
                repr(left) != repr(right) if isinstance(left, float) else left != right
            ):
                yield where, left, right
            continue
        work.extend(reversed(pairs))


class _Missing:
    """The value of a place that one side does not have."""

    def __repr__(self) -> str:
        return "(absent)"


MISSING = _Missing()
