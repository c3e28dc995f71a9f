"""What differs between two values, with its path; what is no difference by itself is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.analysis.changes import MOST_CHANGES, MOST_SHOWN, changes

SCALAR = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)


def told(left: Any, right: Any) -> list[tuple[str, str, str | None]]:
    return [(change.path, change.kind, change.volatile) for change in changes(left, right)[0]]


@given(VALUE)
def test_a_value_and_itself_do_not_differ_as_json_in_a_text_too(value: Any) -> None:
    assert changes(value, value) == ([], 0)
    held = {"value": value}
    assert changes(json.dumps(held), json.dumps(held, indent=1)) == ([], 0)


@given(VALUE, VALUE)
def test_the_other_direction_has_the_same_paths(left: Any, right: Any) -> None:
    back = {"added": "removed", "removed": "added", "changed": "changed"}
    assert sorted(told(left, right), key=str) == sorted(
        ((path, back[kind], rule) for path, kind, rule in told(right, left)), key=str
    )


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [("$.a[1].b", "changed", None)]),
        ('{"amount": 64}', '{"amount": 20, "why": 1}', [("$.amount", "changed", None), ("$.why", "added", None)]),
        ({"a b": 1}, {}, [('$["a b"]', "removed", None)]),
        (1, 1.0, []),
        (1, True, [("$", "changed", None)]),
        ([], {}, [("$", "changed", None)]),
        ("{", "[", [("$", "changed", None)]),
        (
            {"request_id": "a", "n": 1},
            {"request_id": "b", "n": 2},
            [("$.n", "changed", None), ("$.request_id", "changed", "id")],
        ),
        ("at 2026-11-30T07:12:04Z", "at 2026-12-01T09:00:00Z", [("$", "changed", "date")]),
        ("at 2026-11-30, lamp", "at 2026-12-01, sofa", [("$", "changed", None)]),
        ({"id": {"a": 1}}, {"id": 1}, [("$.id", "changed", None)]),
        (1764486729, 1764486730, [("$", "changed", "time")]),
        ({"id": 1}, {}, [("$.id", "removed", None)]),
    ],
)
def test_a_change_has_its_path_and_its_rule(left: Any, right: Any, expected: list[tuple[str, str, str | None]]) -> None:
    assert told(left, right) == expected


def test_of_a_long_text_the_part_that_differs_is_kept() -> None:
    (change,), more = changes("x" * 50_000 + "left" + "y" * 50_000, "x" * 50_000 + "right" + "y" * 50_000)
    assert change.at is not None
    assert 50_000 - change.at < len(change.left) <= MOST_SHOWN
    assert "left" in change.left
    assert "right" in change.right
    assert more == 0


def test_of_many_changes_the_first_are_kept_and_the_rest_counted_those_that_count_before_others() -> None:
    left = {"ids": [{"id": n} for n in range(1000)], "n": list(range(1000))}
    right = {"ids": [{"id": -n} for n in range(1000)], "n": list(range(1, 1001))}
    kept, more = changes(left, right)
    assert len(kept) == MOST_CHANGES
    assert len(kept) + more == 999 + 1000
    assert all(change.volatile is None for change in kept)


def test_json_as_deep_as_its_author_likes_is_compared_and_can_be_said() -> None:
    deep = "[" * 700 + "1" + "]" * 700
    (change,), _ = changes(json.dumps({"a": 1}), '{"a": ' + deep + "}")
    assert json.dumps(change.right)
    assert len(changes("[" * 100_000 + "1", "[" * 100_000 + "2")[0]) == 1
    assert changes(deep, deep.replace("1", "2"))[0][0].path == "$" + "[0]" * 700
