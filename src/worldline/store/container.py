"""The container of a bundle: a ZIP whose every byte is either content or follows from `container.json`.

`container.json` is the last entry and lists all others: name, method, sizes, CRC and the SHA-256 of the *stored* bytes.
A reader derives every header from it and refuses what differs, so nothing hides between entries, in padding or in
extra fields; nothing is ever deflated again in order to verify. ZIP64 is used from the first byte (APPNOTE 4.3, 4.5.3).

    {"format":"worldline-container/0","entries":[[name,method,size,stored,crc32,sha256],...],"seal":"<hex>",
     "withheld":[...],"container":"<SHA256(0x04 | the bytes before ,\\"container\\":)>"}
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from typing import Any

import msgspec

from worldline.errors import Damaged, NotARecording
from worldline.model.events import encode_json
from worldline.store.source import Source

CONTAINER = "container.json"
EVENTS, INDEX, MANIFEST = "events.jsonl", "index.json", "manifest.json"
FORMAT = "worldline-container/0"
STORED, DEFLATED = 0, 8
MOST_ENTRIES = 1_000_000
MOST_CONTAINER_BYTES = 256 << 20
_SUFFIX = b',"container":"'
_TAIL = 98  # ZIP64 end record (56), its locator (20), end record (22): all that stands behind the central directory
_NAME = re.compile(
    r"(manifest\.json|events\.jsonl|index\.json|annotations\.jsonl|audit\.jsonl|container\.json"
    r"|resources/[0-9a-f]{64}\.(png|webp|jpeg|html|json|txt|bin))"
)
_EXTENSIONS = {
    "image/png": "png",
    "image/webp": "webp",
    "image/jpeg": "jpeg",
    "text/html": "html",
    "text/plain": "txt",
    "application/json": "json",
    "application/x-worldline-deep+json": "json",
}
_DATE = 0x0021  # 1 January 1980, the first day that a ZIP can say: a bundle has no time of its own


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One entry. `size` is its content's, `stored` that of its bytes in the file; `sha256` is over the stored bytes."""

    name: str
    method: int
    size: int
    stored: int
    crc32: int
    sha256: str

    @property
    def header_size(self) -> int:
        """Bytes of its local header."""
        return 30 + len(self.name) + 20


class Container(msgspec.Struct, frozen=True):
    """What `container.json` says."""

    format: str
    entries: tuple[Entry, ...]
    seal: str
    withheld: tuple[tuple[str, int, str], ...] = ()  # (name, size, media type) of contents that were left out

    def offsets(self) -> dict[str, int]:
        """Where each entry's stored bytes begin."""
        at, found = 0, {}
        for entry in self.entries:
            found[entry.name] = at + entry.header_size
            at += entry.header_size + entry.stored
        return found


def resource_name(blob: str, media_type: str) -> str:
    """The entry of a content."""
    return f"resources/{blob}.{_EXTENSIONS.get(media_type, 'bin')}"


def local_header(entry: Entry) -> bytes:
    """The header in front of an entry's bytes."""
    name = entry.name.encode("ascii")
    fixed = struct.pack(
        "<4s5H3I2H", b"PK\x03\x04", 45, 0, entry.method, 0, _DATE, entry.crc32, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 20
    )
    return fixed + name + struct.pack("<HHQQ", 1, 16, entry.size, entry.stored)


def central_directory(entries: tuple[Entry, ...]) -> bytes:
    """The directory and the end records for entries that stand one after the other from byte 0."""
    parts, at = [], 0
    for entry in entries:
        name = entry.name.encode("ascii")
        parts.append(
            struct.pack(
                "<4s6H3I5H2I",
                b"PK\x01\x02",
                0x032D,
                45,
                0,
                entry.method,
                0,
                _DATE,
                entry.crc32,
                0xFFFFFFFF,
                0xFFFFFFFF,
                len(name),
                28,
                0,
                0,
                0,
                0o100600 << 16,
                0xFFFFFFFF,
            )
            + name
            + struct.pack("<HHQQQ", 1, 24, entry.size, entry.stored, at)
        )
        at += entry.header_size + entry.stored
    directory = b"".join(parts)
    count, end = len(entries), at + len(directory)
    return (
        directory
        + struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0x032D, 45, 0, 0, count, count, len(directory), at)
        + struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
        + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, *[min(count, 0xFFFF)] * 2, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    )


