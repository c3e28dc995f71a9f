"""Answers that no dialect reads are counted, and a recording with such is not replayed before somebody says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

import worldline as wl
from worldline.engine.fork_point import resume_point
from worldline.engine.tally import Tally
from worldline.engine.unread import Unread, unread

COUNTED = {"body_size": 9, "status": 200}


@pytest.mark.parametrize(
    ("name", "data", "counted"),
    [
        ("bedrock.converse", {}, True),
        ("openai.completions", {}, False),
        ("http", {"status": 201}, True),
        ("http", {"status": 404}, False),
        ("http", {"body_size": 0}, False),
        ("http", {"inputs": {"method": "GET", "path": "/api/chat"}}, False),
        ("http", {"inputs": {"method": "POST", "path": "/v1/files"}}, False),
        ("http", {"inputs": {"method": "POST", "path": "/v1/models/g:streamRawPredict"}}, True),
        ("bedrock.converse", {"error": {"message": "gone"}}, False),
        ("openai.embeddings", {}, False),
        ("openai.moderations", {}, False),
        ("openai.models", {}, False),
        ("gemini.count_tokens", {}, False),
        ("openai.chat", {}, False),
        ("openai.chat", {"headers": [["Content-Encoding", "br"]]}, True),
        ("openai.chat", {"headers": [["Content-Encoding", "GZIP"]]}, False),
        ("gemini.generate", {}, True),
        ("gemini.generate", {"gen_ai.response.finish_reasons": ["STOP"]}, False),
        ("openai.responses.retrieve", {"gen_ai.response.id": "r"}, False),
    ],
)
def test_what_is_counted(name: str, data: dict[str, Any], counted: bool) -> None:
    for parent in (None, "c9"):
        tally = Tally()
        inputs = data.get("inputs", {"method": "POST", "path": "/api/chat"})
        asked = {"name": name, "inputs": inputs}
        tally.add("decision", "request", "main", {"call": "c0", "key": "k", "parent_id": parent}, asked)
        tally.add("decision", "response", "main", {"call": "c0"}, {**COUNTED, **data})
        said = tally.coverage("full")["decision"].get("unread")
        assert said == ({name: 1} if counted and parent is None else None), "what a tool asks for itself is not counted"


@pytest.fixture
def odd_provider() -> Iterator[str]:
    """A provider of an interface that nobody here reads."""

    class Odd(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps({"output": {"message": {"content": [{"toolUse": {"name": "pay"}}]}}}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """The tests' output is for tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("older", [False, True], ids=["counted", "from before it was counted"])
def test_a_recording_with_unread_answers_is_refused_until_somebody_says_run(
    odd_provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", odd_provider)
    paid: list[int] = []

    def agent() -> None:
        with wl.record(tmp_path) as run, httpx.Client() as client:
            for path in ("/v1/embeddings", "/model/m/converse"):
                client.post(run.proxy.openai + path, json={"prompt": "pay"})
            paid.append(5)

    with monkeypatch.context() as before:
        if older:
            before.setattr(Unread, "counts", lambda self: {})
        agent()
    run = wl.open("latest", tmp_path)
    manifest = run.recording.manifest
    assert manifest is not None and run.verify().ok
    assert manifest.coverage["decision"].get("unread") == (None if older else {"bedrock.converse": 1})
    assert unread(run.recording) == {"bedrock.converse": 1}
    (reason,) = run.replay(agent).reasons
    assert "bedrock.converse x1" in reason and "--tools run" in reason and paid == [5]
    for tried in (lambda: run.fork(agent, at="step:1"), lambda: resume_point(run.recording)):
        with pytest.raises(wl.errors.Ineligible, match=r"bedrock\.converse x1"):
            tried()
    assert paid == [5] and run.replay(agent, tools="run").equivalent and paid == [5, 5]
