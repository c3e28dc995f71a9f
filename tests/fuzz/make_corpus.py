"""Makes the inputs that fuzzing begins with: `python -m tests.fuzz.make_corpus [FOLDER]`.

They come from recordings made here and from texts written here. What a fuzzer found stands beside them as `found-...`
and is kept.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.engine.recorded import recorder_in
from tests.fuzz import fitting
from tests.fuzz.fitting import AS_IS, FITTED, PART
from tests.fuzz.targets import CORPUS
from tests.fuzz.wire_targets import ROUTES
from tests.store import hostile
from tests.tamper import subjects
from worldline.store import layout
from worldline.store.bundle.container import EVENTS
from worldline.store.bundle.packed import PackedRecording
from worldline.store.proof import prove_prefix, prove_row
from worldline.store.recording import Recording

Inputs = Iterator[tuple[str, str, bytes]]  # target, name, bytes

JSON, SSE = b"Content-Type: application/json\r\n", b"Content-Type: text/event-stream\r\n"
REQUESTS = {
    "get": b"GET /t/openai/v1/models?limit=2 HTTP/1.1\r\nHost: localhost\r\nX-Odd:  two  words \r\n\r\n",
    "post": b"POST /t/openai/v1/chat/completions HTTP/1.1\r\nHost: h\r\n" + JSON + b"Content-Length: 2\r\n\r\n{}",
    "chunked": b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n0\r\nEnd: 1\r\n\r\n",
    "two": b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
    "upgrade": b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "expect": b"PUT /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "old": b"GET http://h/a HTTP/1.0\r\nConnection: close, x-hop\r\nX-Hop: 1\r\n\r\n",
    "both": b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "bare lines": b"GET /a HTTP/1.1\nHost: h\n\n",
    "cut": b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
}
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
ANSWERS = {
    "length": b"HTTP/1.1 200 OK\r\n" + JSON + b"Content-Length: 2\r\n\r\n{}",
    "stream": b"HTTP/1.1 200 OK\r\n" + SSE + CHUNKED + b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"2\r\nab\r\n0\r\nX-End: 1\r\n\r\n",
    "close": b"HTTP/1.1 200\r\nServer: x\r\n\r\nuntil the end",
    "early": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n",
    "none": b"HTTP/1.1 204 No Content\r\n\r\n",
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "more": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc",
    "cut": b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"ff\r\nab",
    "no answer": b"SSH-2.0-OpenSSH_9.2\r\n",
}
STREAMS = {
    "plain": b"data: one\n\ndata: two\n\n",
    "named": b"event: message_start\ndata: {\ndata:  }\nid: 7\nretry: 10\n\n: a comment\n\n",
    "returns": b"\xef\xbb\xbfdata: a\r\rdata: b\r\n\r\ndata:c\n\r",
    "odd": b"data\n\nevent:\ndata: \xe2\x80\xa8\xff\n\ndata: never ended\n",
}
TOOL = {"type": "function", "function": {"name": "look", "arguments": '{"at":1}'}, "id": "u1"}
CHAT_ASK = {
    "model": "m-1",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [TOOL]},
        {"role": "tool", "tool_call_id": "u1", "content": "seen"},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}],
}
RESPONSES_ASK = {
    "model": "m-1",
    "previous_response_id": "r0",
    "input": [{"type": "function_call_output", "call_id": "u1", "output": "seen"}, {"role": "user", "content": "hi"}],
}
MESSAGES_ASK = {
    "model": "m-1",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "be brief"}],
    "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u1", "content": "seen"}]}],
}
CHAT = {
    "id": "r1",
    "model": "m-1",
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"content": "x", "tool_calls": [TOOL]}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
}
RESPONSES = {
    "id": "r1",
    "status": "completed",
    "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "x"}]},
        {"type": "function_call", "call_id": "u1", "name": "look", "arguments": "{}"},
    ],
    "usage": {"input_tokens": 7, "output_tokens": 3},
}
MESSAGES = {
    "id": "r1",
    "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "u1", "name": "look", "input": {"at": 1}}],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 7, "output_tokens": 3},
}
CHAT_STREAM = [
    {"id": "1", "choices": [{"index": 0, "delta": {"content": "h"}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **TOOL}]}, "finish_reason": "stop"}]},
]
RESPONSES_STREAM = [
    {"type": "response.created", "response": {"id": "r1", "model": "m-1"}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "x"},
    {"type": "response.completed", "response": RESPONSES},
]
MESSAGES_STREAM = [
    {"type": "message_start", "message": {"id": "r1", "usage": {"input_tokens": 7}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "u1", "name": "look"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]
ERROR = {"type": "error", "error": {"type": "overloaded", "message": "slow down"}}


def wires() -> Inputs:
    """What stands on the wire: each whole, and in pieces of 1 and 7 bytes."""
    for target, texts in (("request", REQUESTS), ("answer", ANSWERS), ("sse", STREAMS)):
        for name, text in texts.items():
            yield target, name, bytes([0 if name == "cut" else 7]) + text
    yield "answer", "head", b"\x41" + ANSWERS["length"]
    wired = ("openai.chat", "openai.responses", "anthropic.messages")  # another route's messages are no provider's
    asks = dict(zip(wired, (CHAT_ASK, RESPONSES_ASK, MESSAGES_ASK), strict=True))
    answers = dict(zip(wired, (CHAT, RESPONSES, MESSAGES), strict=True))
    streams = dict(zip(wired, (CHAT_STREAM, RESPONSES_STREAM, MESSAGES_STREAM), strict=True))
    for route in wired:
        number = ROUTES.index(route)
        for name, kind, said in (
            ("ask", 0, json.dumps(asks[route])),
            ("answer", 2, json.dumps(answers[route])),
            ("stream", 3, "".join(f"event: {e.get('type')}\ndata: {json.dumps(e)}\n\n" for e in streams[route])),
            ("error", 0, json.dumps(ERROR)),
        ):
            yield "dialect", f"{route} {name}", bytes([number, kind]) + said.encode()


def stored(folder: Path) -> Inputs:
    """What stands on a disk: recordings with one of everything, their bundles and proofs."""
    for name, make in subjects.DIRECTORIES.items():
        attempt = make(folder / name)
        recording = Recording(attempt)
        rows = b"".join(path.read_bytes() for path in sorted((attempt / layout.CHUNKS).iterdir()))
        bodies = b"\n".join(line[:-73] for line in rows.splitlines(True)) + b"\n"
        yield "rows", name, FITTED + bodies[:4000]
        yield "log", name, bodies
        expiry = attempt / layout.EXPIRY
        records = PART + expiry.read_bytes() if expiry.is_file() else b""
        line = (attempt / layout.MANIFEST).read_bytes()
        yield "manifest", name, AS_IS + line + records
        yield "manifest", f"{name} fitted", FITTED + line + records
        path = subjects.bundle_of(attempt, folder / f"{name}.skn")
        if name == "reconciled":
            yield "bundle", "as it is", AS_IS + path.read_bytes()
        yield "bundle", name, fitting.input_of(pieces(PackedRecording(str(path))))
        if name == "whole":
            yield "proof", "row", prove_row(recording, 3)
            yield "proof", "prefix", prove_prefix(recording, 5)
    yield from damaged(folder)


def pieces(packed: PackedRecording) -> list[tuple[str, bytes]]:
    """The entries of a bundle as the parts of an input; the log's rows without their hashes."""
    found = []
    for entry in packed.container.entries:
        content, name = b"".join(packed.content_of(entry)), entry.name
        if name == EVENTS:
            content = b"\n".join(line[:-73] for line in content.splitlines(True))
        if name.startswith("resources/"):
            name = name.rpartition(".")[2]
        elif name.startswith("snapshots/"):
            name = fitting.SNAPSHOT
        elif name.startswith("thumbs/"):
            name = fitting.THUMB
        if name in fitting.PARTS:
            found.append((name, content))
    return found


