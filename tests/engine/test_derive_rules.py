"""What each rule takes, what it leaves, and which rules are refused."""

from __future__ import annotations

import base64
import json
import re
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine.derived import (
    PICTURE,
    assert_nowhere,
    cut,
    derived,
    everything,
    good,
    say,
    sealed,
    streamed,
)
from tests.engine.recorded import action, answer, decision, recorder_in
from worldline.engine.cassette import Cassette
from worldline.engine.content import Content
from worldline.engine.redact.patterns import STRETCH
from worldline.engine.redact.rules import Rules, marker
from worldline.errors import SecretRefused, UsageError
from worldline.model.dialects import read_response
from worldline.store.secrets.vault import Vault

HELD = "secret-env:HELD"
KEY = "sk-ant-api03-" + "aB3" * 20  # nobody's
VALUE = "rosebud-" + "1941"


def text_of(target: Path) -> str:
    return b"".join(event.raw for event in good(target).events()).decode()


def test_a_pattern_takes_texts_and_numbers_but_no_structure(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path / "s", task="mail ann@example.org")
    body = {"model": "m", "messages": [{"role": "user", "content": "ann@example.org \u00e4 4000123412341234"}], "n": 7}
    body["card"] = 4000123412341234
    inner = json.dumps({"to": "ann@example.org", "again": json.dumps(["bob@example.org"])})
    reply = json.dumps({"choices": [{"message": {"content": inner}}], "created": 1700000000})
    length = [["Content-Length", str(len(reply))]]
    answer(boundary, decision(json.dumps(body).encode(), "openai.chat"), [reply.encode()], headers=length)
    raw = b"to: ann@example.org"
    boundary.begin(action("ask ann@example.org", {})).finish({}, Content.of(None))
    boundary.begin(
        action("mail", {"ann@example.org": 1.5, "n": 4000123412341234, "raw": raw, "big": 10**15 * 4000123412341234})
    ).finish({}, Content.of("sent"))
    source = sealed(recorder)
    done = derived(source, tmp_path / "out.skn", r"text:[\w.+-]+@[\w-]+\.\w+", r"text:\b\d{16,31}\b")
    assert set(done.removed) == {"text:1", "text:2"}
    told = text_of(tmp_path / "out.skn")
    assert "example.org" not in told and "4000123412341234" not in told and "d{16" not in told
    cassette = Cassette(good(tmp_path / "out.skn"))
    asked, named, ran = cassette.exchanges
    mail, card = marker("text:1"), marker("text:2")
    sent = json.loads(cassette.request(asked))
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": f"{mail} \u00e4 {card}"}],
        "n": 7,
        "card": card,
    }
    said = json.loads(cassette.body(asked))
    assert said["created"] == 1700000000
    said = json.loads(said["choices"][0]["message"]["content"])
    assert said == {"to": mail, "again": json.dumps([mail])}
    assert cassette.inputs(ran) == {mail: 1.5, "n": card, "raw": f"to: {mail}".encode(), "big": card}
    manifest = good(tmp_path / "out.skn").manifest
    assert manifest is not None and manifest.result["name"] == "mail-redacted-text-1.json"
    assert named.name == f"ask {mail}" and manifest.coverage["tools"]["recorded"] == {"mail": 1, f"ask {mail}": 1}
    assert dict(asked.data["headers"])["Content-Length"] == str(len(cassette.body(asked)))


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (r"text:(a+)+b", "repeats what repeats"),
        (r"text:(a|ab)*c", "repeats what repeats, or what can be read in several ways"),
        (r"text:((x?y){2,3}z)+", "repeats"),
        (r"text:(\w+ ){3}", "repeats"),
        (r"text:(?:a|b){20}c", "repeats"),
        (r"text:" + "a?" * 25 + "a", "several ways"),
        (r"text:" + "a+" * 7, "more than 6 repeats without end"),
        (r"text:(?x) a", "verbose"),
        (r"text:(a)\1", "refers back"),
        (r"text:(?P<n>a)(?P=n)", "refers back"),
        (r"text:a*", "finds nothing at all"),
        (r"text:(", "not a pattern"),
        ("text:" + "a" * 600, "longer than"),
        ("text:", "write text:REGEX"),
        ("field:", "write field:NAME"),
        ("content:xyz", "hex digits"),
        ("shape", "no rule 'shape'"),
        ("secret-env:NOT_SET", "not set"),
    ],
)
def test_rules_that_are_refused(rule: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Rules([rule], {})


ALLOWED = [r"\(a\+\)+", r"[(a+)]+b", r"(?:ab)+", r"(?i)key=\S+", r"(a+)?b", r"a{2,5}b+?", r"(?<=x)y+", r"a|b", r"x{}"]
ALLOWED += [r"\b(?:\d{4}[ -]?){3}\d{4}\b", r"[\w.+-]+@[\w-]+(?:\.\w{2,9}){1,3}", r"(?P<n>a|b){2}", r"\d{3}-\d{2}-\d{4}"]


@pytest.mark.parametrize("pattern", ALLOWED)
def test_patterns_that_are_not(pattern: str) -> None:
    Rules([f"text:{pattern}"], {})


def test_short_secrets_and_long_texts() -> None:
    with pytest.raises(SecretRefused):
        Rules([HELD], {"HELD": "short"})
    rules = Rules([r"text:key=\S+"], {})
    for size in (10, STRETCH - 10, STRETCH - 3, STRETCH, 3 * STRETCH):  # across the stretches that are searched
        data = ("é" * size + " key=" + "k" * 40_000 + " end").encode()
        [hit] = rules.in_text(data)
        assert data[hit.start : hit.end] == b"key=" + b"k" * 40_000


def test_a_text_made_to_be_slow_is_not() -> None:
    """A run of what a pattern begins with is tried once, not from each of its places; and nothing is missed by that."""
    rules, began = Rules([r"text:(?i)[a-z0-9]+@[a-z]"], {}), time.process_time()
    [first, second] = [hit[:2] for hit in rules.in_text(b"a" * 1_000_000 + b" x@yz@Ab")]
    assert ((first[0], second[0]), time.process_time() - began < 20) == ((1_000_001, 1_000_004), True)


@given(
    st.sampled_from(["[ab]+c", "a*b", ".+?b", "a{2,}[ab]", "(?i)[A]+b", "\\w+-\\w", "a+b?"]),
    st.text("abcA- \n", max_size=40),
)
def test_a_pattern_finds_what_it_would_find_alone(pattern: str, text: str) -> None:
    alone = [found.span() for found in re.finditer(pattern, text) if found[0]]
    assert [hit[:2] for hit in Rules([f"text:{pattern}"], {}).in_text(text.encode())] == alone


def test_shapes_pictures_and_one_content(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path / "s", shapes=False)
    url = "data:image/png;base64," + base64.b64encode(PICTURE).decode()
    image: Any = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "c2VjcmV0IHBpY3R1cmU="},
    }
    content = [{"type": "text", "text": f"look: {url} end"}, {"type": "image_url", "image_url": {"url": url}}, image]
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()
    answer(boundary, decision(body, "openai.chat"), cut(streamed("openai.chat", say(KEY))))
    shot = boundary.begin(action("screenshot", {}))
    shot.finish({}, Content(PICTURE, "image/png"))
    long = "nothing to see here, " * 3000
    boundary.begin(action("read", {"key": KEY})).finish({}, Content.of({"text": long}))
    boundary.begin(action("raw", {})).finish({}, Content.of([PICTURE, base64.b64encode(PICTURE).decode()]))
    big = [{"role": "user", "content": "x" * 40_000}]
    answer(boundary, decision(json.dumps({"model": "m", "messages": big}).encode(), "openai.chat"), [b"{}"])
    asked = json.dumps({"model": "m", "messages": [{"role": "user", "content": "z" * 27_000}]}).encode()
    answer(boundary, decision(asked, "openai.chat", facts={"note": "y" * 15_000}), [b"{}"])
    source = sealed(recorder)
    derived(source, tmp_path / "1.skn", "shapes")
    assert_nowhere(tmp_path / "1.skn", KEY)
    assert "before [redacted:shapes] after" in read(tmp_path / "1.skn").text
    done = derived(source, tmp_path / "2.skn", "pictures")
    spelled = base64.b64encode(PICTURE)[:40]
    assert done.removed == {"pictures": 6}
    for data in everything(tmp_path / "2.skn").values():
        assert PICTURE[:30] not in data and spelled not in data and b"c2VjcmV0" not in data
    assert "look: [redacted:pictures] end" in text_of(tmp_path / "2.skn")
    derived(source, tmp_path / "3.skn", r"text:\w+")
    kept = [blob for blob in good(tmp_path / "3.skn").manifest.blobs if blob[2] == "image/png"]  # type: ignore[union-attr]
    assert [blob[4] for blob in kept] == ["captured"]  # a pattern reads no pictures
    assert source.manifest is not None
    for name, *_ in source.manifest.blobs:
        target = tmp_path / f"{name}.skn"
        assert derived(source, target, f"content:{name[:8]}").removed.keys() == {"content:1"}
        assert not any(name[:8].encode() in data for data in everything(target).values())
        assert good(target).manifest is not None


