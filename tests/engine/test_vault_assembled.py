"""A secret that a model streams token by token does not reach the disk, in any dialect, whatever the split."""

from __future__ import annotations

import json
import zlib
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.recorded import answer, decision, exchange_of, recorder_in, same_bodies, written
from worldline.engine import assembled
from worldline.engine.assembled import Assembled
from worldline.engine.boundary import RecordBoundary
from worldline.engine.fragments import fragments
from worldline.errors import SecretFound
from worldline.model.dialects import Decision, read_response
from worldline.store.recording import Recording
from worldline.store.secrets.vault import Vault
from worldline.testing.provider import Say, ToolCall, anthropic_messages, openai_chat, openai_responses
from worldline.testing.provider.script import Ask
from worldline.testing.provider.stable import Mint

SECRET = "tok-" + "a1B2c3D4e5F6"
ODD = 'pä"ss\\wo\nrd/😀' + "98765432"
KEY = "sk-ant-api03-" + "aB3" * 20  # nobody's, and registered nowhere
SECRETS = {"KEY": SECRET, "ODD": ODD}
APIS = {
    "openai.chat": openai_chat,
    "openai.responses": openai_responses,
    "anthropic.messages": anthropic_messages,
}
AGAIN = {"openai.chat": 0, "openai.responses": 4, "anthropic.messages": 0}  # how often a stream repeats a text whole


def streamed(api: Any, say: Say) -> bytes:
    ask = Ask(api, "m", [], [], [], "", True, 0, 0, {}, {})
    return b"".join(APIS[api].stream(say, ask, Mint("x")))


def read(api: str, body: bytes) -> Decision:
    read = read_response(api, 200, "text/event-stream", body)
    assert read is not None and read.complete and read.error is None
    return read


def recorded(place: Path, api: str, pieces: list[bytes], **spec: Any) -> tuple[bytes, list[bytes], Any]:
    recorder, boundary = recorder_in(place, secrets=SECRETS, **spec)
    call = answer(boundary, decision(name=api), pieces)
    cassette, exchange = exchange_of(recorder, call)
    assert same_bodies(recorder)
    borders = [piece for piece, whole in cassette.pieces(exchange) if whole]
    recorder.close()
    return cassette.body(exchange), borders, recorder.vault


def events(body: bytes) -> list[bytes]:
    return [event for event in body.split(b"\n\n") if event]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
@pytest.mark.parametrize(("secret", "label"), [(SECRET, "KEY"), (ODD, "ODD"), (KEY, "anthropic-key")])
def test_in_a_text_and_in_arguments(tmp_path: Path, api: str, chunk: int, secret: str, label: str) -> None:
    text = f"The key is {secret}, and tok- is not. Again: {secret}"
    say = Say(text, [ToolCall("login", {"key": secret, "n": 1}), ToolCall("x", {"a": "tok-"})], chunk=chunk)
    body = streamed(api, say)
    kept, _, vault = recorded(tmp_path, api, [body[at : at + 50] for at in range(0, len(body), 50)])
    mark = f"[secret:{label}]"
    before, after = read(api, body), read(api, kept)
    assert before.text == text and after.text == text.replace(secret, mark)
    assert after.tool_uses[0].arguments == json.dumps({"key": mark, "n": 1}, separators=(",", ":"))
    assert [json.loads(use.arguments) for use in after.tool_uses] == [{"key": mark, "n": 1}, {"a": "tok-"}]
    assert not any(secret.encode() in content for content in written(tmp_path).values())
    # Every other byte is as it was: the events are the same ones, and so is all of them but the texts.
    assert len(events(kept)) == len(events(body))
    for one, other in zip(events(body), events(kept), strict=True):
        assert blank(one) == blank(other) if b'"delta"' in one else other == Vault(SECRETS, key_shapes=True).redact(one)
    found = vault.redactions if label in SECRETS else vault.shapes[label]
    assert found == kept.count(mark.encode()) >= 3


def blank(event: bytes) -> str:
    """An event with the texts of its fragments left out."""
    parsed = json.loads(event[event.index(b"{") :])
    for _, path, _ in list(fragments(parsed)):
        holder = parsed
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = ""
    return event[: event.index(b"{")].decode() + json.dumps(parsed, ensure_ascii=False)


