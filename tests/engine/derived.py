"""Recordings that hold a value everywhere, what is derived from them, and a look at every byte of that."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.engine.recorded import action, answer, decision, recorder_in
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.redact.derive import Derived, derive
from worldline.engine.redact.rules import Rules
from worldline.engine.replay import inspect
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.recording import Recording
from worldline.store.secrets.vault import forms
from worldline.store.verify import verify
from worldline.testing.provider import Say, ToolCall, anthropic_messages, openai_chat, openai_responses
from worldline.testing.provider.script import Ask
from worldline.testing.provider.stable import Mint

SECRET = 'pä"ss\\wo\nrd/' + "4711-0815"  # needs every escape there is
APIS: dict[str, Any] = {
    "openai.chat": openai_chat,
    "openai.responses": openai_responses,
    "anthropic.messages": anthropic_messages,
}
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2


def streamed(api: Any, say: Say) -> bytes:
    """An answer as this API streams it."""
    ask = Ask(api, "m", [], [], [], "", True, 0, 0, {}, {})
    return b"".join(APIS[api].stream(say, ask, Mint("x")))


def cut(body: bytes, size: int = 50) -> list[bytes]:
    """A body in transfer chunks."""
    return [body[at : at + size] for at in range(0, len(body), size)]


def say(value: str, chunk: int = 1, text: str = "before {} after") -> Say:
    """An answer that spells a value in its text and in the arguments of a tool call, token by token."""
    return Say(text.format(value), [ToolCall("login", {"password": value, "user": "bob"}, "call_1")], chunk=chunk)


def history(api: str, value: str) -> bytes:
    """The request behind that answer: what was asked, the call, and what the tool gave."""
    asked: dict[str, Any] = {"role": "user", "content": f"use {value}, please"}
    arguments = {"password": value, "user": "bob"}
    result = json.dumps({"token": value, "for": "bob"})
    if api == "anthropic.messages":
        call: Any = {"type": "tool_use", "id": "call_1", "name": "login", "input": arguments}
        gave: Any = {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": result}]}
        turns: list[Any] = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [gave]}]
    elif api == "openai.responses":
        turns = [
            {"type": "function_call", "call_id": "call_1", "name": "login", "arguments": json.dumps(arguments)},
            {"type": "function_call_output", "call_id": "call_1", "output": result},
        ]
    else:
        call = {"id": "call_1", "type": "function", "function": {"name": "login", "arguments": json.dumps(arguments)}}
        turns = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": result},
        ]
    return json.dumps({"model": "m", ("input" if "responses" in api else "messages"): [asked, *turns]}).encode()


def exchange(boundary: RecordBoundary, api: str, value: str) -> None:
    """A turn of an agent: asked, answered with a tool call, the tool run, its result told."""
    first = {"model": "m", "messages": [{"role": "user", "content": f"use {value}, please"}]}
    answer(boundary, decision(json.dumps(first).encode(), api), cut(streamed(api, say(value))))
    live = boundary.begin(action("login", {"password": value, "user": "bob"}))
    live.finish({}, Content.of({"token": value, "for": "bob"}))
    answer(boundary, decision(history(api, value), api), [json.dumps({"said": value}).encode()])


def rich(store: Path, value: str = SECRET, **spec: Any) -> Recording:
    """A sealed run in which nothing, and no digest of anything, is without the value."""
    recorder, boundary = recorder_in(store, task=f"try {value}", **spec)
    for api in APIS:
        exchange(boundary, api, value)
    fill(boundary, value)
    return sealed(recorder)


def fill(boundary: RecordBoundary, value: str) -> None:
    """The value in every other place that a row has."""
    coded = base64.b64encode(json.dumps({"key": value}).encode()).decode()
    once = hashlib.sha256(value.encode()).hexdigest()  # made of the arguments, as such keys are
    live = boundary.begin(action("odd", {value: [value, {"b": value.encode()}], "coded": coded}, idempotency_key=once))
    live.fail({"type": "Refused", "message": f"no {value}", "args": [value], "attributes": {"code": value}})
    long = (f"{value} " + "and more words " * 20) * 120
    big = {"raw": PICTURE + value.encode(), "long": long, "tuple": (value, b"x" + value.encode() + b"y")}
    boundary.begin(action("big", {"x": value})).finish({}, Content.of(big))
    deep: Any = value
    for _ in range(150):
        deep = {"in": deep, "password": value}
    boundary.begin(action("deep", {"x": value})).finish({}, Content.of(deep))
    plain = f"a plain answer with {value} in it, said in two rows".encode()
    long = b"x" * 20_000 + plain
    answer(boundary, decision(json.dumps({"prompt": value}).encode()), [long[:20_025], long[20_025:]])
    asked = Call(kind="observation", name="sensor", inputs=Content.of({"for": value}))
    boundary.begin(asked).finish({}, Content.of(f"{value} at 20 degrees"))
    inner = {"type": "Refused", "message": f"in {value}", "args": [value]}
    group = {"type": "ExceptionGroup", "message": f"{value}s", "args": None, "group": value, "exceptions": [inner]}
    boundary.begin(action("many", {"x": value})).fail(group)
    note = boundary.note
    note("observation", "custom", "main", {}, {"body": f"not an answer's: {value}", "pieces": [value], "n": 5})
    note("permission", "denied", f"lane {value}", {}, {"capability": value, "facts": Content.of({"why": value})})
    note("observation", "file", "main", {}, {"name": value, "value": Content.of({"text": value})})
    note("marker", "outcome", "main", {}, {"outcome": value, "facts": Content.of({"password": value})})


def sealed(recorder: Recorder, **how: Any) -> Recording:
    """Seal it and open it."""
    recorder.seal(**how)
    return Recording(recorder.run_directory)


def derived(source: Recording, target: Path, *rules: str, value: str = SECRET, **more: Any) -> Derived:
    """Derive with these rules; `SECRET` is in the environment."""
    return derive(source, target, Rules(rules, {"HELD": value}), **more)


def good(target: Path) -> PackedRecording:
    """A derived bundle that verifies and whose requests rebuild."""
    opened = open_recording(target)
    assert isinstance(opened, PackedRecording)
    found = verify(opened)
    assert found.ok, found.problems
    assert found.verdicts["publication"] == "derived"
    report = inspect(opened)
    assert report.equivalent, report
    return opened


def everything(target: Path) -> dict[str, bytes]:
    """The bytes of a bundle, and of every entry inflated."""
    with zipfile.ZipFile(target) as opened:
        return {"": target.read_bytes(), **{name: opened.read(name) for name in opened.namelist()}}


def assert_nowhere(target: Path, value: str) -> None:
    """In no form, anywhere."""
    for name, data in everything(target).items():
        for form in forms(value) | {json.dumps(json.dumps(value)[1:-1])[1:-1].encode()}:
            assert form not in data, (name, form)


def digests(values: Iterable[bytes]) -> set[bytes]:
    """Whatever looks like a digest in some bytes."""
    found = {word for data in values for word in re.findall(rb"[0-9a-f]{16,}", data)}
    return {word for word in found if len(word) in (16, 32, 64)}


def files(folder: Path) -> Mapping[str, bytes]:
    """Every file below a folder, with its bytes."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
