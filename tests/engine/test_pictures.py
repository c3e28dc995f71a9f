"""Thumbnails: small, upright, pixels only; and nothing that a picture's bytes can do ends the packing."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib

import pytest
from PIL import Image

from worldline.engine.pictures import HEIGHT, WIDTH, thumbnail
from worldline.store.bundle.pictures import pixels_only


def picture(mode: str = "RGB", size: tuple[int, int] = (800, 400), kind: str = "PNG", **save: object) -> bytes:
    image = Image.new("RGBA", size, (200, 30, 30, 255))
    image.paste((30, 30, 200, 0), (0, 0, size[0] // 2, size[1]))
    written = io.BytesIO()
    image.convert(mode).save(written, kind, **save)
    return written.getvalue()


def opened(data: bytes | None) -> Image.Image:
    assert data is not None and pixels_only(data)
    return Image.open(io.BytesIO(data))


KINDS = ["RGB PNG", "P PNG", "L PNG", "1 PNG", "RGB JPEG", "CMYK JPEG", "RGB WEBP", "RGBA WEBP"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_picture_becomes_a_small_one(kind: str) -> None:
    mode, _, container = kind.partition(" ")
    small = opened(thumbnail(picture(mode, kind=container)))
    assert small.size == (WIDTH, WIDTH // 2) and small.format == "WEBP"


def test_what_is_transparent_stays_so_and_what_is_small_is_not_blown_up() -> None:
    small = opened(thumbnail(picture("RGBA", (40, 20))))
    assert small.size == (40, 20) and small.getchannel("A").getextrema()[0] < 255
    assert opened(thumbnail(picture("RGB", (100, 30_000)))).size == (4, HEIGHT)


def test_a_picture_that_lies_on_its_side_stands_up_and_forgets_why() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    small = opened(thumbnail(picture("RGB", (800, 400), "JPEG", exif=exif)))
    assert small.size == (WIDTH, WIDTH * 2) and not small.getexif()


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG that says its size, and whatever else."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunk(*each) for each in chunks) + chunk(b"IEND", b"")


WHOLE = picture()
REFUSED = {
    "nothing": b"",
    "words": b"no picture at all",
    "a cut one": WHOLE[: len(WHOLE) // 2],
    "a bomb": png(60_000, 60_000, (b"IDAT", zlib.compress(bytes(60_000)))),
    "over the limit": picture("1", (7000, 7000)),
    "no pixels": png(0, 10, (b"IDAT", b"")),
    "a text that is a bomb": png(8, 8, (b"zTXt", b"k\0\0" + zlib.compress(bytes(100 << 20)))),
    "another format": picture(kind="GIF", mode="P"),
    "an SVG": b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_picture_or_too_much_of_one_has_no_thumbnail(what: str) -> None:
    assert thumbnail(REFUSED[what]) is None


def test_no_changed_byte_of_a_picture_raises() -> None:
    for kind in ("PNG", "JPEG", "WEBP"):
        data = picture(size=(64, 64), kind=kind)
        for at in range(0, len(data), 3):
            changed = bytearray(data)
            changed[at] ^= 0xFF
            made = thumbnail(bytes(changed))
            assert made is None or pixels_only(made)


def test_without_pillow_there_are_none() -> None:
    code = (
        "import sys; sys.modules['PIL'] = None; from worldline.engine.pictures import thumbnail; print(thumbnail(b''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
