"""A stream of pictures, each with its millisecond, in the smallest form that video programs read: Matroska (RFC 9559).

Written to a pipe, so sizes that are not known yet are left open. One track of JPEG pictures, a cluster for each.
"""

from __future__ import annotations

import struct

_UNKNOWN = b"\x01" + b"\xff" * 7  # the size of an element that is not known yet


def header(width: int, height: int) -> bytes:
    """What stands before the first picture. All of them have this size in pixels."""
    ebml = _element(
        b"\x1a\x45\xdf\xa3",
        _number(b"\x42\x86", 1) + _number(b"\x42\xf7", 1) + _number(b"\x42\xf2", 4) + _number(b"\x42\xf3", 8),
        _element(b"\x42\x82", b"matroska") + _number(b"\x42\x87", 4) + _number(b"\x42\x85", 2),
    )
    information = _element(b"\x15\x49\xa9\x66", _number(b"\x2a\xd7\xb1", 1_000_000))  # ticks of 1 ms
    video = _element(b"\xe0", _number(b"\xb0", width) + _number(b"\xba", height))
    entry = _number(b"\xd7", 1) + _number(b"\x73\xc5", 1) + _number(b"\x83", 1) + _element(b"\x86", b"V_MJPEG") + video
    tracks = _element(b"\x16\x54\xae\x6b", _element(b"\xae", entry))
    return ebml + b"\x18\x53\x80\x67" + _UNKNOWN + information + tracks


def picture(ms: int, data: bytes, lasts: int) -> bytes:
    """One JPEG picture, `ms` behind the first, which is seen for `lasts` ms."""
    block = _element(b"\xa1", b"\x81" + struct.pack(">hB", 0, 0) + data)  # of track 1, at the cluster's time
    group = _element(b"\xa0", block + _number(b"\x9b", lasts))
    return _element(b"\x1f\x43\xb6\x75", _number(b"\xe7", ms) + group)


def _element(name: bytes, *parts: bytes) -> bytes:
    size = sum(map(len, parts))
    return b"".join((name, struct.pack(">Q", size | 1 << 56), *parts))


def _number(name: bytes, value: int) -> bytes:
    return _element(name, value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))
