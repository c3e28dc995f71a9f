"""The container of a bundle: a ZIP whose every byte is either content or follows from `container.json`.

`container.json` is the last entry and lists all others: name, method, sizes, CRC and the SHA-256 of the *stored* bytes.
A reader derives every header from it and refuses what differs, so nothing hides between entries, in padding or in
extra fields; nothing is ever deflated again in order to verify. ZIP64 is used from the first byte (APPNOTE 4.3, 4.5.3).

    {"format":"worldline-container/1","entries":[[name,method,size,stored,crc32,sha256],...],"seal":"<hex>",
     "withheld":[...],"container":"<SHA256(0x04 | the bytes before ,\\"container\\":)>"}

worldline-container/0 is read for ever; it differs in the names that its entries may have.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from worldline.errors import CutShort, Damaged, NotARecording
from worldline.model.events import encode_json
from worldline.store.source import Source

CONTAINER = "container.json"
EVENTS, INDEX, MANIFEST = "events.jsonl", "index.json", "manifest.json"
DECISIONS, NETWORK = "decisions.jsonl", "network.jsonl"
TIER_KEY, EXPIRY = "restricted/key", "expiry.jsonl"
ANNOTATIONS, AUDIT = "annotations.jsonl", "audit.jsonl"
RESOURCES, THUMBS, SNAPSHOTS, MEDIA = "resources/", "thumbs/", "snapshots/", "media/"
FORMAT = "worldline-container/1"
STORED, DEFLATED = 0, 8
MOST_ENTRIES = 100_000
MOST_CONTAINER_BYTES = 32 << 20
_SUFFIX = b',"container":"'
_TAIL = 98  # ZIP64 end record (56), its locator (20), end record (22): all that stands behind the central directory
_OWN_RECORD = 46 + len(CONTAINER) + 28  # that of container.json
_LONGEST_RECORD = 256  # bytes of one record of the central directory
_RESOURCE = r"resources/[0-9a-f]{64}\.(?:png|webp|jpeg|html|json|txt|bin)"
_NAMES_0 = r"manifest\.json|events\.jsonl|index\.json|annotations\.jsonl|audit\.jsonl|" + _RESOURCE
_NAMES = {
    "worldline-container/0": re.compile(_NAMES_0),
    FORMAT: re.compile(
        _NAMES_0 + r"|decisions\.jsonl|network\.jsonl|expiry\.jsonl|restricted/key"
        r"|thumbs/[0-9a-f]{64}\.webp|snapshots/[a-z0-9][a-z0-9_-]{0,63}/meta\.json"
        r"|media/[a-z0-9][a-z0-9_-]{0,63}\.(?:mp4|webm|kf\.json)"
    ),
}
"""The names that entries may have beside `container.json`, by the format: no other is ever looked for or written."""
_ORDER = (
    *("events", "snapshots/", "resources/", "restricted/", "decisions", "media/", "expiry", "index", "manifest"),
    *("annotations", "audit"),
)
_SAME_PLACE = {"thumbs/": "resources/", "network": "decisions"}
_EXTENSIONS = {
    "image/png": "png",
    "image/webp": "webp",
    "image/jpeg": "jpeg",
    "text/html": "html",
    "text/plain": "txt",
    "application/json": "json",
    "application/x-worldline-deep+json": "json",
}
LOG_HEADER = 30 + len(EVENTS) + 20  # bytes of the local header with which a bundle begins
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
    return f"{RESOURCES}{blob}.{_EXTENSIONS.get(media_type, 'bin')}"


def content_named(entry: str) -> str | None:
    """The content whose entry this is, whatever media type its name says; None for other entries."""
    return entry[len(RESOURCES) :].partition(".")[0] if entry.startswith(RESOURCES) else None


def snapshot_name(checkpoint: str) -> str | None:
    """The entry that describes the snapshot of a checkpoint; None for an id that is no name."""
    name = f"{SNAPSHOTS}{checkpoint}/meta.json"
    return name if _NAMES[FORMAT].fullmatch(name) else None


def is_named(format: str, name: str) -> bool:  # noqa: A002 the container's own word
    """Whether an entry of that format may have the name."""
    return format in _NAMES and _NAMES[format].fullmatch(name) is not None


def local_header(entry: Entry) -> bytes:
    """The header in front of an entry's bytes."""
    name = entry.name.encode("ascii")
    fixed = struct.pack(
        "<4s5H3I2H", b"PK\x03\x04", 45, 0, entry.method, 0, _DATE, entry.crc32, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 20
    )
    return fixed + name + struct.pack("<HHQQ", 1, 16, entry.size, entry.stored)