def damaged(folder: Path) -> Inputs:
    """A small log as it is, and as crashes and hands leave one."""
    recorder, _ = recorder_in(folder / "small")
    for number in range(4):
        recorder.append("observation", "note", {}, {"name": "n", "value": number}, durable=number == 1)
    recorder.close()
    rows = (recorder.attempt / layout.TAIL).read_bytes().splitlines(True)
    for name, lines in {
        "good": rows,
        "torn": [*rows[:3], rows[3][:-20]],
        "hole": [*rows[:2], bytes(len(rows[2])), *rows[3:]],
        "changed": [*rows[:2], rows[2].replace(b'"n"', b'"m"'), *rows[3:]],
        "gap": [*rows[:2], *rows[3:]],
        "swapped": [rows[0], rows[2], rows[1], *rows[3:]],
        "glued": [*rows[:2], rows[2][:-30], *rows[3:]],
    }.items():
        yield "rows", name, AS_IS + b"".join(lines)
    odd = [hostile.spelled(value) for value in hostile.WRONG.values() if value != 10**400 and value != "x" * 40_000]
    fields = [b'{"seq":%d,"t":1,"dt":0,"kind":"meta","src":"header","v":1,"lane":"main","data":{"format":%b}' % pair
              for pair in enumerate(odd)]  # fmt: skip
    yield "log", "odd values", b"\n".join(fields)


def make(target: Path) -> None:
    """Write every input; those that a fuzzer found stay."""
    for old in target.rglob("*"):
        if old.is_file() and not old.name.startswith("found-"):
            old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, data in (*wires(), *stored(Path(folder))):
            place = target / kind / name.replace(" ", "-").replace(".", "-")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS)
