"""The Merkle tree over the leaves of a log (RFC 9162, section 2.1): its root, and proofs of one leaf or one prefix.

A node is `SHA256(0x01 | left | right)`. Every hash of a proof is the root over one range of leaves, and the ranges of a
proof are disjoint: so one pass over the leaves makes it, in memory that grows with log2(n).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

_TOGETHER = 64  # leaves; a power of two
_NODE = hashlib.sha256(b"\x01")  # to be copied, which takes less time than to begin anew
Range = tuple[int, int]
"""Leaves from the first number up to, not including, the second."""


class Merkle:
    """Folds leaves (32 bytes each) one by one; memory grows with log2(n).

    Leaves are kept until a whole subtree of `_TOGETHER` can be folded in one go, at less cost a leaf.
    """

    def __init__(self) -> None:
        self._peaks: list[bytes] = []  # of the folded leaves, the largest subtree first
        self._folded = 0  # how many subtrees of `_TOGETHER` leaves are in them
        self._leaves: list[bytes] = []

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return self._folded * _TOGETHER + len(self._leaves)

    def add(self, leaf: bytes) -> None:
        """Add the next leaf."""
        self._leaves.append(leaf)
        if len(self._leaves) == _TOGETHER:
            self._fold_leaves()

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add the next leaves, many of which cost less than one by one."""
        at = 0
        while at < len(leaves):
            take = _TOGETHER - len(self._leaves)
            self._leaves += leaves[at : at + take]
            at += take
            if len(self._leaves) == _TOGETHER:
                self._fold_leaves()

    def _fold_leaves(self) -> None:
        """Fold `_TOGETHER` leaves into the peaks."""
        peak, trees = _subtree(self._leaves), self._folded
        while trees & 1:
            peak, trees = node(self._peaks.pop(), peak), trees >> 1
        self._peaks.append(peak)
        self._folded, self._leaves = self._folded + 1, []

    def root(self) -> bytes:
        """The root over all leaves so far; the hash of nothing for no leaves, as the RFC says."""
        peaks, at, size = [*self._peaks], 0, _TOGETHER
        while at < len(self._leaves):  # the leaves that wait are subtrees of falling size, too
            while size > len(self._leaves) - at:
                size //= 2
            peaks.append(_subtree(self._leaves[at : at + size]))
            at += size
        if not peaks:
            return hashlib.sha256(b"").digest()
        root = peaks.pop()
        while peaks:
            root = node(peaks.pop(), root)
        return root


class RangeRoots:
    """The roots over disjoint, not empty ranges of leaves that come one by one: what a proof is made of."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._ranges = list(ranges)
        self._waiting = sorted(self._ranges, reverse=True)
        self._fold = Merkle()
        self._roots: dict[Range, bytes] = {}
        self._at = 0

    def add(self, leaf: bytes) -> None:
        """Take the next leaf."""
        if self._waiting and self._waiting[-1][0] <= self._at:
            self._fold.add(leaf)
            if self._at + 1 == self._waiting[-1][1]:
                self._roots[self._waiting.pop()] = self._fold.root()
                self._fold = Merkle()
        self._at += 1

    def roots(self) -> list[bytes]:
        """The roots in the order in which the ranges were given. Raises `ValueError` before all leaves have come."""
        if self._waiting:
            raise ValueError(f"{self._at} leaves do not reach to {self._waiting[0][1]}")
        return [self._roots[span] for span in self._ranges]


def inclusion(index: int, size: int) -> list[Range]:
    """The ranges whose roots prove the leaf `index` of `size`: PATH of RFC 9162, 2.1.3.1; at most ceil(log2(size)).

    Raises `ValueError` for a leaf that the tree does not have.
    """
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} in a tree of {size}")
    path: list[Range] = []
    low, high = 0, size
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            path.append((middle, high))
            high = middle
        else:
            path.append((low, middle))
            low = middle
    return path[::-1]


def consistency(prefix: int, size: int) -> list[Range]:
    """The ranges whose roots prove that the first `prefix` leaves of `size` were those of a tree with a known root.

    PROOF of RFC 9162, 2.1.4.1; at most ceil(log2(size)) + 1. Raises `ValueError` for a prefix of nothing, or longer
    than the tree.
    """
    if not 0 < prefix <= size:
        raise ValueError(f"no prefix of {prefix} in a tree of {size}")
    path: list[Range] = []
    low, high = 0, size
    while high != prefix:
        middle = low + _split(high - low)
        if prefix <= middle:
            path.append((middle, high))
            high = middle
        else:
            path.append((low, middle))
            low = middle
    if low > 0:  # a whole prefix needs no hash of its own: its root is known
        path.append((low, high))
    return path[::-1]


def includes(root: bytes, size: int, index: int, leaf: bytes, path: Sequence[bytes]) -> bool:
    """Whether `path` proves that `leaf` is number `index` of the `size` under `root` (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    at, last, found = index, size - 1, leaf
    for other in path:
        if last == 0:
            return False
        if at & 1 or at == last:
            found = node(other, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node(found, other)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root


def extends(root: bytes, size: int, prefix_root: bytes, prefix: int, path: Sequence[bytes]) -> bool:
    """Whether `path` proves that the tree of `size` under `root` begins with the `prefix` leaves under `prefix_root`.

    RFC 9162, 2.1.4.2.
    """
    if not 0 < prefix <= size:
        return False
    if prefix == size:
        return not path and prefix_root == root
    whole = [prefix_root, *path] if prefix & (prefix - 1) == 0 else list(path)
    if not whole:
        return False
    at, last = prefix - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    before = after = whole[0]
    for other in whole[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            before, after = node(other, before), node(other, after)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            after = node(after, other)
        at, last = at >> 1, last >> 1
    return last == 0 and before == prefix_root and after == root


def node(left: bytes, right: bytes) -> bytes:
    """The parent of two nodes."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def _subtree(leaves: list[bytes]) -> bytes:
    """The root of a subtree whose number of leaves is a power of two."""
    begun, level = _NODE.copy, leaves
    while len(level) > 1:
        pairs, level = iter(level), []
        for left, right in zip(pairs, pairs, strict=True):
            digest = begun()
            digest.update(left + right)
            level.append(digest.digest())
    return level[0]


def _split(size: int) -> int:
    """The largest power of two below `size`, which is 2 or more."""
    return 1 << ((size - 1).bit_length() - 1)
