"""Chance that is counted, not consumed: a draw is a function of its key, so an order of execution changes nothing.

The n-th draw of step i under a key is SplitMix64's output function (Steele, Lea and Flood 2014) of key, i and n. A key
is the BLAKE2b digest of words: the seed of the suite, what is executed, which rollout.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio, SplitMix64's increment
STRIDE = 64  # draws a step may make before it would meet the next step's


class Dice(Protocol):
    """What a step of an agent draws with."""

    def happens(self, odds: float) -> bool:
        """Whether something of this probability happens."""
        ...

    def pick(self, weights: Sequence[float]) -> int:
        """An index, each with its probability; they add up to 1."""
        ...


def key(*words: object) -> int:
    """64 bits that stand for these words."""
    return int.from_bytes(blake2b("\0".join(map(str, words)).encode(), digest_size=8).digest(), "big")


class Keyed:
    """Dice of one execution. `place` counts the draws; that of step i's first is i times `STRIDE`."""

    __slots__ = ("_key", "place")

    def __init__(self, key: int) -> None:
        self._key = key
        self.place = 0

    def uniform(self) -> float:
        """The next number in [0, 1)."""
        self.place += 1
        word = self._key + GOLDEN * self.place & MASK
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
        return ((word ^ (word >> 31)) >> 11) * 2.0**-53

    def happens(self, odds: float) -> bool:
        """Whether something of this probability happens."""
        return self.uniform() >= 1 - odds  # as `pick` has it of 1 - odds and odds

    def pick(self, weights: Sequence[float]) -> int:
        """An index, each with its probability."""
        left = self.uniform()
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        return len(weights) - 1

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` up to, not with, `high`; all are as likely."""
        return low + int(self.uniform() * (high - low))
