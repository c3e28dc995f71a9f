"""How sure: intervals for a difference of two chances, and sequences of intervals that hold however often one looks.

Wilson's interval for one chance is in `analysis.stats`. All levels here are `alpha`, the chance to miss the truth, on
both sides together. A count is (successes, tries).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist, fmean

from worldline.analysis.stats import wilson
from worldline.engine.clock import generator
from worldline.errors import UsageError

Interval = tuple[float, float]
EVERYTHING: Interval = (0.0, 1.0)
_ROUNDS = 40  # of a bisection in [0, 1]: down to 1e-12


@lru_cache(maxsize=256)
def z_of(alpha: float) -> float:
    """The normal quantile of a two-sided interval that misses with chance `alpha`."""
    if not 0 < alpha < 1:
        raise UsageError(f"an interval misses with a chance between 0 and 1, not {alpha}")
    return NormalDist().inv_cdf(1 - alpha / 2)


def newcombe(before: tuple[int, int], after: tuple[int, int], alpha: float = 0.05) -> Interval:
    """Newcombe's hybrid score interval for `p(before) - p(after)`, two independent counts (method 10 of 1998).

    R. G. Newcombe, "Interval estimation for the difference between independent proportions", Statistics in Medicine
    17:873-890. With no tries on a side the interval is [-1, 1].
    """
    (s, n), (t, m) = before, after
    if not n or not m:
        return (-1.0, 1.0)
    p, q, z = s / n, t / m, z_of(alpha)
    (p_low, p_high), (q_low, q_high) = wilson(n, s, z), wilson(m, t, z)
    return p - q - math.hypot(p - p_low, q_high - q), p - q + math.hypot(p_high - p, q - q_low)


def newcombe_paired(both: int, only_before: int, only_after: int, neither: int, alpha: float = 0.05) -> Interval:
    """Newcombe's interval for `p(before) - p(after)` of pairs (method 10 for paired data, 1998).

    R. G. Newcombe, "Improved confidence intervals for the difference between binomial proportions based on paired
    data", Statistics in Medicine 17:2635-2650.
    """
    n = both + only_before + only_after + neither
    if not n:
        return (-1.0, 1.0)
    s, t, z = both + only_before, both + only_after, z_of(alpha)
    p, q = s / n, t / n
    (p_low, p_high), (q_low, q_high) = wilson(n, s, z), wilson(n, t, z)
    phi = _phi(both, only_before, only_after, neither)

    def width(x: float, y: float) -> float:
        return math.sqrt(max(0.0, x * x - 2 * phi * x * y + y * y))

    return p - q - width(p - p_low, q_high - q), p - q + width(p_high - p, q - q_low)


def _phi(a: int, b: int, c: int, d: int) -> float:
    """The correlation of the pairs, corrected for continuity where it is positive (there)."""
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if not margins:
        return 0.0
    n, cross = a + b + c + d, a * d - b * c
    if cross > n / 2:
        cross_corrected: float = cross - n / 2
    else:
        cross_corrected = min(cross, 0)
    return cross_corrected / math.sqrt(margins)


@lru_cache(maxsize=65536)
def confidence_sequence(successes: int, n: int, alpha: float = 0.05) -> Interval:
    """Robbins's interval for one chance, valid at all n at once: with chance 1 - alpha it never misses.

    The likelihood of the truth is compared with the mixture of all likelihoods, uniform over [0, 1] (beta-binomial);
    by Ville's inequality the ratio exceeds 1 / alpha with chance alpha at most. H. Robbins, "Statistical methods
    related to the law of the iterated logarithm", Annals of Mathematical Statistics 41:1397-1409, 1970.
    """
    if not 0 <= successes <= n:
        raise UsageError(f"{successes:,} successes in {n:,} tries")
    if not n:
        return EVERYTHING
    failures = n - successes
    mixture = math.lgamma(successes + 1) + math.lgamma(failures + 1) - math.lgamma(n + 2)
    least = mixture + math.log(alpha)

    def plausible(p: float) -> bool:
        seen = (successes * math.log(p) if successes else 0.0) + (failures * math.log1p(-p) if failures else 0.0)
        return seen > least

    middle = successes / n
    return (_edge(plausible, middle, 0.0) if successes else 0.0), (_edge(plausible, middle, 1.0) if failures else 1.0)


def _edge(inside: Callable[[float], bool], within: float, without: float) -> float:
    """Where `inside` ends between a point of it and one outside."""
    for _ in range(_ROUNDS):
        middle = (within + without) / 2
        if middle in (0.0, 1.0):
            break
        within, without = (middle, without) if inside(middle) else (within, middle)
    return without


def difference_sequence(before: tuple[int, int], after: tuple[int, int], alpha: float = 0.05) -> Interval:
    """An interval for `p(before) - p(after)` that holds at all numbers of tries at once: one sequence for each."""
    (p_low, p_high), (q_low, q_high) = (confidence_sequence(s, n, alpha / 2) for s, n in (before, after))
    return p_low - q_high, p_high - q_low


@lru_cache(maxsize=4096)
def bootstrap_share(successes: int, n: int, alpha: float = 0.05) -> Interval:
    """The percentile bootstrap of one share, exact: its resamples are binomial. It has no width at 0 and at 1.

    At a chance of .02 and 20 tries it holds the truth in a third of all cases: Wilson's interval is the one to trust.
    """
    if not 0 <= successes <= n or not n:
        raise UsageError(f"{successes:,} successes in {n:,} tries")
    if successes in (0, n):
        return successes / n, successes / n
    p, total = successes / n, 0.0
    ends: list[float] = []
    levels = [alpha / 2, 1 - alpha / 2]
    for k in range(n + 1):
        logs = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        total += math.exp(logs + k * math.log(p) + (n - k) * math.log1p(-p))
        while len(ends) < 2 and (total >= levels[len(ends)] or k == n):
            ends.append(k / n)
    return ends[0], ends[1]


def bootstrap_difference(
    before: Sequence[float], after: Sequence[float], alpha: float = 0.05, resamples: int = 2000, seed: int = 0
) -> Interval:
    """The percentile bootstrap of `mean(before) - mean(after)`. Few or equal values make it too narrow: see `coverage`.

    Raises `UsageError` where a side is empty.
    """
    if not before or not after:
        raise UsageError("a mean needs a score on both sides")
    chance = generator(seed)
    means = sorted(
        fmean(chance.choices(before, k=len(before))) - fmean(chance.choices(after, k=len(after)))
        for _ in range(resamples)
    )
    cut = alpha / 2 * (resamples - 1)
    return _between(means, cut), _between(means, resamples - 1 - cut)


def _between(ordered: list[float], place: float) -> float:
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def bootstrap_coverage(
    before: Sequence[float], after: Sequence[float], alpha: float = 0.05, worlds: int = 100, seed: int = 0
) -> float | None:
    """How often the bootstrap would hit, were the truth what was seen: measured on `worlds` samples of the scores.

    None where the scores of both sides are all equal: then it has no width, and nothing can be said.
    """
    if len(set(before)) < 2 and len(set(after)) < 2:
        return None
    truth, chance, hits = fmean(before) - fmean(after), generator(seed + 1), 0
    for world in range(worlds):
        sample = chance.choices(before, k=len(before)), chance.choices(after, k=len(after))
        low, high = bootstrap_difference(*sample, alpha=alpha, resamples=worlds, seed=seed + 2 + world)
        hits += low <= truth <= high
    return hits / worlds
