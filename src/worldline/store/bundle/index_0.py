"""The index of bundles that were packed as worldline-index/0, read as the newest says it and derived as it was then."""

from __future__ import annotations

from collections import Counter

import msgspec

from worldline.model.events import Event
from worldline.store.bundle import index as newest
from worldline.store.bundle.index import MARKED, MOST_MARKS, MOST_NAMES, Counts, Index, is_trouble

FORMAT = "worldline-index/0"


class Blocks(msgspec.Struct):
    """As in the newest, without times."""

    seq: list[int] = []
    raw: list[int] = []
    stored: list[int] = []


class Marks(msgspec.Struct):
    """As in the newest, but all of them."""

    seq: list[int] = []
    t: list[int] = []
    kind: list[str] = []
    call: list[str | None] = []


class Index0(msgspec.Struct):
    """All of it. `first_trouble` is the seq of the first row that says something went wrong, or None."""

    format: str
    rows: int
    raw: int
    blocks: Blocks
    marks: Marks
    kinds: dict[str, int]
    lanes: dict[str, int]
    first_trouble: int | None
    result: str

    def upcast(self) -> Index:
        """The same as the newest says it; the times that it does not have are left out."""
        marks, trouble = self.marks, self.first_trouble
        return Index(
            newest.FORMAT,
            self.rows,
            self.raw,
            [],
            newest.Blocks(self.blocks.seq, [], self.blocks.raw, self.blocks.stored),
            newest.Marks(
                len(marks.seq),
                marks.seq[:MOST_MARKS],
                marks.t[:MOST_MARKS],
                marks.kind[:MOST_MARKS],
                marks.call[:MOST_MARKS],
            ),
            _counts(self.kinds),
            _counts(self.lanes),
            None if trouble is None else newest.Trouble(trouble),
            self.result,
        )


def _counts(rows: dict[str, int]) -> Counts:
    first = dict(list(rows.items())[:MOST_NAMES])
    return Counts(list(first), list(first.values()), sum(rows.values()) - sum(first.values()))


class IndexBuilder0:
    """Derives it again from the rows. The borders of blocks are those of `given`, whose rows are then looked at."""

    def __init__(self, given: Index0) -> None:
        self._given = given
        self._kinds: Counter[str] = Counter()
        self._lanes: Counter[str] = Counter()
        self._trouble: int | None = None
        self._borders = frozenset(given.blocks.seq)
        self._blocks = Blocks([], [], given.blocks.stored)
        self._marks = Marks([], [], [], [])
        self.rows = self.raw = 0

    def row(self, event: Event) -> None:
        """The next row."""
        if event.seq in self._borders:
            self._blocks.seq.append(self.rows)
            self._blocks.raw.append(self.raw)
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

    def index(self) -> Index0:
        """The index of all rows so far."""
        return Index0(
            FORMAT,
            self.rows,
            self.raw,
            self._blocks,
            self._marks,
            dict(sorted(self._kinds.items())),
            dict(sorted(self._lanes.items())),
            self._trouble,
            self._given.result,
        )
