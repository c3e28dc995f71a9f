"""The intervals hold what they say, against scipy and against sums over every outcome that there can be."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from worldline.analysis.attribution.intervals import (
    bootstrap_coverage,
    bootstrap_difference,
    bootstrap_share,
    confidence_sequence,
    difference_sequence,
    newcombe,
    newcombe_paired,
    z_of,
)
from worldline.analysis.stats import wilson
from worldline.errors import UsageError

LEVELS = (0.05, 0.05 / 3, 0.2)
counts = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(max_examples=40)
@given(counts, st.sampled_from(LEVELS))
def test_wilson_is_scipys(count: tuple[int, int], alpha: float) -> None:
    successes, n = count
    theirs = stats.binomtest(successes, n).proportion_ci(1 - alpha, method="wilson")
    assert wilson(n, successes, z_of(alpha)) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@settings(max_examples=40)
@given(counts, counts, st.sampled_from(LEVELS))
def test_newcombe_is_made_of_scipys_wilson_intervals(before, after, alpha) -> None:
    (p, p_low, p_high), (q, q_low, q_high) = (
        (s / n, *stats.binomtest(s, n).proportion_ci(1 - alpha, method="wilson")) for s, n in (before, after)
    )
    expected = (
        p - q - math.sqrt((p - p_low) ** 2 + (q_high - q) ** 2),
        p - q + math.sqrt((p_high - p) ** 2 + (q - q_low) ** 2),
    )
    assert newcombe(before, after, alpha) == pytest.approx(expected, abs=1e-9)


def test_newcombe_gives_the_intervals_of_its_paper() -> None:
    assert newcombe((56, 70), (48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert newcombe((9, 10), (3, 10)) == pytest.approx((0.1705, 0.8090), abs=5e-5)
    assert newcombe((10, 10), (0, 20)) == pytest.approx((0.6791, 1.0), abs=5e-5)


@pytest.mark.parametrize("chances", [(0.2, 0.0), (0.5, 0.0), (0.5, 0.3), (0.9, 0.1), (0.5, 0.5), (0.05, 0.05)])
def test_newcombe_holds_the_truth_as_often_as_it_says(chances: tuple[float, float]) -> None:
    """Summed up over all outcomes of 32 and 32 rollouts: exact, no chance in it."""
    n, (p, q) = 32, chances
    first, second = ([float(stats.binom.pmf(k, n, chance)) for k in range(n + 1)] for chance in chances)
    held = 0.0
    for s, t in product(range(n + 1), repeat=2):
        low, high = newcombe((s, n), (t, n))
        held += first[s] * second[t] * (low <= p - q <= high)
    assert held >= 0.93


def test_pairs_that_agree_tell_more_than_two_counts_and_are_never_certain() -> None:
    for both, only_before, only_after, neither in [(10, 10, 0, 12), (20, 6, 0, 6), (12, 8, 1, 11)]:
        n = both + only_before + only_after + neither
        low, high = newcombe_paired(both, only_before, only_after, neither)
        alone = newcombe((both + only_before, n), (both + only_after, n))
        assert alone[0] <= low < (only_before - only_after) / n < high <= alone[1]


@pytest.mark.parametrize(
    ("both", "first", "second"), [(0.3, 0.3, 0.0), (0.2, 0.2, 0.1), (0.0, 0.5, 0.0), (0.3, 0.0, 0.0)]
)
def test_the_paired_interval_holds_the_truth_as_often_as_it_says(both: float, first: float, second: float) -> None:
    """Summed up over all tables of 12 pairs."""
    n, held = 12, 0.0
    shares = (both, first, second, 1 - both - first - second)
    for a, b, c in product(range(n + 1), repeat=3):
        if a + b + c <= n:
            table = (a, b, c, n - a - b - c)
            low, high = newcombe_paired(*table)
            if low <= first - second <= high:
                held += float(stats.multinomial.pmf(table, n, shares))
    assert held >= 0.93


@settings(max_examples=40)
@given(counts, st.sampled_from(LEVELS))
def test_the_confidence_sequence_is_where_the_beta_binomial_ratio_reaches_its_level(count, alpha) -> None:
    successes, n = count

    def ratio(p: float) -> float:
        seen = special.xlogy(successes, p) + special.xlog1py(n - successes, -p)
        return float(special.betaln(successes + 1, n - successes + 1) - seen + math.log(alpha))

    low = optimize.brentq(ratio, 1e-300, successes / n) if successes else 0.0
    high = optimize.brentq(ratio, successes / n, 1 - 1e-16) if successes < n else 1.0
    assert confidence_sequence(successes, n, alpha) == pytest.approx((low, high), abs=1e-7)


@pytest.mark.parametrize("p", [0.05, 0.3])
def test_the_confidence_sequence_is_left_at_no_time_more_often_than_it_says(p: float) -> None:
    """The chance that it ever misses within 120 tries, by summing up over all paths that it still held."""
    alpha, paths, missed = 0.05, {0: 1.0}, 0.0
    for n in range(1, 121):
        after: dict[int, float] = {}
        for successes, chance in paths.items():
            for gained, part in ((1, p), (0, 1 - p)):
                after[successes + gained] = after.get(successes + gained, 0.0) + chance * part
        held = {s: low <= p <= high for s in after for low, high in [confidence_sequence(s, n, alpha)]}
        missed += sum(chance for s, chance in after.items() if not held[s])
        paths = {s: chance for s, chance in after.items() if held[s]}
    assert 0.0 < missed <= alpha


@settings(max_examples=40)
@given(counts, counts)
def test_a_sequence_for_a_difference_is_wider_than_an_interval_that_may_be_looked_at_once(before, after) -> None:
    low, high = difference_sequence(before, after)
    least, most = newcombe(before, after)
    assert low <= least + 0.02 and most - 0.02 <= high


@settings(max_examples=40)
@given(counts, st.sampled_from(LEVELS))
def test_the_bootstrap_of_a_share_is_the_quantile_of_scipys_binomial(count, alpha) -> None:
    successes, n = count
    expected = [float(stats.binom.ppf(level, n, successes / n)) / n for level in (alpha / 2, 1 - alpha / 2)]
    assert list(bootstrap_share(successes, n, alpha)) == pytest.approx(expected, abs=1 / n + 1e-9)
    assert bootstrap_share(successes, n, alpha)[0] <= successes / n <= bootstrap_share(successes, n, alpha)[1]


def test_the_bootstrap_of_a_share_misses_a_small_chance_two_times_in_three() -> None:
    n, p = 20, 0.02
    held = sum(
        float(stats.binom.pmf(s, n, p))
        for s in range(n + 1)
        for low, high in [bootstrap_share(s, n)]
        if low <= p <= high
    )
    assert held == pytest.approx(0.33, abs=0.01)


def test_the_bootstrap_of_a_difference_is_scipys() -> None:
    first, second = [0.1, 0.4, 0.5, 0.9, 0.7, 0.3], [0.2, 0.1, 0.6, 0.4]
    theirs = stats.bootstrap(
        (first, second),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=1,
    ).confidence_interval
    ours = bootstrap_difference(first, second, resamples=20_000)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.01)
    assert ours == bootstrap_difference(first, second, resamples=20_000), "the same scores, the same interval"


def test_the_coverage_of_a_bootstrap_is_measured_and_unknown_where_it_has_no_width() -> None:
    spread, few = [k / 40 for k in range(40)], [0.0] * 11 + [1.0]
    assert bootstrap_coverage(spread, spread, worlds=100) == pytest.approx(0.95, abs=0.06)
    measured = bootstrap_coverage(few, few[:1] * 12, worlds=100)
    assert measured is not None and measured < 0.8, "one odd score in twelve: it is often not drawn at all"
    assert bootstrap_coverage([1.0] * 5, [0.0] * 5) is None


def test_what_is_no_count_is_refused() -> None:
    with pytest.raises(UsageError):
        confidence_sequence(3, 2)
    with pytest.raises(UsageError):
        bootstrap_share(0, 0)
    with pytest.raises(UsageError):
        bootstrap_difference([], [1.0])
    with pytest.raises(UsageError):
        z_of(0.0)
    assert newcombe((0, 0), (1, 2)) == (-1.0, 1.0) and confidence_sequence(0, 0) == (0.0, 1.0)
