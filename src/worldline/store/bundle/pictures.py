"""Pictures among the contents, and the small ones that a bundle shows of them: WebP, pixels only.

A thumbnail is made by whoever packs (`engine.pictures` where Pillow is there). What it may hold is checked here, so
that nothing of a picture's origin travels beside its pixels (WebP container, RFC 9649).
"""

from __future__ import annotations

import struct

from worldline.store.bundle.container import THUMBS

PICTURES = frozenset({"image/png", "image/jpeg", "image/webp"})
MOST_THUMB_BYTES = 1 << 20
_PIXELS = (b"VP8 ", b"VP8L", b"VP8X", b"ALPH")
_TELLING = 0b0010_1110  # flags of VP8X: ICC profile, Exif, XMP, animation


def thumb_name(content: str) -> str:
    """The entry of a content's thumbnail."""
    return f"{THUMBS}{content}.webp"


def pictured(entry: str) -> str:
    """The content of which an entry is the thumbnail."""
    return entry[len(THUMBS) :].partition(".")[0]


def pixels_only(data: bytes) -> bool:
    """Whether these bytes are a WebP file of pixels and nothing else."""
    if len(data) > MOST_THUMB_BYTES or data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return False
    if struct.unpack("<I", data[4:8])[0] + 8 != len(data):
        return False
    at = 12
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], struct.unpack("<I", data[at + 4 : at + 8])[0]
        if kind not in _PIXELS or (kind == b"VP8X" and (size != 10 or data[at + 8] & _TELLING)):
            return False
        at += 8 + size + size % 2
    return at == len(data) > 12
