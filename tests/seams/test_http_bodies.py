"""The reader of transfer chunks agrees with h11 on what is a chunk, where it ends and what is no HTTP, cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from worldline.seams.wire import bodies
from worldline.seams.wire.bodies import Chunked, Plain
from worldline.seams.wire.http import Piece

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def by_h11(data: bytes, ended: bool) -> tuple[list[Piece], str, bytes]:
    """The pieces of a chunked body, how it stands (`whole`, `open` or `fault`), and what came behind it."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(HEAD + data)
    assert isinstance(parser.next_event(), h11.Response)
    if ended:
        parser.receive_data(b"")
    pieces, held = [], b""
    try:
        while isinstance(event := parser.next_event(), h11.Data):
            held += bytes(event.data)
            if event.chunk_end:
                pieces.append(Piece(held, True))
                held = b""
        if isinstance(event, h11.EndOfMessage):
            return pieces, "whole", parser.trailing_data[0]
        state = "open"
    except h11.RemoteProtocolError:
        state = "open" if ended and not_only_cut(data) else "fault"
    return [*pieces, *([Piece(held, False)] if held else [])], state, b""


def not_only_cut(data: bytes) -> bool:
    """Whether the connection's end is all that h11 has against it."""
    return by_h11(data, False)[1] == "open"


def by_us(data: bytes, cuts: list[int]) -> tuple[list[Piece], str, bytes]:
    body, pieces = Chunked(), []
    for begin, end in pairwise(sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})):
        if not (body.ended or body.fault):
            pieces += body.feed(data[begin:end])
        elif body.ended:
            body.feed(data[begin:end])
    pieces += body.close()
    return pieces, "whole" if body.ended else "fault" if body.fault else "open", body.rest()


sizes = st.sampled_from([b"5", b"05", b"A", b"a", b"10", b"0", b"00000", b"g", b"-1", b"", b"0x5", b"1" * 21, b" 5"])
extensions = st.sampled_from([b"", b";a=b", b'; x="y"', b" ", b"\t", b";", b" ;a", b"\r"])
chunks = st.binary(max_size=40).map(lambda data: b"%x\r\n%b\r\n" % (len(data), data) if data else b"")
odd = st.tuples(sizes, extensions, st.sampled_from([b"\r\n", b"\n", b""]), st.binary(max_size=20)).map(b"".join)
ends = st.sampled_from(
    [
        b"0\r\n\r\n",
        b"0\r\nA: b\r\nC:d\r\n\r\n",
        b"0\r\nA: b\n\n",
        b"0\r\n\n",
        b"0\r\n no: token\r\n\r\n",
        b"0\r\nnone\r\n\r\n",
        b"",
        b"0\r\n",
        b"0\r\nA: b\r\n",
        b"0\r\nA b: c\r\n\r\n",
        b"0;x\r\n\r\nHTTP/1.1 200 OK\r\n",
        b"0\r\n\r\n0\r\n\r\n",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(chunks | chunks | odd, max_size=5).map(b"".join), ends, st.lists(st.integers(0, 200), max_size=8))
@example(b"5\r\nfirstX\r\n", b"0\r\n\r\n", [])
@example(b"5\r\nfirst\rX", b"", [10, 11])
@example(b"5\r\nfir", b"", [])
def test_any_body_cut_anywhere_is_read_as_h11_reads_it(body: bytes, end: bytes, cuts: list[int]) -> None:
    expected = by_h11(body + end, True)
    assert by_us(body + end, cuts) == expected == by_us(body + end, list(range(len(body + end))))


def test_a_chunk_is_given_out_with_its_last_byte_and_a_long_one_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "HELD_MAX", 4)
    body = Chunked()
    assert body.feed(b"5\r\nfirs") == [] and body.feed(b"t") == [Piece(b"first", True)]
    assert body.feed(b"\r\nc\r\nlong") == [] and body.feed(b"er th") == [Piece(b"longer th", False)]
    assert body.feed(b"an\n\r\n2\r\n") == [Piece(b"an\n", True)]
    assert body.feed(b"x") == [] and body.close() == [Piece(b"x", False)] and not body.ended


def test_lines_without_an_end_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LINE_MAX", 100)
    for start in (b"", b"0\r\nA: "):
        body, fed = Chunked(), 0
        body.feed(start)
        while body.fault is None:
            body.feed(b"5" * 10)
            fed += 10
        assert fed <= 110 + len(start)


@given(st.lists(st.binary(max_size=9), max_size=6), st.integers(0, 30) | st.none())
def test_a_body_with_a_length_ends_there_and_one_without_with_the_connection(
    reads: list[bytes], length: int | None
) -> None:
    body, pieces, whole = Plain(length), [], b"".join(reads)
    for data in reads:
        pieces += body.feed(data)
    assert b"".join(piece.data for piece in pieces) == whole[:length] and all(piece.data for piece in pieces)
    assert body.ended == (length is not None and len(whole) >= length)
    assert body.rest() == (b"" if length is None else whole[length:]) and body.fault is None
    assert body.close() == [] and body.ended == (length is None or len(whole) >= length)