def read(target: Path) -> Any:
    cassette = Cassette(good(target))
    return read_response("openai.chat", 200, "text/event-stream", cassette.body(cassette.exchanges[0]))


@settings(max_examples=25, deadline=None)
@example(["x", VALUE, "y"], [3, 5, 7, 20], "plain")
@given(
    st.lists(
        st.sampled_from([VALUE, VALUE[:5], VALUE[5:], "é", "\n\n", "data: ", '{"a":"', '"}', "x" * 900]), max_size=8
    ),
    st.lists(st.integers(0, 40) | st.integers(0, 9_000), max_size=12),
    st.sampled_from(["plain", "openai.chat", "anthropic.messages"]),
)
def test_any_body_is_redacted_as_one_text_and_every_border_is_kept(parts: list[str], cuts: list[int], how: str) -> None:
    said = "".join(parts)
    body = said.encode() if how == "plain" else streamed(how, say(said, 4, text="{}"))
    at = [0, *sorted({min(place, len(body)) for place in cuts} | {len(body)})]
    pieces = [body[a:b] for a, b in pairwise(at) if a < b]
    with TemporaryDirectory() as name:
        recorder, boundary = recorder_in(Path(name) / "s", task=VALUE)
        answer(boundary, decision(name=how), pieces)
        source, target = sealed(recorder), Path(name) / "out.skn"
        derived(source, target, HELD, value=VALUE)
        cassette = Cassette(good(target))
        [exchange] = cassette.exchanges
        kept = cassette.body(exchange)
        given = cassette.pieces(exchange)
        assert_nowhere(target, VALUE)
    assert b"".join(data for data, _ in given) == kept and all(whole for _, whole in given)
    assert all(data for data, _ in given) and len(given) <= len(pieces)
    assert exchange.data["body_size"] == len(kept)
    expected = Vault({"X": VALUE}).redact_text(said).replace("[secret:X]", marker(HELD))
    if how == "plain":
        assert kept.decode() == expected
    else:
        told = read_response(how, 200, "text/event-stream", kept)
        assert told is not None and told.text == expected
