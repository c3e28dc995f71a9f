"""What stands between a fuzzer and the code: hashes. Here any bytes are chained, sealed and packed until they fit.

The first byte of an input says whether that is done (`FITTED`) or its bytes are taken as they are. Inputs of several
parts are cut at `PART`, which is followed by one byte that says which part begins.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import msgspec

from tests.store import hostile
from worldline.store.bundle import container
from worldline.store.bundle.container import DECISIONS, EVENTS, EXPIRY, INDEX, MANIFEST, STORED, TIER_KEY, Entry

FITTED, AS_IS = b"\x01", b"\x00"
PART = b"\x00\xff"
SNAPSHOT = "snapshots/ckpt_01m8n2b6nq1p4dyst3n7svde6k/meta.json"
THUMB = f"thumbs/{'0' * 64}.webp"
PARTS = (MANIFEST, EVENTS, INDEX, EXPIRY, TIER_KEY, DECISIONS, SNAPSHOT, THUMB, "json", "txt", "png")
"""What a part may be; the last three are contents of such a type, which get their names from their bytes."""


def bodies(data: bytes) -> list[bytes]:
    """The rows that an input means: a line each, without their hashes."""
    return [line.partition(b',"h":"')[0] for line in data.split(b"\n") if line]


def sealed(line: bytes, **facts: Any) -> bytes:
    """A manifest's line with these facts and a seal that fits; as it is where it is no JSON object."""
    try:
        fields = msgspec.json.decode(line)
        if isinstance(fields, dict):
            fields.pop("seal", None)
            return hostile.sealed_line({**fields, **facts})
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        pass
    before = line.partition(b',"seal":"')[0]
    return before + b',"seal":"' + hashlib.sha256(b"\x03" + before).hexdigest().encode() + b'"}\n'


def parts(data: bytes) -> list[tuple[str, bytes]]:
    """An input's parts, each with its name out of `PARTS`."""
    pieces = data.split(PART)[1:]
    return [(PARTS[piece[0] % len(PARTS)], piece[1:]) for piece in pieces if piece]


def input_of(pieces: list[tuple[str, bytes]]) -> bytes:
    """The input that means these parts."""
    return FITTED + b"".join(PART + bytes([PARTS.index(name)]) + content for name, content in pieces)


def bundle(data: bytes) -> bytes:
    """The bundle that an input means, every header and digest made to fit."""
    entries: dict[str, tuple[Entry, bytes]] = {}
    facts: dict[str, Any] = {}
    seal = "0" * 64
    for name, content in sorted(parts(data), key=lambda part: part[0] == MANIFEST):
        method = STORED
        if name == EVENTS:
            content, facts = hostile.chained(bodies(content))
            facts["chunks"] = [["000000.jsonl", facts["bytes"], hashlib.sha256(content).hexdigest()]]
        elif name == MANIFEST:
            content = sealed(content, **facts)
            seal = content[-67:-3].decode("latin-1")
        if name in ("json", "txt", "png"):
            name = f"resources/{hashlib.sha256(content).hexdigest()}.{name}"
        stored = content
        if name in (EVENTS, INDEX, DECISIONS):
            method, stored = container.DEFLATED, hostile.deflated(content)
        digest = hashlib.sha256(stored).hexdigest()
        entries[name] = Entry(name, method, len(content), len(stored), zlib.crc32(content), digest), stored
    ordered = sorted(entries.values(), key=lambda each: container.place_of(each[0].name))
    headed = [container.local_header(entry) + stored for entry, stored in ordered]
    return hostile.assembled(headed, [entry for entry, _ in ordered], seal)
