"""The index of a bundle: columns that let a list or a first screen be drawn, and any row be found, without the log.

It is derived from the rows, checked against them when a bundle is verified, and never believed for what a row says. Its
size is bounded, whatever the log holds: at most 8,192 blocks are listed (then every second, fourth ... of them), 2,048
marks, 256 lanes and 256 kinds; what did not fit is counted.

    {"format":"worldline-index/1","rows":N,"raw":N,"span":[t,t],"blocks":{"seq":[],"t":[],"raw":[],"stored":[]},
     "marks":{"total":N,"seq":[],"t":[],"kind":[],"call":[]},"kinds":{"name":[],"rows":[],"others":N},
     "lanes":{...},"trouble":{"seq":N,"t":N,"kind":""}|null,"result":"<result.json>"}
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import msgspec

from worldline.model.events import Event

FORMAT = "worldline-index/1"
BLOCK_BYTES = 256 * 1024  # of raw rows between two full flushes
MOST_BLOCKS = 8192
MOST_MARKS = 2048
MOST_NAMES = 256
LONGEST_NAME = 512  # characters of a lane or call that the index repeats
MARKED = frozenset({"decision/request", "decision/response", "action/tool_call", "observation/tool_result"})


class Blocks(msgspec.Struct):
    """Where blocks of the log begin: their first row, its time (ns), the byte in the raw log and in the stored entry.

    Each begins behind a full flush, so that it is inflated without those before it.
    """

    seq: list[int]
    t: list[int]
    raw: list[int]
    stored: list[int]

    def of_seq(self, seq: int) -> int:
        """The number of the block that holds row `seq`, or would."""
        return max(0, bisect_right(self.seq, seq) - 1)

    def of_time(self, t: int) -> int:
        """The number of the block that holds the last row at or before `t` (ns since the run began), or the first."""
        return max(0, bisect_right(self.t, t) - 1)


class Marks(msgspec.Struct):
    """The first rows that a screen shows, of `total`: starts and ends of crossings, permissions, markers. `t` in ns."""

    total: int
    seq: list[int]
    t: list[int]
    kind: list[str]
    call: list[str | None]


class Counts(msgspec.Struct):
    """Rows by name, the names in the order in which they came; `others` are the rows of names that did not fit."""

    name: list[str]
    rows: list[int]
    others: int = 0


class Trouble(msgspec.Struct):
    """The first row that says that something went wrong. Old indexes give its `seq` alone."""

    seq: int
    t: int | None = None
    kind: str | None = None


class Index(msgspec.Struct):
    """All of it. `span` is the time of the first and of the last row, in ns since the run began."""

    format: str
    rows: int
    raw: int
    span: list[int]
    blocks: Blocks
    marks: Marks
    kinds: Counts
    lanes: Counts
    trouble: Trouble | None
    result: str  # the bytes of result.json, whose digest is in the manifest


class IndexBuilder:
    """Fed with every row while the log is packed or verified. The borders of blocks follow from the rows alone."""

    def __init__(self, result: str = "") -> None:
        self.result = result  # the bytes of result.json; for who has them only now, until `index` is asked
        self._kinds: dict[str, int] = {}
        self._lanes: dict[str, int] = {}
        self._others = [0, 0]
        self._trouble: Trouble | None = None
        self._blocks = Blocks([], [], [], [])
        self._listed_every = 1
        self.borders = 0  # blocks so far, listed or not
        self._block_raw = 0  # where the block under way began
        self._marks = Marks(0, [], [], [], [])
        self._span = [0, 0]
        self.rows = self.raw = 0

    @property
    def begins_block(self) -> bool:
        """Whether the next row begins a block: the log is flushed before it."""
        return self.rows == 0 or self.raw - self._block_raw >= BLOCK_BYTES

    def row(self, event: Event, stored: int = 0) -> None:
        """The next row. Where it begins a block, `stored` is the byte of the stored entry at which that begins."""
        if self.begins_block:
            self._block(event, stored)
        self._others[0] += _counted(self._kinds, event.name)
        self._others[1] += _counted(self._lanes, event.lane)
        if event.name in MARKED or event.kind in ("permission", "marker"):
            self._mark(event)
        if self._trouble is None and is_trouble(event):
            self._trouble = Trouble(event.seq, event.t, event.name[:LONGEST_NAME])
        self._span = [event.t if self.rows == 0 else self._span[0], event.t]
        self.rows += 1
        self.raw += len(event.raw)

    def _block(self, event: Event, stored: int) -> None:
        blocks = self._blocks
        self._block_raw = self.raw
        if self.borders % self._listed_every == 0:
            if len(blocks.seq) == MOST_BLOCKS:
                self._listed_every *= 2
                for column in (blocks.seq, blocks.t, blocks.raw, blocks.stored):
                    del column[1::2]
            if self.borders % self._listed_every == 0:
                blocks.seq.append(event.seq)
                blocks.t.append(event.t)
                blocks.raw.append(self.raw)
                blocks.stored.append(stored)
        self.borders += 1

    def _mark(self, event: Event) -> None:
        marks = self._marks
        marks.total += 1
        if len(marks.seq) < MOST_MARKS:
            marks.seq.append(event.seq)
            marks.t.append(event.t)
            marks.kind.append(event.name[:LONGEST_NAME])
            marks.call.append(event.call[:LONGEST_NAME] if isinstance(event.call, str) else None)

    def index(self) -> Index:
        """The index of all rows so far."""
        kinds, lanes = (
            Counts(list(found), list(found.values()), others)
            for found, others in zip((self._kinds, self._lanes), self._others, strict=True)
        )
        return Index(
            FORMAT,
            self.rows,
            self.raw,
            self._span,
            self._blocks,
            self._marks,
            kinds,
            lanes,
            self._trouble,
            self.result,
        )


def _counted(found: dict[str, int], name: str) -> int:
    """Count a row under its name; returns 1 where there is no place for the name."""
    name = name[:LONGEST_NAME]
    if name not in found and len(found) == MOST_NAMES:
        return 1
    found[name] = found.get(name, 0) + 1
    return 0


def is_trouble(event: Event) -> bool:
    """Whether a row says that something went wrong: an error, a broken answer, a refused permission, a loss."""
    status: Any = event.data.get("status")
    return (
        "error" in event.data
        or (isinstance(status, int) and status >= 400)
        or event.data.get("closed_by") == "upstream"
        or event.name in ("permission/denied", "permission/revoked", "meta/loss", "meta/unknown")
    )
