"""The content codings of HTTP that can be undone here, as far as a body came and within a bound."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any


def _gunzip(data: bytes) -> bytes:
    """All members of a gzip body (or zlib's format), as far as they came."""
    plain = b""
    while data:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        plain += _bounded(member, data, INFLATED - len(plain))
        data = member.unused_data
    return plain


def _bounded(member: Any, data: bytes, room: int) -> bytes:
    plain: bytes = member.decompress(data, room + 1)
    if len(plain) > room:
        raise zlib.error(f"it inflates to more than {INFLATED:,} bytes")
    return plain


def _inflate(data: bytes) -> bytes:
    """`deflate` on the wire is zlib's format or, from some servers, the raw one."""
    try:
        return _gunzip(data)
    except zlib.error:
        return _bounded(zlib.decompressobj(wbits=-zlib.MAX_WBITS), data, INFLATED)


INFLATED = 256 << 20  # bytes that a compressed body may become when it is looked into
DECODERS: dict[str, Callable[[bytes], bytes]] = {"gzip": _gunzip, "x-gzip": _gunzip, "deflate": _inflate}