@pytest.mark.parametrize("api", APIS)
def test_only_the_fragments_that_spell_it_change(tmp_path: Path, api: str) -> None:
    body = streamed(api, Say(f"The key is {SECRET}, no more.", chunk=1))
    kept, borders, _ = recorded(tmp_path, api, [event + b"\n\n" for event in events(body)])
    assert b"".join(borders) == kept and len(borders) == len(events(body))
    changed = [(a, b) for a, b in zip(events(body), events(kept), strict=True) if a != b]
    assert len(changed) == len(SECRET) + AGAIN[api]
    spelled = changed[: len(SECRET)]
    assert all(blank(a) == blank(b) for a, b in spelled)
    said = [text for _, b in spelled for _, _, text in fragments(json.loads(b[b.index(b"{") :]))]
    assert said == ["[secret:KEY]"]  # in the first; the others say nothing


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(APIS)),
    st.lists(
        st.sampled_from([SECRET, SECRET[:-1], ODD, ODD[2:], KEY, "tok-", "é", "\n", " and ", "[", "sk-"]), max_size=5
    ),
    st.integers(1, 9),
    st.lists(st.integers(0, 6000), max_size=12),
)
def test_any_text_in_any_tokens_in_any_split(api: str, said: list[str], chunk: int, cuts: list[int]) -> None:
    text = "".join(said)
    body = streamed(api, Say(text, [ToolCall("f", {"x": text})], chunk=chunk))
    at = [0, *sorted({min(cut, len(body)) for cut in cuts} | {len(body)})]
    pieces = [body[a:b] for a, b in pairwise(at) if a < b]
    with TemporaryDirectory() as name:
        kept, borders, _ = recorded(Path(name), api, pieces)
        files = written(Path(name)).values()
    assert b"".join(borders) == kept and len(borders) <= len(pieces)
    expected = Vault(SECRETS, key_shapes=True).redact_text(text)
    assert read(api, kept).text == expected
    assert json.loads(read(api, kept).tool_uses[0].arguments) == {"x": expected}
    assert not any(secret.encode() in content for secret in (SECRET, KEY) for content in files)


@pytest.mark.parametrize("api", APIS)
def test_a_stream_without_a_secret_is_the_same_bytes_and_is_not_kept_waiting(api: str) -> None:
    body = streamed(api, Say("an ordinary answer " * 5, [ToolCall("f", {"x": "y" * 30})], chunk=4))
    stage, late = Assembled(Vault(SECRETS, key_shapes=True)), []
    came = gone = 0
    for event in events(body):
        came += len(event) + 2
        gone += sum(len(data) for data, _ in stage.feed([(event + b"\n\n", 1)]))
        late.append(came - gone)
    assert sum(len(data) for data, _ in stage.close()) == late[-1]
    assert sum(bytes_held == 0 for bytes_held in late) > len(late) / 2  # most events go on at once
    for size in (1, 7, 1000):
        stage = Assembled(Vault(SECRETS))
        out = [piece for at in range(0, len(body), size) for piece in stage.feed([(body[at : at + size], at)])]
        assert b"".join(data for data, _ in [*out, *stage.close()]) == body


def test_channels_do_not_mix() -> None:
    """Two choices, and two calls, whose fragments take turns: a secret is one channel's, and none is made of two."""

    def chunk(index: int, text: str) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": index, "delta": {"content": text}}]}).encode() + b"\n\n"

    half = len(SECRET) // 2
    stage = Assembled(Vault(SECRETS))
    turns = [
        chunk(0, "x" + SECRET[:half]),
        chunk(1, SECRET[half:]),
        chunk(1, SECRET[:half]),
        chunk(0, SECRET[half:] + "y"),
    ]
    out = b"".join(data for one in turns for data, _ in stage.feed([(one, None)])) + b"".join(
        d for d, _ in stage.close()
    )
    assert out == chunk(0, "x[secret:KEY]") + chunk(1, SECRET[half:]) + chunk(1, SECRET[:half]) + chunk(0, "y")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_any_line_ends_and_escapes(end: str, ascii_only: bool) -> None:
    def event(text: str) -> bytes:
        body = json.dumps(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            ensure_ascii=ascii_only,
        )
        return f"event: content_block_delta{end}data:  {body}{end}{end}".encode()

    stage = Assembled(Vault(SECRETS))
    out = b"".join(d for c in f"<{ODD}>" for d, _ in stage.feed([(event(c), None)])) + b"".join(
        d for d, _ in stage.close()
    )
    assert out == b"".join(map(event, ["<", "[secret:ODD]", *[""] * (len(ODD) - 1), ">"]))


