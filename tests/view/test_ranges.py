"""Any range that is asked for is that slice of the body, to the byte, with the headers that say so."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.view.conftest import log_of
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import open_recording
from worldline.store.recording import Recording
from worldline.view.ranges import Unsatisfiable, wanted

NUMBER = st.one_of(st.none(), st.integers(0, 60))


@given(NUMBER, NUMBER, st.integers(0, 50))
def test_a_range_is_the_slice_that_its_words_mean(first: int | None, last: int | None, size: int) -> None:
    body = bytes(range(size))
    header = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    if (first is None and last is None) or (first is not None and last is not None and first > last):
        assert wanted(header, size) is None  # no range: the whole body
        return
    expected = (
        body[first : last + 1 if last is not None else None] if first is not None else body[-last:] if last else b""
    )
    if not expected:
        with pytest.raises(Unsatisfiable):
            wanted(header, size)
        return
    found = wanted(header, size)
    assert found is not None and body[found.start : found.stop] == expected and len(found) == len(expected)


@given(st.text(max_size=30))
def test_what_is_no_range_of_bytes_gets_the_whole_body(header: str) -> None:
    if not header.strip().lower().startswith("bytes="):
        assert wanted(header, 10) is None


@pytest.mark.parametrize(
    "header",
    [
        "bytes=0-1,4-5",
        "bytes=a-b",
        "bytes=1",
        "lines=0-1",
        "bytes=0x1-2",
        "bytes=-",
        "bytes=5-4",
        "bytes=\u0661-\u0662",
    ],
)
def test_a_range_that_cannot_be_understood_is_ignored(header: str) -> None:
    assert wanted(header, 10) is None


def packed(run: Path, tmp_path: Path) -> Path:
    target = tmp_path / "run.skn"
    pack(Recording(run), target)
    return target


def test_every_range_of_a_bundle_and_of_a_log_is_its_slice(panel: Any, sealed: Path, tmp_path: Path) -> None:
    bundle = packed(sealed, tmp_path)
    attempt = Recording(sealed).attempt
    for serve, path, body in (
        (panel(open_recording(bundle)), "bundle.skn", bundle.read_bytes()),
        (panel(sealed), "events.jsonl", log_of(attempt)),
    ):
        size = len(body)
        whole = serve.run(path)
        assert (whole.status, whole.body) == (200, body) and whole.headers["content-length"] == str(size)
        assert whole.headers["accept-ranges"] == "bytes"
        tag = whole.headers["etag"]
        marks = sorted({0, 1, 2, size // 3, size // 2, size - 2, size - 1})
        for first in marks:
            for last in (*[m for m in marks if m >= first], size, size + 7):
                got = serve.run(path, Range=f"bytes={first}-{last}")
                assert got.status == 206 and got.body == body[first : last + 1]
                assert got.headers["content-range"] == f"bytes {first}-{min(last, size - 1)}/{size}"
                assert got.headers["content-length"] == str(len(got.body)) and got.headers["etag"] == tag
        assert serve.run(path, Range="bytes=-7").body == body[-7:]
        assert serve.run(path, Range=f"bytes=-{size + 9}").body == body
        for beyond in (f"bytes={size}-", "bytes=-0"):
            got = serve.run(path, Range=beyond)
            assert (got.status, got.headers["content-range"]) == (416, f"bytes */{size}")
        assert serve.run(path, Range="bytes=0-0,2-2").body == body


def test_a_condition_takes_a_range_back_where_the_body_is_another(panel: Any, sealed: Path, tmp_path: Path) -> None:
    bundle = packed(sealed, tmp_path)
    serve = panel(open_recording(bundle))
    body = bundle.read_bytes()
    tag = serve.run("bundle.skn").headers["etag"]
    assert serve.run("bundle.skn", Range="bytes=0-3", If_Range=tag).body == body[:4]
    for other in ('"another"', f"W/{tag}", "Mon, 30 Nov 2026 08:00:00 GMT"):
        got = serve.run("bundle.skn", Range="bytes=0-3", If_Range=other)
        assert (got.status, got.body) == (200, body)
    assert serve.run("bundle.skn", If_None_Match=tag).status == 304
    replaced = tmp_path / "new.skn"
    pack(Recording(sealed), replaced, thumbnail=lambda picture: picture, exports={"decisions.jsonl": lambda _: [b"{}"]})
    replaced.rename(bundle)
    assert serve.run("bundle.skn").headers["etag"] != tag, "another file under the same name is another body"


def test_a_note_does_not_take_the_bundle_away_from_a_page_that_reads_it(
    panel: Any, sealed: Path, tmp_path: Path
) -> None:
    bundle = packed(sealed, tmp_path)
    serve = panel(open_recording(bundle))
    body = bundle.read_bytes()
    tag = serve.run("bundle.skn").headers["etag"]
    where = f"r/{serve.ids[0]}/"
    assert serve.post(where + "annotations", {"seq": 3, "at": "step:0", "text": "look here"}).status == 200
    assert serve.post(where + "audit", {"what": "reveal", "scope": "step", "seq": 3, "reason": "to see"}).status == 200
    assert bundle.read_bytes() != body
    container = open_recording(bundle).container
    sealed_bytes = max(container.offsets()[e.name] + e.stored for e in container.entries if e.name == "manifest.json")
    got = serve.run("bundle.skn", Range=f"bytes=0-{sealed_bytes - 1}", If_Range=tag)
    assert (got.status, got.headers["etag"], got.body) == (206, tag, body[:sealed_bytes])


def test_a_log_that_grows_has_no_name_and_its_bytes_stay(panel: Any, writer: Any) -> None:
    writer.do("rows", rows=20)
    serve = panel(writer.path)
    first = serve.run("events.jsonl")
    assert "etag" not in first.headers and first.body == log_of(Recording(writer.path).attempt)
    writer.do("rows", rows=50)
    size = len(first.body)
    assert serve.run("events.jsonl", Range=f"bytes=0-{size - 1}").body == first.body
    again = serve.run("events.jsonl", Range="bytes=0-9", If_Range='"x"')
    assert again.status == 200 and len(again.body) > size


def test_head_says_the_same_and_sends_no_body(panel: Any, sealed: Path, tmp_path: Path) -> None:
    serve = panel(open_recording(packed(sealed, tmp_path)))
    target = f"{serve.base}r/{serve.ids[0]}/bundle.skn"
    asked, headed = serve.ask("GET", target), serve.ask("HEAD", target, Range="bytes=0-3")
    assert (headed.status, headed.body) == (200, b"")
    for headers in (asked.headers, headed.headers):
        headers.pop("date")
    assert asked.headers == headed.headers


def test_a_large_body_goes_out_whole_and_its_server_holds_little_of_it(panel: Any, tmp_path: Path) -> None:
    """What is held of a body is one part of it (`answers.STEP`), whatever its size."""
    import tracemalloc

    import worldline as wl

    with wl.record(tmp_path / "runs") as run:
        picture = b"\x89PNG" + bytes(24 << 20)
        run.observe(picture, src="screenshot", media_type="image/png")
    serve = panel(run.path)
    name, digest, size = hashlib.sha256(picture).hexdigest(), hashlib.sha256(), 0
    del picture
    serve.run(f"contents/{name}", Range="bytes=0-0")
    tracemalloc.start()
    try:
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", serve.server.port, timeout=30)
        connection.request("GET", f"{serve.base}r/{serve.ids[0]}/contents/{name}")
        answer = connection.getresponse()
        while part := answer.read(1 << 16):
            digest.update(part)
            size += len(part)
        connection.close()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (size, digest.hexdigest()) == (4 + (24 << 20), name)
    assert peak < 4 << 20
