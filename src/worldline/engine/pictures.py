"""Pictures made of pictures with Pillow, where that is installed (`pip install worldline[images]`): thumbnails, and
pictures on a canvas for a video. Pixels only.

A picture is foreign data: it is opened only as one of three formats, only up to a number of pixels, and anything that a
decoder takes offence at is no picture. Nothing but pixels is carried over, so no place, name or text travels along.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

WIDTH, HEIGHT = 320, 1280  # pixels
MOST_PIXELS = 40_000_000
QUALITY, CANVAS_QUALITY = 70, 95
FORMATS = ("PNG", "JPEG", "WEBP")


def available() -> bool:
    """Whether Pillow is installed."""
    try:
        import PIL.Image
    except ImportError:
        return False
    return bool(PIL.Image.__name__)


def thumbnail(data: bytes) -> bytes | None:
    """A WebP of at most `WIDTH` by `HEIGHT` pixels, or None: no Pillow, no picture, or one too large to open."""
    upright = _opened(data)
    if upright is None:
        return None
    upright.thumbnail((WIDTH, HEIGHT))
    return _written(upright, "WEBP", QUALITY)


def size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels as it is seen, or None, as `thumbnail`."""
    upright = _opened(data)
    return None if upright is None else upright.size


def on_canvas(data: bytes, canvas: tuple[int, int]) -> bytes | None:
    """A JPEG of exactly this size with the picture in its upper left, smaller where it has no room; or None."""
    upright = _opened(data)
    if upright is None:
        return None
    from PIL import Image

    upright.thumbnail(canvas)
    whole = Image.new("RGB", canvas)
    whole.paste(upright, mask=upright if upright.mode == "RGBA" else None)
    return _written(whole, "JPEG", CANVAS_QUALITY)


def _written(picture: Picture, form: str, quality: int) -> bytes:
    """The bytes of a picture that carries nothing but its pixels."""
    from PIL import Image

    bare = Image.frombytes(picture.mode, picture.size, picture.tobytes())
    written = io.BytesIO()
    bare.save(written, form, quality=quality, **({"subsampling": 0} if form == "JPEG" else {}))
    return written.getvalue()


def _opened(data: bytes) -> Picture | None:
    """The picture, upright, as RGB or RGBA; None without Pillow, and for what is none or too large."""
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
            return ImageOps.exif_transpose(picture).convert("RGBA" if picture.has_transparency_data else "RGB")
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
