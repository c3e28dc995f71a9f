"""Large recordings for the bench: 100,000 and 1,000,000 rows of a browser agent, about 1 KB each, through the real
recorder and packer. Nothing waits for the disk while they are made.

Thirty rows a step: a decision, a tool, a tree, requests, console lines, the agent's state. Pictures at every tenth step
(each another, so that thumbnails are). Every so often a denial; at the end one, and the failure it leads to.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from benchmarks.events import SAID, unsynced
from tests.panel.runs.gaps import Waiting, waiting
from tests.panel.runs.minds import bundled
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store.recording import Recording

SIZES = {"big-100k": 100_000, "big-1m": 1_000_000}
ROWS = 25  # of one step
PICTURES = 120
TOOLS = ("browser.click", "browser.fill", "browser.goto", "orders.read", "stock.count")
WORDS = SAID.split()
NEEDLE = "needle-in-the-middle"


class Writer:
    """Writes the rows of steps as the door writes them."""

    def __init__(self, recorder: Recorder, wait: Waiting) -> None:
        self._recorder = recorder
        self._wait = wait
        self._chance = random.Random(11)
        self._texts = [" ".join(self._chance.choices(WORDS, k=190)) for _ in range(512)]
        self._pictures: list[dict[str, Any]] = []

    def text(self, size: int) -> str:
        """Words, about that many characters of them; no two rows have the same."""
        whole = self._chance.choice(self._texts)
        return whole[self._chance.randrange(120) :][:size]

    def step(self, number: int, fails: bool = False, denied: bool = False) -> int:
        """One step. Returns how many rows it has."""
        tool = TOOLS[number % len(TOOLS)]
        arguments = {"ref": f"e{number % 90}", "role": "button", "name": f"Order {number}", "text": self.text(60)}
        begin = self._recorder.log.seq
        self._decision(number, tool, arguments)
        call = {"call": f"t{number}", "mode": "live"}
        self._row(
            "action", "tool_call", {**call, "key": f"t{number}", "effect": "pure"}, name=tool, arguments=arguments
        )
        if denied:
            rule = {"policy": "money-over-50", "by": "policy v3", "id": f"p{number}"}
            self._row("permission", "requested", {}, capability="http.post", facts={"id": f"p{number}", "cents": 6400})
            self._row("permission", "denied", {}, capability="http.post", facts=rule)
        for request in range(11):
            self._network(number, request)
        for _ in range(3):
            level = self._chance.choices(("log", "info", "warning", "error"), (70, 20, 8, 2))[0]
            self._observed(
                "console", {"level": level, "text": self.text(700), "url": "http://desk.test/desk.js", "line": 7}
            )
        error = {"type": "TimeoutError", "message": "element is disabled", "args": [], "attributes": None}
        ended = {"error": error} if fails else {"result": {"ok": True, "text": self.text(700)}}
        self._wait.wait(self._chance.uniform(0.1, 1.5))
        self._row("observation", "tool_result", call, name=tool, elapsed_ns=10**9, **ended)
        self._observed(
            "window", {"url": f"http://desk.test/orders/{number}", "title": "Order", "width": 1280, "height": 800}
        )
        self._observed("a11y_full", self._tree(number))
        if number % 10 == 0:
            self._observed("screenshot", {"$blob": self._picture(number)["$blob"]})
        self._observed("state", {"budget": number, "plan": [{"step": self.text(50), "status": "open"}] * 5})
        if number % 200 == 199:
            self._wait.wait(self._chance.uniform(10, 4000))
        return self._recorder.log.seq - begin

    def _decision(self, number: int, tool: str, arguments: dict[str, Any]) -> None:
        call = {"call": f"a{number}", "mode": "live"}
        body = json.dumps({"model": "m-1", "messages": [{"role": "user", "content": self.text(500)}]}).encode()
        asked = {"name": "openai.chat", "inputs": {"method": "POST", "path": "/chat/completions", "query": []}}
        asked |= {"gen_ai.request.model": "m-1", "gen_ai.request.seed": 41}
        self._recorder.append(
            "decision", "request", {**call, "key": f"a{number}"}, asked, request=(f"a{number}", body, "ordinary")
        )
        self._wait.wait(self._chance.uniform(0.2, 2.5))
        said = self.text(200) + (f" {NEEDLE}" if number % 3001 == 1500 else "")
        asks = [
            {"id": f"u{number}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        ]
        message = {"role": "assistant", "content": said, "tool_calls": asks}
        answer = {
            "id": "1",
            "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        }
        facts = {"status": 200, "reason": "OK", "headers": [], "framing": "length", "complete": True}
        facts |= {"gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 40}
        self._row("decision", "response", call, body=json.dumps(answer), **facts)

    def _network(self, number: int, request: int) -> None:
        self._wait.wait(self._chance.uniform(0.01, 0.2))
        status = self._chance.choices((200, 304, 404, 503), (90, 6, 3, 1))[0]
        url = f"http://desk.test/api/{number}/{request}?q={self.text(820).replace(' ', '+')}"
        said = {"method": "GET", "url": url, "status": status, "ms": 31.5, "size": 2048, "type": "fetch"}
        self._observed("network", said)

    def _tree(self, number: int) -> dict[str, Any]:
        nodes = [
            {"role": "button", "name": f"{self.text(12)} {n}", "ref": f"e{n}", "box": [20 * n, 12 * n, 90, 30]}
            for n in range(number % 90, number % 90 + 14)
        ]
        return {"role": "document", "name": f"Order {number}", "ref": "e0", "box": [0, 0, 1280, 800], "children": nodes}

    def _picture(self, number: int) -> dict[str, Any]:
        if len(self._pictures) < PICTURES:
            blob = self._recorder.keep.blobs.put(picture(number, self._chance), "image/png")
            self._pictures.append(blob.reference())
        return self._pictures[number // 10 % PICTURES]

    def _observed(self, src: str, value: Any) -> None:
        self._row("observation", src, {}, name=None, value=value)

    def _row(self, kind: str, src: str, keys: dict[str, Any], **data: Any) -> None:
        self._recorder.append(kind, src, keys, data)


def picture(number: int, chance: random.Random) -> bytes:
    """A page as it might look, 1280 by 800, each another."""
    image = Image.new("RGB", (1280, 800), "#f6f8fb")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 1280, 60), fill=("#23408e", "#2d6a4f", "#5b3a8e")[number // 10 % 3])
    draw.text((30, 20), f"Order {number}", fill="white", font_size=22)
    for line in range(24):
        y = 90 + line * 28
        draw.text((40, y), " ".join(chance.choices(WORDS, k=9)), fill="#1b2430", font_size=15)
        draw.rectangle((900, y, 900 + chance.randrange(40, 300), y + 12), fill="#b8c2d0")
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def steps(writer: Writer, rows: int) -> Iterator[int]:
    """Steps until there are that many rows; the last two are a denial and a failure."""
    number = count = 0
    while count < rows - 2 * ROWS:
        count += writer.step(number, fails=number % 977 == 500, denied=number % 1409 == 700)
        number += 1
        yield count
    writer.step(number, denied=True)
    writer.step(number + 1, fails=True)


def record(store: Path, rows: int) -> Path:
    """Record that many rows, and seal. Returns the attempt."""
    with unsynced(), waiting() as wait:
        recorder = Recorder(Spec(store=store, task=f"{rows:,} rows", agent={"name": "big-agent"}))
        for _ in steps(Writer(recorder, wait), rows):
            pass
        recorder.outcome |= {"outcome": "failed", "error": "TimeoutError: element is disabled"}
        recorder.seal()
        return recorder.attempt


def bundle(folder: Path, name: str) -> Path:
    """One of `SIZES`, made where it is not there yet."""
    target = folder / f"{name}.skn"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with unsynced():
            attempt = record(folder / "runs-big", SIZES[name])
            bundled(Recording(attempt).path, target)
    return target
