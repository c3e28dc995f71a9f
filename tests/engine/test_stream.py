"""A streamed body is recorded border for border, without a secret, whatever the split; and served as it came."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine.recorded import answer, decision, exchange_of, recorder_in, same_bodies, written
from worldline.engine.recorder import Recorder
from worldline.errors import SecretFound
from worldline.store.recording import Recording

SECRET = "sk-test-" + "0123456789abcdef"
SECRETS = {"KEY": SECRET, "OTHER": "pass/wörd\n" + "x" * 8}
MARK = b"[secret:KEY]"


@pytest.fixture
def place() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


def expected(pieces: list[bytes], secret: bytes, mark: bytes) -> tuple[bytes, list[bytes]]:
    """The redacted body and pieces by definition, byte by byte: a border inside a secret stands behind its marker."""
    body = b"".join(pieces)
    inside, at = [], 0  # (start, end) of each secret
    while (found := body.find(secret, at)) >= 0:
        inside.append((found, found + len(secret)))
        at = found + len(secret)
    borders, total = set(), 0
    for piece in pieces:
        total += len(piece)
        borders.add(next((end for start, end in inside if start < total < end), total))
    out, done = [], 0
    for border in sorted(borders - {0}):
        out.append(body[done:border].replace(secret, mark))
        done = border
    return body.replace(secret, mark), out


def check(
    recorder: Recorder, call: str, pieces: list[bytes], secret: bytes = SECRET.encode(), mark: bytes = MARK
) -> None:
    body, borders = expected(pieces, secret, mark)
    cassette, exchange = exchange_of(recorder, call)
    assert cassette.body(exchange) == body
    assert cassette.pieces(exchange) == [(piece, True) for piece in borders]
    data = exchange.data
    assert (data["body_size"], data["body_pieces"]) == (len(body), len(borders))
    assert data["body_sha256"] == hashlib.sha256(body).hexdigest()
    assert same_bodies(recorder)
    assert not any(secret in content for content in written(recorder.attempt).values())


PLANTED = [SECRET.encode(), SECRET.encode()[:-1], SECRET.encode()[1:], MARK]
SHAPES = [b'data: {"t":"', "é€😀".encode(), b'\\"\n\n', b"\0" * 9]
parts = (
    st.binary(max_size=40)
    | st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.sampled_from(PLANTED + SHAPES)
)


@settings(max_examples=150)
@given(st.lists(parts, max_size=12).map(b"".join), st.lists(st.integers(0, 400), max_size=15), st.booleans())
@example(SECRET.encode() * 3, list(range(75)), True)
@example(SECRET.encode()[:10] + SECRET.encode(), [10, 11, 12, 20], True)
@example(b"", [], True)
def test_any_split_of_any_body_reads_back(body: bytes, cuts: list[int], registered: bool) -> None:
    borders = sorted({min(cut, len(body)) for cut in cuts} | {0, len(body)})
    pieces = [body[a:b] for a, b in pairwise(borders)]
    with TemporaryDirectory() as name:
        recorder, boundary = recorder_in(Path(name), secrets=SECRETS if registered else {})
        call = answer(boundary, decision(), pieces)
        if registered:
            check(recorder, call, pieces)
        else:
            check(recorder, call, pieces, b"\xff\xfe no such bytes", b"")
        recorder.close()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_thousands_of_small_pieces(place: Path, size: int) -> None:
    body = (('data: {"t":"naïve – 日本"}\n\n' * 60).encode() + SECRET.encode() + b"\xff\xfe\x00" * 20) * 3
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    recorder, boundary = recorder_in(place, secrets=SECRETS)
    check(recorder, answer(boundary, decision(), pieces), pieces)
    assert len(pieces) > 5000 or size > 1
    recorder.close()


UNITS = [b'"', b"\\", b"\x01", b"\x00a", b"\xff", b"\n", b"\x7f", b"a\x02bcdefg", *(c.encode() for c in "é😀\u2028")]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("step", [40_000, 16])
def test_bytes_that_json_blows_up_come_back(place: Path, unit: bytes, step: int) -> None:
    body = unit * (100_001 // len(unit))
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    recorder, boundary = recorder_in(place)
    check(recorder, answer(boundary, decision(), pieces), pieces)
    recorder.close()


def test_a_body_of_many_megabytes_in_one_piece_and_a_secret_on_every_row_border(place: Path) -> None:
    block = b"x" * (16 * 1024 - 12) + SECRET.encode()
    pieces = [block * 640, b"end"]
    recorder, boundary = recorder_in(place, secrets=SECRETS)
    check(recorder, answer(boundary, decision(), pieces), pieces)
    recorder.close()


def test_a_piece_without_its_border_stays_open(place: Path) -> None:
    recorder, boundary = recorder_in(place)
    live = boundary.begin(decision())
    live.chunk(b"whole")
    live.chunk(b"half", False)
    live.chunk(b"+half", False)
    live.finish({"status": 200, "headers": []})
    cassette, exchange = exchange_of(recorder, live.call)
    assert cassette.pieces(exchange) == [(b"whole", True), (b"half+half", False)]
    recorder.close()


def test_what_had_come_before_a_crash_is_there(place: Path) -> None:
    recorder, boundary = recorder_in(place)
    live = boundary.begin(decision())
    for n in range(200):
        live.chunk(b"%03d" % n + b"x" * 997)
    recorder.close()
    cassette, exchange = exchange_of(recorder, live.call)
    body = cassette.body(exchange)
    assert exchange.finished is None and len(body) > 150_000
    assert body == b"".join(b"%03d" % n + b"x" * 997 for n in range(200))[: len(body)]


COMPRESS = {
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:]),
    "deflate": zlib.compress,
}


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("encoding", [*COMPRESS, "raw"])
def test_a_compressed_body_without_a_secret_stays_byte_for_byte(place: Path, encoding: str) -> None:
    packed = COMPRESS.get(encoding, raw_deflate)(b'{"said":"nothing"}' * 500)
    pieces = [packed[at : at + 10] for at in range(0, len(packed), 10)]
    recorder, boundary = recorder_in(place, secrets=SECRETS)
    call = answer(boundary, decision(), pieces, "deflate" if encoding == "raw" else encoding)
    check(recorder, call, pieces)
    assert "decoded" not in exchange_of(recorder, call)[1].data and recorder.vault.unscanned == 0
    recorder.close()


@pytest.mark.parametrize("encoding", [*COMPRESS, "raw"])
def test_a_compressed_body_with_a_secret_is_recorded_decoded_and_without_it(place: Path, encoding: str) -> None:
    plain = b"{" + b"x" * 3000 + SECRET.encode() + b"}"
    packed = COMPRESS.get(encoding, raw_deflate)(plain)
    recorder, boundary = recorder_in(place, secrets=SECRETS)
    call = answer(boundary, decision(), [packed[:9], packed[9:]], "deflate" if encoding == "raw" else encoding)
    cassette, exchange = exchange_of(recorder, call)
    assert cassette.body(exchange) == plain.replace(SECRET.encode(), MARK)
    assert exchange.data["decoded"] == ("deflate" if encoding == "raw" else encoding)
    assert recorder.vault.redactions == 1
    recorder.close()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_what_cannot_be_looked_into_is_kept_and_counted(place: Path, encoding: str) -> None:
    recorder, boundary = recorder_in(place, secrets=SECRETS)
    call = answer(boundary, decision(), [b"\x99 not packed at all", b" \xff"], encoding)
    cassette, exchange = exchange_of(recorder, call)
    assert cassette.body(exchange) == b"\x99 not packed at all \xff"
    assert recorder.vault.unscanned == 1
    recorder.close()


def test_under_stop_nothing_of_a_stream_with_a_secret_is_served_as_complete(place: Path) -> None:
    recorder, boundary = recorder_in(place, secrets=SECRETS, policy="stop")
    live = boundary.begin(decision())
    live.chunk(b"before " + SECRET.encode()[:9])
    with pytest.raises(SecretFound):
        live.chunk(SECRET.encode()[9:] + b" after" * 30)
    for step in (lambda: live.finish({"status": 200, "headers": []}), lambda: boundary.begin(decision())):
        with pytest.raises(SecretFound):
            step()
    path = recorder.seal()
    recording = Recording(path)
    assert recording.disposition == "sanitized-partial" and recording.published is None
    assert not any(SECRET.encode() in content for content in written(place).values())


def test_under_stop_a_body_that_cannot_be_looked_into_is_refused_before_its_first_byte(place: Path) -> None:
    recorder, boundary = recorder_in(place, secrets={"KEY": "a-registered-secret"}, policy="stop")
    live = boundary.begin(decision())
    with pytest.raises(SecretFound, match="a br body cannot be searched"):
        live.encoded("br")
    recorder.seal()
    assert Recording(recorder.attempt).disposition == "sanitized-partial"
