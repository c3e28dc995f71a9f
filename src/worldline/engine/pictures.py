"""Thumbnails of pictures, made with Pillow where that is installed (`pip install worldline[images]`): pixels only.

A picture is foreign data: it is opened only as one of three formats, only up to a number of pixels, and anything that a
decoder takes offence at is no picture. Nothing but pixels is carried over, so no place, name or text travels along.
"""

from __future__ import annotations

import io
import warnings

WIDTH, HEIGHT = 320, 1280  # pixels
MOST_PIXELS = 40_000_000
QUALITY = 70
FORMATS = ("PNG", "JPEG", "WEBP")


def thumbnail(data: bytes) -> bytes | None:
    """A WebP of at most `WIDTH` by `HEIGHT` pixels, or None: no Pillow, no picture, or one too large to open."""
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
            if picture.width * picture.height > MOST_PIXELS:
                return None
            upright = ImageOps.exif_transpose(picture).convert("RGBA" if picture.has_transparency_data else "RGB")
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
        OSError,
        SyntaxError,
        ValueError,
        TypeError,
        ZeroDivisionError,
        OverflowError,
        EOFError,
    ):  # what Pillow's decoders raise for broken pictures
        return None
    upright.thumbnail((WIDTH, HEIGHT))
    bare = Image.frombytes(upright.mode, upright.size, upright.tobytes())
    written = io.BytesIO()
    bare.save(written, "WEBP", quality=QUALITY)
    return written.getvalue()
