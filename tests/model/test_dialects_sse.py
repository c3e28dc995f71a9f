"""Server-sent events are read by the WHATWG rules, wherever the network cuts the bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from worldline.model.dialects import SseEvent, SseParser
from worldline.model.dialects.sse import all_events


def events_of(body: bytes, *, limit: int = 1 << 20) -> list[SseEvent]:
    return SseParser(limit).feed(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            b"data: a\n\ndata: b\r\n\r\ndata: c\r\r", [("message", "a"), ("message", "b"), ("message", "c")], id="ends"
        ),
        pytest.param(b"data: a\rdata: b\n\r\n", [("message", "a\nb")], id="mixed ends, several data lines"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [("message", "a")], id="byte order mark"),
        pytest.param(b"\n\xef\xbb\xbfdata: a\n\n", [], id="a byte order mark later is part of a name"),
        pytest.param(b": keep-alive\n\n:\ndata: a\n\n", [("message", "a")], id="comments"),
        pytest.param(
            b"event: ping\ndata: a\n\ndata: b\n\n", [("ping", "a"), ("message", "b")], id="type is for one event"
        ),
        pytest.param(b"event: lost\n\ndata: b\n\n", [("message", "b")], id="a type without data is nothing"),
        pytest.param(b"data\n\n", [("message", "")], id="a field without a colon is empty"),
        pytest.param(b"data:  a:b\n\n", [("message", " a:b")], id="one space goes, colons stay"),
        pytest.param(b"id: 7\nretry: 5\nother: x\ndata: a\n\n", [("message", "a")], id="ignored fields"),
        pytest.param(
            "data: a\u2028b\u2029c\x85d\x0be\n\n".encode(),
            [("message", "a\u2028b\u2029c\x85d\x0be")],
            id="no other ends",
        ),
        pytest.param(b"data: a\n\ndata: b\n", [("message", "a")], id="an unfinished event is dropped"),
        pytest.param(b"data: a\xffb\x00\n\n", [("message", "a\ufffdb\x00")], id="invalid bytes and NUL"),
    ],
)
def test_follows_the_standard(body: bytes, expected: list[tuple[str, str]]) -> None:
    assert [(event.event, event.data) for event in events_of(body)] == expected


WIRE = st.lists(
    st.sampled_from(
        [
            *(b"data: ", b"data", b"event: x", b":", b" ", b'{"a":1}'),
            *(b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\xef\xbb\xbf"),
            *("é".encode(), "\U0001f600".encode(), "\u2028".encode(), b"\xff", b"\x00"),
        ]
    ),
    max_size=40,
).map(b"".join)


@given(body=WIRE, cuts=st.lists(st.integers(0, 200), max_size=12), limit=st.sampled_from([3, 9, 1 << 20]))
def test_chunk_borders_change_nothing(body: bytes, cuts: list[int], limit: int) -> None:
    borders = sorted({0, len(body), *(cut for cut in cuts if cut <= len(body))})
    # A border met twice is an empty chunk.
    borders = [border for border in borders for _ in range(1 + border % 2)]
    parser = SseParser(limit)
    pieces = [event for start, end in pairwise(borders) for event in parser.feed(body[start:end])]
    whole = SseParser(limit)
    assert pieces == whole.feed(body)
    assert parser.dropped == whole.dropped


def test_byte_by_byte_is_the_same() -> None:
    body = "\ufeffevent: a\r\ndata: \U0001f600é\r\ndata:\r\n\r\n: c\rdata: z\r\r".encode()
    parser = SseParser()
    found = [event for byte in body for event in parser.feed(bytes([byte]))]
    assert found == [SseEvent("a", "\U0001f600é\n"), SseEvent("message", "z")] == events_of(body)


def test_an_event_over_the_bound_is_dropped_whole_and_counted() -> None:
    parser = SseParser(100)
    many_lines = b"data: 0123456789\n" * 50
    body = (
        b"data: before\n\n"
        + b"data: "
        + b"x" * 1000
        + b"\n\n"
        + many_lines
        + b"\n:"
        + b"c" * 1000
        + b"\ndata: after\n\n"
    )
    assert [event.data for event in parser.feed(body)] == ["before", "after"]
    assert parser.dropped == 2


@given(body=WIRE)
@example(body=b"data: a\n\n\ndata: b\n\n\n\n")
@example(body=b"data: \n\ndata:a\n\ndata: a\ndata: b\n\nevent: x\ndata: c\n\n: d\n\n")
def test_a_body_that_is_all_there_has_the_same_events(body: bytes) -> None:
    assert list(all_events(body)) == events_of(body)
