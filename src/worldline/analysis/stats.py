"""How often does it succeed? Of n replicas of which c passed: pass@k, pass^k, and how sure that is.

pass@k is the chance that at least one of k tries passes, by the unbiased estimator of Chen et al. 2021 ("Evaluating
Large Language Models Trained on Code", equation 1); pass^k that all k do, estimated likewise. Intervals are Wilson's
for the chance of one try, carried over: both grow with it.
"""

from __future__ import annotations

import math

import msgspec

from worldline.errors import UsageError

Z95 = 1.959963984540054  # the normal quantile of a two-sided 95 % interval


class PassRate(msgspec.Struct, frozen=True):
    """For one k: the chance that one of k passes (`at`) and that all do (`hat`), with 95 % intervals."""

    k: int
    pass_at: float
    pass_at_interval: tuple[float, float]
    pass_hat: float
    pass_hat_interval: tuple[float, float]


class PassRates(msgspec.Struct, frozen=True):
    """Of `n` tries `passed` passed; the rates for k = 1 to n."""

    n: int
    passed: int
    rates: list[PassRate]


def pass_at_k(n: int, passed: int, k: int) -> float:
    """The unbiased estimate of the chance that at least one of k tries passes."""
    _check(n, passed, k)
    return 1.0 - math.comb(n - passed, k) / math.comb(n, k)


def pass_hat_k(n: int, passed: int, k: int) -> float:
    """The unbiased estimate of the chance that all of k tries pass."""
    _check(n, passed, k)
    return math.comb(passed, k) / math.comb(n, k)


def wilson(n: int, passed: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for the chance of one try (E. B. Wilson, 1927)."""
    _check(n, passed, 1)
    share, spread = passed / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return (max(0.0, middle - half) if passed else 0.0), (min(1.0, middle + half) if passed < n else 1.0)


def pass_rates(n: int, passed: int) -> PassRates:
    """The rates for every k up to n."""
    low, high = wilson(n, passed)
    rates = [
        PassRate(
            k,
            pass_at_k(n, passed, k),
            (1 - (1 - low) ** k, 1 - (1 - high) ** k),
            pass_hat_k(n, passed, k),
            (low**k, high**k),
        )
        for k in range(1, n + 1)
    ]
    return PassRates(n, passed, rates)


def _check(n: int, passed: int, k: int) -> None:
    if not (0 <= passed <= n and 1 <= k <= n):
        raise UsageError(f"no rate of {k} out of {n} tries of which {passed} passed")
