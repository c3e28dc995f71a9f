"""Files that stand outside the seal and are chains of their own, made like the log's (`model.events`): `expiry.jsonl`,
`contained.jsonl`, `annotations.jsonl` and `audit.jsonl`. A record counts where its bytes are those that it must have in
its place; its first field is its number there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from worldline.model import events
from worldline.model.events import encode_json
from worldline.store import layout

T = TypeVar("T", bound=msgspec.Struct)


def chain(record: Any, head: bytes) -> tuple[bytes, bytes]:
    """The line of a record behind the hash `head`, and its own hash."""
    body = encode_json(record)[:-1]
    h = events.link(head, events.leaf(body))
    return events.line(body, h), h


def chained(line: bytes, kind: type[T], number: int, head: bytes) -> tuple[T, bytes] | None:
    """The record of a line and its hash, if it is number `number` behind the hash `head`; else None."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        record: Any = msgspec.json.decode(line[: -events.SUFFIX] + b"}", type=kind)
        due, h = chain(record, head)
        if getattr(record, kind.__struct_fields__[0]) == number and due == line:
            return record, h
    return None


def append(path: Path, good: int, lines: Iterable[bytes]) -> None:
    """Add lines behind the first `good` bytes of a file and make all of it durable, its name too.

    What stood behind those a crash cut off: it counted for nothing.
    """
    try:
        descriptor = layout.create(path)
    except FileExistsError:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_size != good:
            os.ftruncate(descriptor, good)
        layout.write_all(descriptor, b"".join(lines))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    layout.sync_directory(path.parent)
