"""Exact binomial tails: how surprising a count would be if a share were true."""

from __future__ import annotations

import math

SURPRISE = 1e-4  # a count this unlikely is no accident: seeds are fixed, so a test is green for ever or red for ever


def at_most(seen: int, n: int, share: float) -> float:
    """The chance of `seen` or fewer of n."""
    return math.fsum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(seen + 1))


def at_least(seen: int, n: int, share: float) -> float:
    """The chance of `seen` or more of n."""
    return math.fsum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(seen, n + 1))


def agrees(seen: int, n: int, share: float) -> bool:
    """Whether a count can come from this share."""
    return min(at_most(seen, n, share), at_least(seen, n, share)) > SURPRISE
