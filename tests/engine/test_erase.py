"""Edits in JSON and other texts: the named value goes, every other byte stays, cut off or not, and nothing raises."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.engine.redact.erase import Eraser
from worldline.engine.redact.jsontext import Edit, Text, applied, merged, moved
from worldline.engine.redact.rules import Rules, marker

VALUE = 'swordfish\n"\\é-' + "0001"
ALL = ["field:password", "secret-env:HELD", "shapes", "text:needle", "tool:login"]
MARK = marker("field:password")

words = st.sampled_from(["", "a", "é\n", 'quo"te', "back\\slash", "{", "[1", "needle's", "\u2028", "😀"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.just("password"), inner, max_size=4),
    max_leaves=20,
)


def erased(data: bytes, *rules: str) -> bytes:
    eraser = Eraser(Rules(rules, {"HELD": VALUE}))
    return applied(data, eraser.counted(eraser.body(data)))


def without(value: Any) -> Any:
    """What is due: the members of that name marked, nothing else."""
    if isinstance(value, dict):
        return {key: MARK if key == "password" else without(item) for key, item in value.items()}
    return [without(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(words | st.just("password"), values, max_size=4), st.booleans(), st.none() | st.integers(0, 3))
def test_a_member_goes_and_everything_else_is_as_it_was(value: Any, ascii_only: bool, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    out = erased(data, "field:password")
    assert json.loads(out) == without(value)
    eraser = Eraser(Rules(["field:password"], {}))
    edits = eraser.body(data)
    assert edits == merged(edits)
    if not edits:
        assert out == data
    nested = json.dumps({"said": data.decode()}).encode()
    assert json.loads(json.loads(erased(nested, "field:password"))["said"]) == without(value)


@given(st.lists(words, max_size=3), st.integers(0, 320))
def test_what_is_cut_off_hides_nothing(before: list[str], size: int) -> None:
    held = {"password": ["rosebud" * 20], "y": {"password": "rosebud" * 20}}
    data = json.dumps({"x": before, **held}).encode()
    begin = data.index(b'["rosebud')
    out = erased(data[: begin + 2 + size], "field:password")
    assert b"rose" not in out and out.startswith(data[:begin]) and out[begin:].startswith(json.dumps(MARK).encode())


@given(st.binary(max_size=60) | st.text('{}[]",:\\ eE+-.0a\n', max_size=30).map(str.encode))
def test_nothing_raises_and_nothing_changes_where_nothing_is_found(data: bytes) -> None:
    for text in (
        data,
        b"data: " + data + b"\n\n",
        b'{"a":' + data,
        b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n' + data,
    ):
        assert erased(text, *ALL) == text


@pytest.mark.parametrize("depth", [10, 3000])
def test_any_depth(depth: int) -> None:
    data = b'{"a":[' * depth + b'{"password":"x"}' + b"]}" * depth
    assert erased(data, "field:password") == data.replace(b'"x"', json.dumps(MARK).encode())


def test_a_value_that_is_no_text_is_still_json() -> None:
    rules = ["secret-env:N"]
    eraser = Eraser(Rules(rules, {"N": "4000123412341234"}))
    data = b'{"card": 4000123412341234, "in": [1, -4000123412341234.5], "text": "no 4000123412341234!"}'
    said = json.loads(applied(data, eraser.body(data)))
    mark = marker(rules[0])
    assert said == {"card": mark, "in": [1, mark], "text": f"no {mark}!"}
    across = Eraser(Rules(["secret-env:N"], {"N": '1234","x":"567'}))
    data = b'{"k": [{"a":"1234","x":"567"}, "kept"], "l": 1}'  # a stretch of JSON: the value that holds it goes
    assert json.loads(applied(data, across.body(data))) == {"k": [mark, "kept"], "l": 1}


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1,", b'{"a', b'{"a":"\\', b'{"a":"\\u00', b"\xef\xbb\xbf{}", b'{"a":tru']
)
def test_what_begins_as_json_is_read_as_far_as_it_goes(data: bytes) -> None:
    if data:
        assert Text(data).root.kind in "oas"
    for other in (b"{]", b"{1:2}", b"[1 2]", b"[nul, 1]", b'{"a" 1}', b"word", b"1 2", b"[1]]", b"[\x00]"):
        with pytest.raises(ValueError, match=r"JSON|bracket"):
            Text(other)


@given(
    st.binary(min_size=1, max_size=60),
    st.lists(st.integers(0, 60), max_size=8),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_places_move_with_the_text_around_them(data: bytes, places: list[int], ends: list[int]) -> None:
    at = sorted({min(end, len(data)) for end in ends})
    edits = [Edit(a, b, b"<>" * (a % 3), "") for a, b in list(pairwise(at))[::2] if a < b]
    here = sorted(min(place, len(data)) for place in places)
    out, there = applied(data, edits), moved(edits, here)
    assert there == sorted(there) and moved(edits, [0, len(data)]) == [0, len(out)]
    for old, new in zip(here, there, strict=True):
        whole = next((edit.end for edit in edits if edit.start < old < edit.end), old)
        assert out[:new] == applied(data[:whole], [edit for edit in edits if edit.end <= whole])


def test_arguments_go_where_only_an_earlier_event_says_whose_they_are() -> None:
    def event(**said: Any) -> bytes:
        return b"data: " + json.dumps(said).encode() + b"\n\n"

    kind = "response.function_call_arguments"

    def stream(first: str, second: str, whole: str) -> bytes:
        return (
            event(type="response.output_item.added", output_index=0, item={"type": "function_call", "name": "login"})
            + event(type="response.output_item.added", output_index=1, item={"type": "function_call", "name": "look"})
            + event(type=f"{kind}.delta", output_index=1, delta='{"a":1')
            + event(type=f"{kind}.delta", output_index=0, delta=first)
            + event(type=f"{kind}.delta", output_index=0, delta=second)
            + event(type=f"{kind}.done", output_index=0, arguments=whole)
            + event(type=f"{kind}.done", output_index=1, arguments='{"a":1}')
        )

    mark = marker("tool:login")
    assert erased(stream('{"pin":', "4711}", '{"pin":4711}'), "tool:login") == stream(mark, "", mark)