def begins_as_bundle(head: bytes) -> bool:
    """Whether a file begins as a bundle does, with the header of its log or as much of that as there is."""
    for method in (DEFLATED, STORED):
        whole = local_header(Entry(EVENTS, method, 0, 0, 0, ""))[: LOG_HEADER - 16]  # without the sizes at its end
        # The checksum is the log's own.
        if (
            len(head) >= 14  # less is the beginning of any ZIP
            and head[:14] == whole[: len(head)][:14]
            and head[18:][: len(whole) - 18] == whole[18 : len(head)]
        ):
            return True
    return False


def central_directory(entries: tuple[Entry, ...]) -> bytes:
    """The directory and the end records for entries that stand one after the other from byte 0."""
    return b"".join(_directory(entries))


def _directory(entries: tuple[Entry, ...]) -> Iterator[bytes]:
    """The records of the directory, and at last the end records."""
    length = at = 0
    for entry in entries:
        record = _record(entry, at)
        length, at = length + len(record), at + entry.header_size + entry.stored
        yield record
    count, end = len(entries), at + length
    yield (
        struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0x032D, 45, 0, 0, count, count, length, at)
        + struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
        + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, *[min(count, 0xFFFF)] * 2, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    )


def _record(entry: Entry, at: int) -> bytes:
    """An entry's record in the directory; its local header stands at byte `at`."""
    name = entry.name.encode("ascii")
    made_by, attributes, everywhere = 0x032D, 0o100600 << 16, 0xFFFFFFFF
    fixed = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", made_by, 45, 0, entry.method, 0, _DATE, entry.crc32, everywhere, everywhere,
        len(name), 28, 0, 0, 0, attributes, everywhere
    )  # fmt: skip
    return fixed + name + struct.pack("<HHQQQ", 1, 24, entry.size, entry.stored, at)


def encode(container: Container) -> bytes:
    """The bytes of `container.json`."""
    before = encode_json(container)[:-1]
    return before + _SUFFIX + _digest(before).encode("ascii") + b'"}'


def own_entry(data: bytes) -> Entry:
    """The entry of `container.json` itself, which is stored."""
    return Entry(CONTAINER, STORED, len(data), len(data), zlib.crc32(data), hashlib.sha256(data).hexdigest())


def _digest(before: bytes | memoryview) -> str:
    digest = hashlib.sha256(b"\x04")
    digest.update(before)
    return digest.hexdigest()


def open_container(source: Source) -> Container:
    """Read and check the tail of a bundle: the end records, the directory and `container.json`.

    Raises `NotARecording` for what is no bundle, `CutShort` for one without its end, and `Damaged` for one whose tail
    is not what was packed. The entries' own bytes are checked when they are read.
    """
    tail = source.read(max(0, source.size - _TAIL), min(source.size, _TAIL))
    if tail[:4] != b"PK\x06\x06" or tail[56:60] != b"PK\x06\x07" or tail[76:80] != b"PK\x05\x06":
        if begins_as_bundle(source.read(0, min(source.size, LOG_HEADER))):
            what = f"{source.name} is cut at byte {source.size:,} of a bundle: download it again"
            shown = f"; `worldline view {source.name}` shows what is readable"
            raise CutShort(what + shown, file=source.name, offset=source.size)
        if source.size < _TAIL:
            raise NotARecording(f"{source.name} is no bundle: {source.size:,} bytes", path=source.name)
        raise NotARecording(f"{source.name} is no bundle of ours: no end record where one ends", path=source.name)
    count, _, length, at = struct.unpack("<4Q", tail[24:56])
    if not 0 < count <= MOST_ENTRIES or length > count * _LONGEST_RECORD or at + length + _TAIL != source.size:
        raise _damaged(source, source.size - _TAIL, "the end records do not fit the file")
    data, begins = _container_bytes(
        source, source.read(max(at, at + length - _OWN_RECORD), min(length, _OWN_RECORD)), at
    )
    own, container = own_entry(data), _decode(source, data, begins)
    del data
    last = sum(entry.header_size + entry.stored for entry in container.entries)
    if last + own.header_size != begins or source.read(last, own.header_size) != local_header(own):
        raise _damaged(source, begins, "container.json does not stand behind the entries that it lists")
    _check_directory(source, (*container.entries, own), at)
    return container


