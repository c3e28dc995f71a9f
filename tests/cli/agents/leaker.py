"""Says everything that plants.json holds in every place where an agent can say something. Over plain HTTP, no SDK.

After each plant it keeps what the recorder shows of its progress, as somebody who looks on would see it.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

import worldline as wl

BASE = os.environ["OPENAI_BASE_URL"]
HEADERS = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}


def ask(model: str, messages: list[Any], stream: bool, note: str) -> dict[str, Any]:
    """The message that the model gives, assembled from its deltas."""
    body = json.dumps({"model": model, "stream": stream, "messages": messages}).encode()
    headers = {**HEADERS, "X-Note": note, "User-Agent": f"leaker {note}"} if note.isascii() else HEADERS
    request = urllib.request.Request(f"{BASE}/chat/completions?page={quote(note, safe='')}", body, headers)
    with urllib.request.urlopen(request) as response:
        answer = response.read().decode()
    if not stream:
        message: dict[str, Any] = json.loads(answer)["choices"][0]["message"]
        return message
    text = arguments = ""
    for line in answer.split("\n"):
        if line.startswith("data: {"):
            for choice in json.loads(line[6:])["choices"]:
                text += choice["delta"].get("content") or ""
                for call in choice["delta"].get("tool_calls") or ():
                    arguments += call["function"].get("arguments") or ""
    return {"content": text, "arguments": arguments}


@wl.tool(effect="idempotent", idempotency_key=lambda path: path)
def read_file(path: str) -> dict[str, Any]:
    return {"path": path, "lines": [path, path.encode()], path: True}


@wl.tool(effect="pure")
def fails(text: str) -> None:
    raise FileNotFoundError(2, f"no such thing: {text} :end", f"/tmp/{text}")


@wl.tool(effect="pure")
def large(text: str) -> str:
    """Large enough to be a content of its own."""
    return "before, " * 6000 + text + " :end" + ", after" * 6000


def plant(name: str, text: str) -> None:
    said = f"{name}: {text} :end"
    with wl.step(said):
        answer = ask("streams", [{"role": "user", "content": said}], stream=True, note=text)
        assert answer["content"] == said
        path = json.loads(answer["arguments"])["path"]
        assert path == f"/tmp/{text}/x.txt"
        read_file(path)
        large(text)
        try:
            fails(text)
        except FileNotFoundError as error:
            result = {"role": "tool", "tool_call_id": "call_1", "content": str(error)}
        called = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "read_file", "arguments": answer["arguments"]},
        }
        more = [{"role": "assistant", "content": answer["content"], "tool_calls": [called]}, result]
        assert ask("whole", [{"role": "user", "content": said}, *more], stream=False, note=text)["content"] == said
        try:
            ask("refuses", [{"role": "user", "content": said}], stream=False, note=text)
        except urllib.error.HTTPError as error:
            assert json.loads(error.read())["error"]["message"] == f"not with {text} :end"
    wl.observe({"text": said, "bytes": said.encode()}, src="terminal", name=said)
    picture = Path("picture.png").read_bytes().replace(b"C" * 400, said.encode().ljust(400))
    wl.observe(picture, src="file")
    wl.observe(picture, src="screenshot", name=name, media_type="image/png")
    wl.permission("denied", f"read {text}", who=said)
    with wl.lane(said[:200]):
        read_file("in another lane")
    for number, progress in enumerate(Path(".worldline/runs").rglob("progress.json")):
        Path(f"seen-{name.replace(' ', '-').replace('/', '-')}-{number}.json").write_bytes(progress.read_bytes())


for name, text in json.loads(Path("plants.json").read_text()).items():
    plant(name, text)
wl.observe(Path("picture.png").read_bytes(), src="screenshot", media_type="image/png")
wl.outcome("succeeded", note=dict(json.loads(Path("plants.json").read_text())))
