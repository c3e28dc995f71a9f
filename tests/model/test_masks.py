"""What a mask leaves out, and nothing beside it: two documents are equal under masks if they are equal without that."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from worldline.model import canon
from worldline.model.masks import ELEMENTS, MEMBERS, REQUEST, TOOL, Mask, Masks, parse, place

NAMES = st.sampled_from(["a", "b", "a b"])
DOCUMENTS = st.recursive(
    st.none() | st.integers(0, 2) | st.text("x0-", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
STEPS = st.sampled_from(["a", "b", "a b", 0, 1, MEMBERS, ELEMENTS])
PATHS = st.lists(STEPS, min_size=1, max_size=3)
PATTERNS = st.sampled_from(["", r"=~\d+", "=~0", "=~x(?=0)", "=~-|00"])
TEXTS = st.builds(lambda path, pattern: place(path) + pattern, PATHS, PATTERNS)


class Gap:
    """Where a mask of this number left something out."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gap) and other.number == self.number


def without(value: Any, masks: list[Mask], path: tuple[Any, ...] = ()) -> Any:
    """The plain definition: a value of which nothing is compared is a gap, a text is the pieces around its gaps."""
    here = [n for n, mask in enumerate(masks) if fits(mask, path)]
    whole = [n for n in here if masks[n].pattern is None and len(masks[n].path) == len(path)]
    if whole:
        return Gap(whole[0])
    if isinstance(value, dict):
        return {name: without(inner, masks, (*path, name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [without(inner, masks, (*path, n)) for n, inner in enumerate(value)]
    pieces: list[Any] = [value]
    for number in here:
        pattern = masks[number].pattern
        if pattern is not None and isinstance(value, str):
            pieces = [each for piece in pieces for each in cut(piece, pattern, number)]
    return pieces


def fits(mask: Mask, path: tuple[Any, ...]) -> bool:
    """Whether a place is that of a mask, or inside it."""
    steps = list(zip(mask.path, path, strict=False))
    if len(steps) < len(mask.path):
        return False
    return all(
        isinstance(at, str) if step is MEMBERS else isinstance(at, int) if step is ELEMENTS else step == at
        for step, at in steps
    )


def cut(piece: Any, pattern: re.Pattern[str], number: int) -> list[Any]:
    if not isinstance(piece, str):
        return [piece]
    found: list[Any] = []
    at = 0
    for match in pattern.finditer(piece):
        found += [piece[at : match.start()], Gap(number)]
        at = match.end()
    return [*found, piece[at:]]


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: reversed_keys(value[name]) for name in reversed(value)}
    return [reversed_keys(inner) for inner in value] if isinstance(value, list) else value


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """A document, and the same with some of its values drawn anew: alike in most of their places."""
    one = draw(DOCUMENTS)
    chance = draw(st.randoms(use_true_random=False))

    def changed(value: Any) -> Any:
        if chance.random() < 0.2:
            return draw(DOCUMENTS)
        if isinstance(value, dict):
            return {name: changed(inner) for name, inner in value.items()}
        if isinstance(value, str) and value and chance.random() < 0.5:
            at = chance.randrange(len(value))
            return value[:at] + chance.choice("x0-") + value[at + 1 :]
        return [changed(inner) for inner in value] if isinstance(value, list) else value

    return one, changed(one)


@settings(max_examples=400, deadline=None)
@given(pairs(), st.lists(TEXTS, min_size=1, max_size=3, unique=True))
@example(({"a": "x", "b": "0"}, {"a": "x", "b": "1"}), ["$.a"])
@example(({"a": "x0"}, {"a": "x1"}), [r"$.a=~\d+"])
@example(({"a": "x0"}, {"a": "-0"}), [r"$.a=~\d+"])
@example(({"a": None}, {"a": "0"}), [r"$.a=~\d+"])
@example(({"a": {"b": "0"}}, {"a": {"b": "x"}}), [r"$.a.b=~\d+", "$.a"])
def test_two_documents_are_equal_under_masks_exactly_where_they_differ_in_nothing_else(
    pair: tuple[Any, Any], texts: list[str]
) -> None:
    masks = [parse(text) for text in texts]
    under = Masks(masks)
    one, other = (under.applied(REQUEST, "", copied(each)).canonical() for each in pair)
    assert (one == other) == (without(pair[0], masks) == without(pair[1], masks))
    assert one == under.applied(REQUEST, "", copied(reversed_keys(pair[0]))).canonical()
    # A divergence is looked for in the same documents: it finds something exactly where the keys differ.
    seen = [under.applied(REQUEST, "", copied(each)).document for each in pair]
    assert (one == other) == (not list(canon.differences(*seen)))


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_a_mask_says_its_place_as_it_was_read(text: str) -> None:
    mask = parse(text)
    pattern = "" if mask.pattern is None else f"=~{mask.pattern.pattern}"
    assert place(mask.path) + pattern == text
    assert parse(f"tool:x {text}").path == mask.path


def test_what_is_left_out_is_the_value_and_never_that_it_is_there() -> None:
    under = Masks([parse("$.a"), parse("$.items[*]")])

    def key(document: Any) -> bytes:
        return under.applied(REQUEST, "", document).canonical()

    assert key({"a": 1, "items": [1]}) == key({"a": {"b": []}, "items": ["x"]})
    assert key({"a": 1}) != key({})
    assert key({"items": [1, 2]}) != key({"items": [1]})
    assert key({"a": None}) == key({"a": 1}) != Masks().applied(REQUEST, "", {"a": None}).canonical()


def test_a_mask_speaks_of_requests_or_of_the_tools_that_it_names() -> None:
    under = Masks([parse("$.now"), parse("tool:look_* $.then")])
    met = [
        under.applied(*about, {"now": 1, "then": 2}).met for about in ((REQUEST, "x"), (TOOL, "look_up"), (TOOL, "x"))
    ]
    assert [dict(each) for each in met] == [{0: 1}, {1: 1}, {}]