def test_what_is_held_back_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembled, "HELD", 10_000)
    stage, held, out = Assembled(Vault(SECRETS)), 0, b""
    first = streamed("openai.chat", Say(SECRET[:9], chunk=1)).split(b"data: [DONE]")[0]
    filler = b'data: {"choices":[{"index":7,"delta":{"content":"."}}]}\n\n'
    body = first.rpartition(b"data: ")[0] + filler * 1000 + b"data: " + b"x" * 50_000
    for at in range(0, len(body), 100):
        out += b"".join(data for data, _ in stage.feed([(body[at : at + 100], None)]))
        held = max(held, at + 100 - len(out))
    assert held <= 10_200
    assert out + b"".join(data for data, _ in stage.close()) == body


NO_ANSWERS = [
    b"",
    b"data",
    b"data: {\n\n",
    b"data: [1]\n\ndata",
    b"data: " + b"[" * 5000 + b"\n\n",
    b'data: {"choices":[{"delta":{"content":5}}]}\n\n',
    b'data: {"type":"x","delta":"a"}\ndata: {}\n\n',
    b": ping\n\n",
    b'{"delta":"x"}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("body", NO_ANSWERS)
def test_what_is_no_answer_passes_as_it_came(body: bytes) -> None:
    for size in (1, 3, len(body) or 1):
        stage = Assembled(Vault(SECRETS))
        out = [piece for at in range(0, len(body), size) for piece in stage.feed([(body[at : at + size], at)])]
        pieces = [*out, *stage.close()]
        assert b"".join(data for data, _ in pieces) == body
        assert [when for _, when in pieces if when is not None] == list(range(0, len(body), size))


def test_inside_a_compressed_stream(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets=SECRETS)
    body = streamed("anthropic.messages", Say(f"it is {SECRET}.", chunk=1))
    call = answer(boundary, decision(), [zlib.compress(body)], "deflate")
    cassette, exchange = exchange_of(recorder, call)
    assert read("anthropic.messages", cassette.body(exchange)).text == "it is [secret:KEY]."


def test_under_stop_the_run_ends_before_it_is_written(tmp_path: Path) -> None:
    recorder, _ = recorder_in(tmp_path, secrets=SECRETS, policy="stop")
    body = streamed("openai.chat", Say(f"it is {SECRET}.", chunk=1))
    with pytest.raises(SecretFound):
        answer(RecordBoundary(recorder), decision(), [body[at : at + 40] for at in range(0, len(body), 40)])
    assert Recording(recorder.seal()).disposition == "sanitized-partial"
    assert not any(SECRET.encode() in content for content in written(tmp_path).values())


ENDS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"data: ", b"data:", b"{}", b"x", b"id: 1"]), max_size=12).map(
    b"".join
)


@given(ENDS, st.integers(0, 5))
def test_events_are_split_and_read_as_their_patterns_say(text: bytes, at: int) -> None:
    assert list(assembled._blanks(bytearray(text), at)) == [blank.end() for blank in assembled.BLANK.finditer(text, at)]
    found = [match.span(1) for match in assembled.DATA.finditer(text.replace(b"\r", b"\n"))]
    assert assembled._data(text) == (found[0] if len(found) == 1 else (0, 0))


@pytest.mark.parametrize(
    "text", [b'{"a":"\\ud800"}', b'{"a":NaN}', b'{"a":1,"a":2}', b'{"a":"\xff"}', b"{", b"[" * 100_000, b'{"a":"\x01"}']
)
def test_what_one_reader_of_json_refuses_the_other_may_read(text: bytes) -> None:
    try:
        expected = json.loads(text)
    except (ValueError, RecursionError):
        expected = None
    assert repr(assembled._parsed(text)) == repr(expected)