def encode(container: Container) -> bytes:
    """The bytes of `container.json`."""
    before = encode_json(container)[:-1]
    return before + _SUFFIX + _digest(before).encode("ascii") + b'"}'


def own_entry(data: bytes) -> Entry:
    """The entry of `container.json` itself, which is stored."""
    return Entry(CONTAINER, STORED, len(data), len(data), zlib.crc32(data), hashlib.sha256(data).hexdigest())


def _digest(before: bytes) -> str:
    return hashlib.sha256(b"\x04" + before).hexdigest()


def open_container(source: Source) -> Container:
    """Read and check the tail of a bundle: the end records, the directory and `container.json`.

    Raises `NotARecording` for what is no bundle and `Damaged` for one whose tail is not what was packed. The entries'
    own bytes are checked when they are read.
    """
    if source.size < _TAIL:
        raise NotARecording(f"{source.name} is no bundle: {source.size:,} bytes", path=source.name)
    tail = source.read(source.size - _TAIL, _TAIL)
    if tail[:4] != b"PK\x06\x06" or tail[56:60] != b"PK\x06\x07" or tail[76:80] != b"PK\x05\x06":
        raise NotARecording(f"{source.name} is no bundle of ours: no end record where one ends", path=source.name)
    count, _, length, at = struct.unpack("<4Q", tail[24:56])
    if not 0 < count <= MOST_ENTRIES or at + length + _TAIL != source.size:
        raise _damaged(source, source.size - _TAIL, "the end records do not fit the file")
    directory = source.read(at, length)
    data, begins = _container_bytes(source, directory, at)
    container = _decode(source, data, begins)
    expected = central_directory((*container.entries, own_entry(data)))
    if expected != directory + tail:
        where = next(i for i, (a, b) in enumerate(zip(expected, directory + tail, strict=False)) if a != b)
        raise _damaged(source, at + where, "the directory is not what container.json says")
    last = sum(entry.header_size + entry.stored for entry in container.entries)
    if source.read(last, begins - last) != local_header(own_entry(data)):
        raise _damaged(source, last, "the header of container.json is not its own")
    return container


def _container_bytes(source: Source, directory: bytes, at: int) -> tuple[bytes, int]:
    """The bytes of the last entry and where they begin: they end where the directory does."""
    record = 46 + len(CONTAINER) + 28
    last = directory[-record:]
    if len(last) < record or last[:4] != b"PK\x01\x02" or last[46 : 46 + len(CONTAINER)] != CONTAINER.encode("ascii"):
        raise _damaged(source, at, "the last entry is not container.json")
    _, stored, offset = struct.unpack("<3Q", last[-24:])
    begins = offset + 30 + len(CONTAINER) + 20
    if stored > MOST_CONTAINER_BYTES or begins + stored != at:
        raise _damaged(source, at, "container.json does not end where the directory begins")
    return source.read(begins, stored), begins


def _decode(source: Source, data: bytes, begins: int) -> Container:
    suffix = len(_SUFFIX) + 66
    before = data[:-suffix]
    if data[-suffix:] != _SUFFIX + _digest(before).encode("ascii") + b'"}':
        raise _damaged(source, begins, "container.json is not what was packed")
    try:
        container = msgspec.json.decode(before + b"}", type=Container)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(source, begins, f"container.json cannot be read: {error}") from None
    if container.format != FORMAT:
        raise NotARecording(f"{source.name} is in the container format {container.format!r}", path=source.name)
    names = [entry.name for entry in container.entries]
    if len(set(names)) != len(names) or not all(_NAME.fullmatch(name) for name in names) or CONTAINER in names:
        raise _damaged(source, begins, "a name twice, or one that no bundle has")
    if any(
        e.method not in (STORED, DEFLATED) or min(e.size, e.stored) < 0 or not 0 <= e.crc32 < 1 << 32
        for e in container.entries
    ):
        raise _damaged(source, begins, "an entry with impossible values")
    return container


def _damaged(source: Source, offset: int, detail: str) -> Damaged:
    facts: dict[str, Any] = {"file": source.name, "offset": offset}
    return Damaged(f"{source.name}, byte {offset:,}: {detail}", **facts)