def _check_directory(source: Source, entries: tuple[Entry, ...], at: int) -> None:
    """The directory and the end records, from byte `at` to the end, are those of the entries."""
    for expected in _batches(_directory(entries)):
        here = source.read(at, min(len(expected), source.size - at))
        if here != expected:
            differ = (i for i, (a, b) in enumerate(zip(expected, here, strict=False)) if a != b)
            raise _damaged(source, at + next(differ, len(here)), "the directory is not what container.json says")
        at += len(here)
    if at != source.size:
        raise _damaged(source, at, "the directory is longer than container.json says")


def _batches(records: Iterator[bytes]) -> Iterator[bytes]:
    """Records together, so that few reads are needed."""
    while batch := b"".join(islice(records, 4096)):
        yield batch


def _container_bytes(source: Source, last: bytes, at: int) -> tuple[bytes, int]:
    """The bytes of the last entry and where they begin, by the directory's last record: they end where that begins."""
    if (
        len(last) < _OWN_RECORD
        or last[:4] != b"PK\x01\x02"
        or last[46 : 46 + len(CONTAINER)] != CONTAINER.encode("ascii")
    ):
        raise _damaged(source, at, "the last entry is not container.json")
    _, stored, offset = struct.unpack("<3Q", last[-24:])
    begins = offset + 30 + len(CONTAINER) + 20
    if stored > MOST_CONTAINER_BYTES or begins + stored != at:
        raise _damaged(source, at, "container.json does not end where the directory begins")
    return source.read(begins, stored), begins


def _decode(source: Source, data: bytes, begins: int) -> Container:
    before = len(data) - len(_SUFFIX) - 66
    text = data[: max(before, 0)] + b"}"
    if data[len(text) - 1 :] != _SUFFIX + _digest(memoryview(text)[:-1]).encode("ascii") + b'"}':
        raise _damaged(source, begins, "container.json is not what was packed")
    try:
        container = msgspec.json.decode(text, type=Container)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(source, begins, f"container.json cannot be read: {error}") from None
    allowed = _NAMES.get(container.format)
    if allowed is None:
        raise NotARecording(f"{source.name} is in the container format {container.format!r}", path=source.name)
    names = [entry.name for entry in container.entries]
    if len(names) >= MOST_ENTRIES or len(set(names)) != len(names) or not all(map(allowed.fullmatch, names)):
        raise _damaged(source, begins, "a name twice, one that no bundle has, or too many")
    if not all(map(_possible, container.entries)):
        raise _damaged(source, begins, "an entry with impossible values")
    if encode(container) != data:
        raise _damaged(source, begins, "container.json holds more than a container says, or says it in other words")
    return container


def _possible(entry: Entry) -> bool:
    sizes = (entry.size, entry.stored)
    return entry.method in (STORED, DEFLATED) and 0 <= entry.crc32 < 1 << 32 and all(0 <= n < 1 << 63 for n in sizes)


def _damaged(source: Source, offset: int, detail: str) -> Damaged:
    facts: dict[str, Any] = {"file": source.name, "offset": offset}
    return Damaged(f"{source.name}, byte {offset:,}: {detail}", **facts)


def place_of(name: str) -> tuple[int, str, str]:
    """Where an entry stands among the others: what is read last comes last, a content's thumbnail right behind it."""
    for prefix, other in _SAME_PLACE.items():
        if name.startswith(prefix):
            number = _ORDER.index(other)
            break
    else:
        number = next((at for at, prefix in enumerate(_ORDER) if name.startswith(prefix)), 0)
    if number != _ORDER.index("resources/"):
        return number, "", ""
    folder, _, rest = name.partition("/")
    return number, rest[:64], folder
