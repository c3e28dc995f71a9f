"""pass@k and pass^k are what counting every choice of k tries gives; Wilson's interval is what its definition says."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.analysis.stats import Z95, pass_at_k, pass_hat_k, pass_rates, wilson
from worldline.errors import UsageError


@given(st.integers(1, 9), st.data())
def test_rates_are_those_of_all_choices(n: int, data: st.DataObject) -> None:
    passed, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    tries = [number < passed for number in range(n)]
    choices = list(itertools.combinations(tries, k))
    assert math.isclose(pass_at_k(n, passed, k), sum(map(any, choices)) / len(choices), abs_tol=1e-12)
    assert math.isclose(pass_hat_k(n, passed, k), sum(map(all, choices)) / len(choices), abs_tol=1e-12)


@given(st.integers(1, 400), st.data())
def test_the_interval_holds_the_chances_that_its_count_does_not_speak_against(n: int, data: st.DataObject) -> None:
    """Wilson: those p whose distance from the share is within z standard errors, counted with p itself."""
    passed = data.draw(st.integers(0, n))
    low, high = wilson(n, passed)
    assert 0 <= low <= passed / n <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            assert math.isclose(abs(passed / n - end), Z95 * math.sqrt(end * (1 - end) / n), rel_tol=1e-6)


def test_rates_lie_in_their_intervals_and_one_try_is_the_share() -> None:
    rates = pass_rates(5, 3)
    assert (rates.rates[0].pass_at, rates.rates[0].pass_hat) == (pytest.approx(0.6), pytest.approx(0.6))
    assert rates.rates[0].pass_at_interval == pytest.approx((0.2307, 0.8824), abs=1e-4)
    assert [rate.k for rate in rates.rates] == [1, 2, 3, 4, 5]
    assert [rate.pass_at for rate in rates.rates] == sorted(rate.pass_at for rate in rates.rates)


@pytest.mark.parametrize(("n", "passed", "k"), [(0, 0, 1), (3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_what_is_no_count_is_refused(n: int, passed: int, k: int) -> None:
    with pytest.raises(UsageError):
        pass_at_k(n, passed, k)
