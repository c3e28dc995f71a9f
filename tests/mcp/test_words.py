"""The small parts: what a hint counts, how frames and events are cut from bytes, and how a run is found by descent."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.errors import UsageError
from worldline.seams.mcp.effects import Effects
from worldline.seams.mcp.frames import Lines, NoMessage, encode, parse
from worldline.seams.mcp.sse import Event, Events, TooLong

READ, IDEMPOTENT = {"readOnlyHint": True}, {"idempotentHint": True}
DESTROYS, CLOSED = {"destructiveHint": True}, {"destructiveHint": False, "openWorldHint": False}


@pytest.mark.parametrize(
    ("hints", "untrusted", "trusted"),
    [
        ({}, ("side_effecting", None), ("side_effecting", None)),
        (READ, ("side_effecting", None), ("pure", "read_only")),
        (IDEMPOTENT, ("side_effecting", None), ("idempotent", None)),
        (DESTROYS, ("side_effecting", "irreversible_external"), ("side_effecting", "irreversible_external")),
        (CLOSED, ("side_effecting", None), ("side_effecting", "reversible_local")),
        ({**READ, **DESTROYS}, ("side_effecting", None), ("pure", "read_only")),
        ({"readOnlyHint": "yes"}, ("side_effecting", None), ("side_effecting", None)),
    ],
)
def test_a_hint_tightens_always_and_loosens_where_it_is_trusted(hints: dict, untrusted: tuple, trusted: tuple) -> None:
    for trusts, expected in ((False, untrusted), (True, trusted)):
        effects = Effects(trusts_hints=trusts)
        effects.learn({"tools": [{"name": "t", "annotations": hints}, {"name": 7}, None]})
        judged = effects.of("t", {})
        assert (judged.effect, judged.capability) == expected
        assert judged.facts["effect_by"] == ("hints" if expected[0] != "side_effecting" else "default")


def test_the_user_s_word_comes_before_any_hint_and_the_first_that_fits_counts() -> None:
    effects = Effects(["get_*=pure", "*=idempotent"], ["wipe=trust_mutating"], ["mail=mail:{to}/{more.at}"], True)
    effects.learn({"tools": [{"name": "wipe", "annotations": DESTROYS}, {"name": "get_it", "annotations": DESTROYS}]})
    assert effects.of("get_it", {}).effect == "pure"
    assert effects.of("get_it", {}).capability is None
    assert effects.of("wipe", {}).capability == "trust_mutating"
    assert effects.of("wipe", {}).facts["effect_by"] == "flag"
    assert effects.of("mail", {"to": "bob", "more": {"at": [1]}}).idempotency_key == "mail:bob/[1]"
    assert effects.of("mail", {}).idempotency_key == "mail:/"
    for wrong in (["pure"], ["get=harmless"]):
        with pytest.raises(UsageError):
            Effects(wrong)


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"").strip()), max_size=8), st.data())
def test_lines_come_whole_however_their_bytes_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream, most = b"".join(line + b"\n" for line in lines), 20
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader, got = Lines(most), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += reader.feed(stream[start:end])
    assert got == [None if len(line) > most else line for line in lines if line]


EVENTS = st.builds(
    Event,
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=30).map(str.encode),
    st.none() | st.text("abc-1", min_size=1, max_size=5),
    st.none() | st.integers(0, 9999),
)


@given(st.lists(EVENTS, max_size=5), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.data())
def test_events_come_whole_however_their_bytes_and_lines_end(
    events: list[Event], end: bytes, data: st.DataObject
) -> None:
    told = [event for event in events if event != Event()]
    stream = b"".join(b": a comment\n\n" + event.encode() for event in told).replace(b"\n", end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader, got = Events(1000), []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += reader.feed(stream[start:stop])
    got += reader.feed(b"\n") if end == b"\r" else []  # what a lone \r ends is known with the next byte
    assert got == told
    with pytest.raises(TooLong):
        Events(10).feed(b"data: " + b"x" * 20)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x), max_leaves=5
    )
)
def test_a_frame_that_is_made_is_read_as_it_was(value: object) -> None:
    whole = {"jsonrpc": "2.0", "id": 1, "result": value}
    assert encode(parse(encode(whole)).value) == encode(whole)
    assert b"\n" not in encode(whole)


@pytest.mark.parametrize(
    "bad",
    [
        b"", b"{", b"null", b"[]", b"{}", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":1}', b"\xff", b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":true,"method":"x"}', b'{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}',
        b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', b'{"jsonrpc":"2.0","method":7}',
    ],
)  # fmt: skip
def test_what_is_no_message_is_told_so(bad: bytes) -> None:
    with pytest.raises(NoMessage):
        parse(bad)


def test_a_run_is_found_by_descent_where_its_variable_does_not_come_through() -> None:
    look = "import os; from worldline.seams.mcp.joining import run_url; print(run_url(os.environ))"
    middle = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {look!r}], env={{}})"
    own = {name: value for name, value in os.environ.items() if name != "WORLDLINE_URL"}
    for url in ("http://127.0.0.1:1/run/", None):
        env = own if url is None else {**own, "WORLDLINE_URL": url}
        done = subprocess.run([sys.executable, "-c", middle], env=env, capture_output=True, check=True, text=True)
        assert done.stdout.strip() == str(url)
