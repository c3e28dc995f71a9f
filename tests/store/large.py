"""Bundles that are large where real ones are: pictures, one long result in the very first step, a long log."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from pathlib import Path

from tests.engine.recorded import recorder_in
from worldline.engine.recorder import Recorder
from worldline.store.bundle.pack import pack
from worldline.store.recording import JSON, Recording

PICTURE = 4 << 20
PART = 1 << 20
ROW = 30_000


def bundle(folder: Path, megabytes: int) -> Path:
    """A bundle of about that size: 64 % pictures, 16 % one result, 20 % log. Its run stands beside it."""
    chance = random.Random(7)
    recorder, _ = recorder_in(folder / "runs", task="a large one")
    for _ in range(megabytes * 64 // 100 // 4):
        blob = recorder.keep.blobs.put(chance.randbytes(PICTURE), "image/png")
        recorder.append("observation", "screenshot", {}, {"name": "desk", "value": blob.reference()})
    result = recorder.keep.blobs.put(long_text(chance, megabytes * 16 // 100), JSON)
    for number in range(megabytes * (1 << 20) // 5 // ROW * 4 // 3):  # base64 packs to three quarters
        text = base64.b64encode(chance.randbytes(ROW * 3 // 4)).decode()
        step(recorder, number, result.reference() if number == 0 else text)
    recorder.seal()
    return pack(Recording(recorder.attempt), folder / "large.skn").path


def step(recorder: Recorder, number: int, result: object) -> None:
    """The rows of one step as the door writes them, but none is synced by itself."""
    ask, tool = f"a{number}", f"t{number}"
    body = b'{"model":"m-1","messages":[]}'
    said = f'{{"model":"m-1","choices":[{{"message":{{"role":"assistant","content":"step {number}"}}}}]}}'
    ended = {"status": 200, "reason": "", "headers": [], "framing": "length", "complete": True, "body": said}
    live = {"mode": "live"}
    inputs = {"method": "POST", "path": "/x", "query": []}
    asked = {"name": "openai.chat", "inputs": inputs}
    recorder.append("decision", "request", {"call": ask, **live, "key": ask}, asked, request=(ask, body, "ordinary"))
    recorder.append("decision", "response", {"call": ask, **live}, ended)
    called = {"name": "fetch", "arguments": {"page": number}}
    recorder.append("action", "tool_call", {"call": tool, **live, "key": tool, "effect": "pure"}, called)
    recorder.append("observation", "tool_result", {"call": tool, **live}, {"name": "fetch", "result": result})


def long_text(chance: random.Random, megabytes: int) -> Iterator[bytes]:
    """A JSON string of that size, in parts."""
    yield b'"'
    for _ in range(megabytes):
        yield base64.b64encode(chance.randbytes(PART * 3 // 4))
    yield b'"'
