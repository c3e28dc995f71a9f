"""Folding the bytes of a log into what its seal says of them, without reading what they say: is every row chained?

Three hashes a row and no JSON: a third of the time that reading the rows takes. Whoever finds that a log does not fold
asks a `RowReader` what is wrong with it, and where.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from worldline.model import events
from worldline.model.merkle import Merkle
from worldline.store.rows import LogFile

_BUFFERED = 256 << 10  # bytes that are read from a file at once
_TOGETHER = 256  # leaves


class Folded(NamedTuple):
    """What a log comes to: its rows, its size in bytes, the hash of the last row, the Merkle root."""

    rows: int
    size: int
    head: bytes
    root: bytes


def fold(files: Iterable[LogFile]) -> Folded | None:
    """Fold the rows of `files`, in order; None where a line is no row chained to the one before."""
    head, merkle, rows, size = events.GENESIS, Merkle(), 0, 0
    of_leaf, link, suffix, leaves = events.leaf, events.link, events.suffix, []
    for path in files:
        with path.open("rb", _BUFFERED) as file:
            read = file.readline
            while line := read(events.MAX_ROW + 1):
                leaf = of_leaf(line[: -events.SUFFIX])
                head = link(head, leaf)
                if line[-events.SUFFIX :] != suffix(head):
                    return None
                leaves.append(leaf)
                size += len(line)
                if len(leaves) == _TOGETHER:
                    merkle.extend(leaves)
                    rows, leaves = rows + len(leaves), []
    merkle.extend(leaves)
    return Folded(rows + len(leaves), size, head, merkle.root())
