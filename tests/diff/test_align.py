"""Which step is which: the alignment of any two runs is one, is the shortest, and finds what was put in."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.analysis import align as alignments
from worldline.analysis.align import Alignment, Keys, align

RUN = st.lists(st.sampled_from("abcdef"), max_size=40)


def keys(steps: Sequence[str]) -> Keys:
    """A step `x1` is action `x` with the argument 1."""
    return Keys(list(steps), [step[:1] for step in steps])


def aligned(left: Sequence[str], right: Sequence[str]) -> Alignment:
    found = align(keys(left), keys(right))
    check(left, right, found)
    return found


def check(left: Sequence[str], right: Sequence[str], found: Alignment) -> None:
    """Every step of either side stands in it once, in order; exact rows hold two of one key."""
    assert [row.left for row in found.rows if row.left >= 0] == list(range(len(left)))
    assert [row.right for row in found.rows if row.right >= 0] == list(range(len(right)))
    for row in found.rows:
        one_key = row.left >= 0 and row.right >= 0 and left[row.left] == right[row.right]
        assert row.exact == one_key if found.shortest else row.exact <= one_key


def exact(found: Alignment) -> int:
    return sum(row.exact for row in found.rows)


def longest_common(left: Sequence[str], right: Sequence[str]) -> int:
    """How many steps two runs have in common, in order; by the table that everybody knows."""
    best = [0] * (len(right) + 1)
    for a in left:
        before = best[:]
        for j, b in enumerate(right):
            best[j + 1] = before[j] + 1 if a == b else max(before[j + 1], best[j])
    return best[-1]


@given(RUN)
def test_a_run_and_itself_do_not_differ(run: list[str]) -> None:
    found = aligned(run, run)
    assert (exact(found), found.first, found.shortest) == (len(run), -1, True)


@given(RUN, RUN)
def test_no_alignment_has_more_steps_in_common(left: list[str], right: list[str]) -> None:
    assert exact(aligned(left, right)) == longest_common(left, right)


@given(RUN, RUN)
def test_both_directions_agree(left: list[str], right: list[str]) -> None:
    there, back = aligned(left, right), aligned(right, left)
    assert (exact(there), there.first) == (exact(back), back.first)


@given(RUN, st.lists(st.integers(0, 40), max_size=8))
def test_steps_that_were_inserted_are_found_and_no_others(run: list[str], places: list[int]) -> None:
    longer = list(run)
    for number, place in enumerate(places):
        longer.insert(min(place, len(longer)), f"+{number}")
    found = aligned(run, longer)
    assert [longer[row.right] for row in found.rows if row.left < 0] == [step for step in longer if step[0] == "+"]
    assert exact(found) == len(run)
    assert all(row.exact for row in found.rows if row.left >= 0)


def test_a_step_whose_argument_changed_is_a_pair() -> None:
    found = aligned(["a", "b1", "c"], ["a", "n", "b2", "c"])
    assert [(row.left, row.right, row.exact) for row in found.rows] == [
        (0, 0, True),
        (-1, 1, False),
        (1, 2, False),
        (2, 3, True),
    ]


def test_runs_that_differ_too_much_are_aligned_in_parts_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [f"a{n % 7}" for n in range(40)] + ["x"] + [f"a{n % 5}" for n in range(40)]
    right = [f"a{n % 3}" for n in range(40)] + ["x"] + [f"a{n % 4}" for n in range(40)]
    assert aligned(left, right).shortest
    monkeypatch.setattr(alignments, "MOST_EDITS", 10)
    found = aligned(left, right)
    assert not found.shortest
    assert any(
        row.exact and left[row.left] == "x" for row in found.rows
    )  # what stands once on either side is held on to


def test_the_work_is_bounded_over_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignments, "MOST_ROUNDS", 50)
    found = aligned([f"a{n % 9}" for n in range(300)], [f"a{n * n % 8}" for n in range(300)])
    assert not found.shortest


def test_long_runs_of_which_nothing_is_the_same_cost_next_to_nothing() -> None:
    found = aligned([f"a{n}" for n in range(20_000)], [f"b{n}" for n in range(20_000)])
    assert (len(found.rows), found.shortest) == (40_000, True)
