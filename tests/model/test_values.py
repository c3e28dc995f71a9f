"""Values cross into JSON and back without a silent change, or are refused with the place of the offender."""

from __future__ import annotations

import enum
import json
import math
import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.model.odd_values import keys, same, texts, values
from worldline.engine.content import Content
from worldline.errors import ValueRefused
from worldline.model.values import MAX_DEPTH, TooDeep, flatten, plain, restore, unflatten

# The grammar of RFC 8259 by hand: a reader in any language accepts what this accepts, numbers within 2**53.
TOKEN = re.compile(
    r"[ \t\n\r]*(?:(?P<open>[\[{])|(?P<close>[\]}])|(?P<mark>[,:])|(?P<word>true|false|null)"
    r'|(?P<text>"(?:[^"\\\x00-\x1f\ud800-\udfff]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")'
    r"|(?P<number>-?(?:0|[1-9]\d*)(?P<real>(?:\.\d+)?(?:[eE][+-]?\d+)?)))"
)


def refuse_constant(word: str) -> Any:
    raise AssertionError(f"{word} is no JSON")


def assert_any_reader_takes(encoded: bytes) -> None:
    """Tokens only: the nesting is what two whole parsers check."""
    text, at = encoded.decode("utf-8"), 0
    while at < len(text):
        token = TOKEN.match(text, at)
        assert token is not None, text[at : at + 40]
        if token["number"] and not token["real"]:
            assert abs(int(token["number"])) <= 2**53 - 1, "a double would round it"
        if token["text"]:
            assert not re.search(r"(?<!\\)\\u[dD][89abAB]", token["text"]), "a lone surrogate escape"
        at = token.end()


def encoded_by_rules(value: Any) -> bytes:
    return msgspec.json.encode(plain(value))


@given(values)
@example({"$items": [["a", 1]], "$": {"$$": {"$int": "5"}}})
@example({"\ud800": 1, "$a": {"\ud800": (b"", "")}})
@example([2**53 - 1, 2**53, -(2**53), 2**63, 2**64, 2**80, -0.0, 1e16, 5e-324])
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    encoded = encoded_by_rules(value)
    assert same(restore(json.loads(encoded, parse_constant=refuse_constant)), value)
    assert same(restore(msgspec.json.decode(encoded)), value)
    assert_any_reader_takes(encoded)


@given(values)
def test_the_flat_form_says_the_same(value: Any) -> None:
    encoded = msgspec.json.encode(flatten(value))
    assert same(unflatten(json.loads(encoded, parse_constant=refuse_constant)), value)
    assert_any_reader_takes(encoded)


@given(st.dictionaries(keys, texts))
def test_escapes_of_different_values_never_meet(value: dict[str, str]) -> None:
    """A value that looks like the escape of another is told from it."""
    assert encoded_by_rules(value) != encoded_by_rules(plain(value)) or same(plain(value), value)


class Text(enum.StrEnum):
    A = "a"


class OldText(str, enum.Enum):  # noqa: UP042 - its str() is "OldText.A", and that is the point
    A = "a"


class Number(enum.IntEnum):
    A = 7


class Loud(str):
    def __str__(self) -> str:
        return "loud"


class Rounded(float):
    def __repr__(self) -> str:
        return "0"


@pytest.mark.parametrize(
    ("value", "carried"), [(Text.A, "a"), (OldText.A, "a"), (Number.A, 7), (Loud("x"), "x"), (Rounded(0.5), 0.5)]
)
def test_subclasses_are_carried_by_their_value(value: Any, carried: Any) -> None:
    assert same(restore(msgspec.json.decode(encoded_by_rules(value))), carried)
    if isinstance(value, str):
        assert same(restore(msgspec.json.decode(encoded_by_rules({value: 1}))), {carried: 1})


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({1, 2}, "$"),
        ({"a": [1, {2}]}, "$.a[1]"),
        ({"a": {"b c": object()}}, '$.a["b c"]'),
        ({"a": {1: 2}}, "$.a"),
        ([({"x": (1, frozenset())},)], "$[0][0].x[1]"),
        ({"\ud800": 1j}, '$["\\ud800"]'),
        ({None: 1}, "$"),
        ([10**5000], "$[0]"),
    ],
)
def test_what_no_record_can_carry_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(ValueRefused) as refused:
        plain(value)
    assert refused.value.facts["path"] == path
    assert path in str(refused.value)
    with pytest.raises(ValueRefused):
        flatten(value)


@given(values, st.sampled_from([{1}, object(), 3 + 4j, range(3), print]), st.lists(keys, max_size=6))
def test_the_path_leads_to_the_offender(around: Any, offender: Any, way: list[str]) -> None:
    value = offender
    for key in way:
        value = {"around": around, key: value} if key != "around" else [around, value]
    with pytest.raises(ValueRefused) as refused:
        plain(value)
    place, rest = value, refused.value.facts["path"][1:]
    for found in re.finditer(r'\.([^.\[]+)|\[(\d+)\]|(\["(?:[^"\\]|\\.)*"\])', rest):
        if found[2]:
            place = place[int(found[2])]
        else:
            named = [k for k in place if found[1] == k] if found[1] else [k for k in place if step_of(k) == found[3]]
            place = place[named[0]]
    assert place is offender


def step_of(key: str) -> str:
    return f"[{json.dumps(key)}]"


def deep(levels: int, kind: type[list[Any]] | type[tuple[Any, ...]] | type[dict[str, Any]]) -> Any:
    value: Any = math.inf
    for _ in range(levels):
        value = {"$k": value} if kind is dict else kind([1, value])
    return value


@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_depth_is_plain_to_100_and_flat_beyond(kind: Any) -> None:
    assert same(restore(plain(deep(MAX_DEPTH, kind))), deep(MAX_DEPTH, kind))
    with pytest.raises(TooDeep):
        plain(deep(MAX_DEPTH + 1, kind))
    content = Content.of(deep(5000, kind))
    assert same(content.value(), deep(5000, kind))


def test_a_value_inside_itself_is_refused_and_one_used_twice_is_not() -> None:
    ring: list[Any] = [1]
    ring.append({"again": ring})
    with pytest.raises(ValueRefused, match="contains itself"):
        Content.of(ring)
    shared = ["x"]
    assert same(Content.of([shared, shared]).value(), [["x"], ["x"]])
    assert same(unflatten(flatten([shared, shared])), [["x"], ["x"]])


def test_odd_keys_cost_each_level_once() -> None:
    value: Any = 0
    for _ in range(90):
        value = {"\ud800": value}
    assert same(restore(plain(value)), value)
