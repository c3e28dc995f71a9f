"""Keys: the same inputs in any spelling have one key, any other inputs have another, and the difference has a path."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.model.odd_values import same
from worldline.model.canon import MISSING, canonical, differences, op_key, parse

texts = st.text(st.characters(), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def respelled(value: Any, chance: random.Random) -> str:
    """The same JSON value with other key order, white space and escapes."""
    space = lambda: chance.choice(["", " ", "\n", "\t \r"])  # noqa: E731
    if isinstance(value, dict):
        items = list(value.items())
        chance.shuffle(items)
        inside = ",".join(
            space() + respelled(k, chance) + space() + ":" + space() + respelled(v, chance) for k, v in items
        )
        return "{" + inside + space() + "}"
    if isinstance(value, list):
        return "[" + ",".join(space() + respelled(v, chance) + space() for v in value) + "]"
    if isinstance(value, str):
        return '"' + "".join(chance.choice([escaped(c), json.dumps(c, ensure_ascii=False)[1:-1]]) for c in value) + '"'
    return json.dumps(value)


def escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def lone(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


@given(json_values, st.randoms(use_true_random=False))
def test_spelling_does_not_change_the_key(value: Any, chance: random.Random) -> None:
    assume(not lone(value))
    assert canonical(parse(respelled(value, chance).encode())) == canonical(parse(json.dumps(value).encode()))


@given(json_values)
def test_parsing_and_the_canonical_form_keep_every_value(value: Any) -> None:
    text = json.dumps(value).encode()
    assert same(sorted_keys(json.loads(canonical(parse(text)))), sorted_keys(json.loads(text)))


def sorted_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    return [sorted_keys(item) for item in value] if isinstance(value, list) else value


@given(json_values, json_values)
def test_other_values_have_other_keys_and_a_difference(left: Any, right: Any) -> None:
    left, right = parse(json.dumps(left).encode()), parse(json.dumps(right).encode())
    alike = canonical(left) == canonical(right)
    assert alike == (not list(differences(left, right)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"1", b"1.0"),
        (b"0.0", b"-0.0"),
        (b"1", b"true"),
        (b"0", b"false"),
        (b"null", b"NaN"),
        (b"null", b"1e400"),
        (b"1e400", b"-1e400"),
        (b"9007199254740993", b"9007199254740992"),
        (b"18446744073709551616", b"18446744073709551617"),
        (b"18446744073709551616", b"1.8446744073709552e19"),
        (b'"\\ud800"', b'"\\ud801"'),
        (b'"\\ud800"', b'"\\ufffd"'),
        (b'""', b"null"),
        (b"{}", b"[]"),
        (b'"e\\u0301"', b'"\\u00e9"'),
    ],
)
def test_near_values_stay_apart(one: bytes, other: bytes) -> None:
    for left, right in ((one, other), (b'{"a":[' + one + b"]}", b'{"a":[' + other + b"]}")):
        assert canonical(parse(left)) != canonical(parse(right))
        assert list(differences(parse(left), parse(right)))
        assert canonical(parse(left)) == canonical(parse(b" " + left))


def test_numbers_of_any_size_are_exact() -> None:
    big = 2**300 + 1
    assert parse(json.dumps({"n": big}).encode()) == {"n": big}
    assert canonical({"n": big}) == b'{"n":%d}' % big


places = st.recursive(
    st.tuples(st.just(()), st.integers()),
    lambda inner: inner.flatmap(
        lambda pair: st.one_of(
            st.integers(0, 3).map(lambda i: ((i, *pair[0]), [0] * i + [pair[1]])),
            texts.map(lambda k: ((k, *pair[0]), {"$first": 0, k: pair[1]})),
        )
    ),
    max_leaves=3,
)


@given(places, st.integers() | texts | st.none())
def test_one_changed_leaf_is_the_first_difference(place: tuple[tuple[Any, ...], Any], leaf: Any) -> None:
    way, recorded = place
    actual = copy.deepcopy(recorded)
    if way:
        holder = actual
        for step in way[:-1]:
            holder = holder[step]
        before, holder[way[-1]] = holder[way[-1]], leaf
    else:
        before, actual = recorded, leaf
    assume(not same(before, leaf))
    assert canonical(recorded) != canonical(actual)
    (path, was, now), *others = differences(recorded, actual)
    assert not others
    assert same(was, before) and same(now, leaf)
    assert path == "$" + "".join(f"[{s}]" if isinstance(s, int) else step_of(s) for s in way)


def step_of(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"


def test_a_missing_place_says_so_and_document_order_holds() -> None:
    recorded, actual = {"a": 1, "b": [1, 2], "d": 4}, {"b": [1, 3, 5], "c": 0, "d": 4}
    assert list(differences(recorded, actual)) == [
        ("$.a", 1, MISSING),
        ("$.b[1]", 2, 3),
        ("$.b[2]", MISSING, 5),
        ("$.c", MISSING, 0),
    ]


def test_any_depth_is_compared_and_too_deep_json_is_a_value_error() -> None:
    left: Any = 1
    right: Any = 2
    for _ in range(5000):
        left, right = [left], [right]
    assert [path for path, _, _ in differences(left, right)] == ["$" + "[0]" * 5000]
    with pytest.raises(ValueError, match="too deep"):
        parse(b"[" * 5000 + b"]" * 5000)
    with pytest.raises(ValueError, match="too deep"):
        canonical(left)


def test_a_repeated_key_counts_with_its_last_value() -> None:
    assert canonical(parse(b'{"a":1,"a":2}')) == canonical(parse(b'{"a":2}'))


@given(st.text(), st.text(), st.binary(), st.text(), st.text(), st.binary())
def test_a_key_tells_kind_name_and_inputs_apart(k: str, n: str, i: bytes, k2: str, n2: str, i2: bytes) -> None:
    assert (op_key(k, n, i) == op_key(k2, n2, i2)) == ((k, n, i) == (k2, n2, i2))
    assert len(op_key(k, n, i)) == 32
