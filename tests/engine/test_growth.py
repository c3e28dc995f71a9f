"""A recording grows with what is new, not with the square of its turns.

500 turns of 4 KB messages, cache markers moving along, streamed answers: every element is stored once, the live
directory is at most 1.5 times what is new, twice the turns are at most 2.1 times the size, every context rebuilds.
"""

from __future__ import annotations

import json
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.engine.recorded import recorder_in
from worldline.engine.cassette import Cassette
from worldline.engine.replay import inspect
from worldline.seams.wire.exchange import call_of, recorded_headers
from worldline.store.recording import Recording

TURNS = 500
MESSAGE = 4096
WORDS = """
the of and to in is that it was for on are with as be at one have this from or had by not but what some we can out other
were all there when up use your how said an each she which do their time if will way about many then them write would
like so these her long make thing see him two has look more day could go come did number sound
"""
TOOLS = [
    {
        "name": f"tool_{n}",
        "description": "Does one thing and says what came of it. " * 8,
        "input_schema": {"type": "object"},
    }
    for n in range(6)
]
REQUEST_HEADERS = (
    ("Host", "127.0.0.1:1"),
    ("Accept", "application/json"),
    ("Accept-Encoding", "gzip, deflate"),
    ("Connection", "keep-alive"),
    ("User-Agent", "Anthropic/Python 2.14.0"),
    ("Content-Type", "application/json"),
    ("X-Stainless-Lang", "python"),
    ("X-Stainless-Package-Version", "2.14.0"),
    ("X-Stainless-OS", "Linux"),
    ("X-Stainless-Arch", "x64"),
    ("X-Stainless-Runtime", "CPython"),
    ("X-Stainless-Runtime-Version", "3.11.7"),
    ("anthropic-version", "2023-06-01"),
    ("X-Api-Key", "not-a-key"),
    ("x-stainless-retry-count", "0"),
    ("x-stainless-read-timeout", "600"),
)
RESPONSE_HEADERS = (
    ("Content-Type", "text/event-stream; charset=utf-8"),
    ("request-id", "req_0123456789"),
    ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("Transfer-Encoding", "chunked"),
)


def prose(chance: random.Random, size: int) -> str:
    text, words = "", WORDS.split()
    while len(text) < size:
        sentence = " ".join(chance.choices(words, k=chance.randint(5, 14)))
        text += sentence.capitalize() + chance.choice([". ", ", ", ".\n", '." ', "? "])
    return text[:size]


def events_of(chance: random.Random, text: str) -> Iterator[bytes]:
    """An answer as Anthropic streams it: some words an event."""

    def event(kind: str, **fields: Any) -> bytes:
        data = json.dumps({"type": kind, **fields}, separators=(",", ":"))
        return f"event: {kind}\ndata: {data}\n\n".encode()

    start = {"id": f"msg_{chance.getrandbits(80):x}", "type": "message", "role": "assistant", "model": "claude-x"}
    yield event("message_start", message={**start, "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    at = 0
    while at < len(text):
        size = chance.randint(12, 48)
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": text[at : at + size]})
        at += size
    yield event("content_block_stop", index=0)
    yield event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": len(text) // 4})
    yield event("message_stop")


class Run:
    """One agent's run as a recorder hears it, and how much of what it heard was new."""

    def __init__(self, store: Path) -> None:
        self.recorder, self._boundary = recorder_in(store)
        self._chance = random.Random(7)
        self._messages: list[dict[str, Any]] = []
        self._texts: list[bytes] = []  # the messages as JSON, without markers
        self.template = compact({"model": "claude-x", "max_tokens": 1024, "tools": [], "messages": [], "stream": True})
        self.elements: set[bytes] = {compact(tool) for tool in TOOLS}
        self.sent = self.answered = 0
        self.last = b""

    def turn(self) -> None:
        self._say("user", prose(self._chance, MESSAGE))
        self.last = self._body()
        self.sent += len(self.last)
        live = self._boundary.begin(call_of("POST", "/v1/messages", REQUEST_HEADERS, self.last, lambda value: None))
        text = prose(self._chance, 600)
        for piece in events_of(self._chance, text):
            live.chunk(piece)
            self.answered += len(piece)
        headers = recorded_headers(RESPONSE_HEADERS, lambda value: None)
        live.finish({"status": 200, "reason": "OK", "headers": headers, "framing": "chunked", "complete": True})
        self._say("assistant", text)

    def _say(self, role: str, text: str) -> None:
        self._messages.append({"role": role, "content": [{"type": "text", "text": text}]})
        self._texts.append(compact(self._messages[-1]))

    def _body(self) -> bytes:
        """The request with cache markers on the last two messages of the user."""
        texts = list(self._texts)
        for at in range(len(texts) - 1, -1, -2)[:2]:
            block = {**self._messages[at]["content"][0], "cache_control": {"type": "ephemeral"}}
            texts[at] = compact({"role": "user", "content": [block]})
        self.elements.update(texts[-5:])  # the newest, and the one that lost its marker
        tools = b",".join(compact(tool) for tool in TOOLS)
        body = self.template.replace(b'"tools":[', b'"tools":[' + tools)
        return body.replace(b'"messages":[', b'"messages":[' + b",".join(texts))

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.recorder.attempt.rglob("*") if path.is_file())

    @property
    def new(self) -> int:
        return sum(map(len, self.elements)) + len(self.template) + self.answered


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def test_a_run_of_500_turns_grows_with_what_is_new(tmp_path: Path) -> None:
    """One test for one run: it is long, and every promise looks at the same record."""
    run = Run(tmp_path)
    for _ in range(TURNS // 2):
        run.turn()
    half = run.size
    for _ in range(TURNS // 2):
        run.turn()
    assert run.size <= 1.5 * run.new, f"{run.size:,} bytes for {run.new:,}"
    assert run.size <= 2.1 * half
    assert run.sent > 50 * run.size, "what the agent sends grows with the square of its turns"
    assert_each_element_is_stored_once(run)

    path = run.recorder.seal()
    assert run.size <= 1.5 * run.new
    report = inspect(Recording(path))
    assert (report.verdict, report.contexts) == ("equivalent", TURNS)
    cassette = Cassette(Recording(path))
    assert cassette.request(cassette.exchanges[-1]) == run.last


def assert_each_element_is_stored_once(run: Run) -> None:
    recording = Recording(run.recorder.attempt)
    stored: Counter[bytes] = Counter()
    for event in recording.events():
        if event.name == "decision/request":
            form = recording.loaded(event.data["body"])
            texts = [form["template"], *(text for array in form["arrays"] for text in recording.loaded(array["add"]))]
            stored.update(recording.content(text) for text in texts if not (isinstance(text, dict) and "$e" in text))
    assert set(stored) == run.elements | {run.template}
    assert max(stored.values()) == 1


def test_what_is_remembered_of_calls_does_not_grow_with_their_number(tmp_path: Path) -> None:
    recorder, _ = recorder_in(tmp_path)
    tracemalloc.start()
    try:
        for number in range(20_000):
            recorder.next_call(f"{number:032x}")
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20_000, 60_000):
            recorder.next_call(f"{number:032x}")
        assert tracemalloc.get_traced_memory()[0] - before < 1_000_000
    finally:
        tracemalloc.stop()
    recorder.close()
