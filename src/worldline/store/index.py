"""The index of a bundle: columns that let a list or a first screen be drawn, and any row be found, without the log.

It is derived from the rows, checked against them when a bundle is verified, and never believed for what a row says.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from worldline.model.events import Event

FORMAT = "worldline-index/0"
BLOCK_BYTES = 256 * 1024  # of raw rows between two full flushes
MARKED = frozenset({"decision/request", "decision/response", "action/tool_call", "observation/tool_result"})


class Blocks(msgspec.Struct):
    """Where the log's blocks begin: their first row, and the byte in the raw log and in the stored entry."""

    seq: list[int] = []
    raw: list[int] = []
    stored: list[int] = []


class Marks(msgspec.Struct):
    """The rows that a first screen shows: starts and ends of crossings, permissions, markers. `t` in ns."""

    seq: list[int] = []
    t: list[int] = []
    kind: list[str] = []
    call: list[str | None] = []


class Index(msgspec.Struct):
    """All of it. `first_trouble` is the seq of the first row that says something went wrong, or None."""

    format: str
    rows: int
    raw: int
    blocks: Blocks
    marks: Marks
    kinds: dict[str, int]
    lanes: dict[str, int]
    first_trouble: int | None
    result: str  # the bytes of result.json, whose digest is in the manifest


class IndexBuilder:
    """Fed with every row and every block border while the log is packed or verified."""

    def __init__(self, result: str) -> None:
        self._result = result
        self._kinds: Counter[str] = Counter()
        self._lanes: Counter[str] = Counter()
        self._trouble: int | None = None
        self.blocks = Blocks([], [], [])
        self._marks = Marks([], [], [], [])
        self.rows = self.raw = 0

    def block(self, stored: int) -> None:
        """A block begins with the next row, at byte `stored` of the stored entry."""
        self.blocks.seq.append(self.rows)
        self.blocks.raw.append(self.raw)
        self.blocks.stored.append(stored)

    def row(self, event: Event) -> None:
        """The next row."""
        self._kinds[event.name] += 1
        self._lanes[event.lane] += 1
        if event.name in MARKED or event.kind in ("permission", "marker"):
            self._marks.seq.append(event.seq)
            self._marks.t.append(event.t)
            self._marks.kind.append(event.name)
            self._marks.call.append(event.call)
        if self._trouble is None and is_trouble(event):
            self._trouble = event.seq
        self.rows += 1
        self.raw += len(event.raw)

    def index(self) -> Index:
        """The index of all rows so far."""
        return Index(
            FORMAT,
            self.rows,
            self.raw,
            self.blocks,
            self._marks,
            dict(sorted(self._kinds.items())),
            dict(sorted(self._lanes.items())),
            self._trouble,
            self._result,
        )


def is_trouble(event: Event) -> bool:
    """Whether a row says that something went wrong: an error, a broken answer, a refused permission, a loss."""
    status: Any = event.data.get("status")
    return (
        "error" in event.data
        or (isinstance(status, int) and status >= 400)
        or event.data.get("closed_by") == "upstream"
        or event.name in ("permission/denied", "permission/revoked", "meta/loss", "meta/unknown")
    )
