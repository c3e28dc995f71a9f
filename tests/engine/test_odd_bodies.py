"""Odd HTTP bodies through the proxy: both sides see the very bytes, the record has them, a replay gives them."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

import worldline
from worldline.engine.replay import inspect

TEXTS = ["\\ud800", "a\\udfffb", "\\u0000", "\u2028", "\\r\\n", "\\u007f\x7f", "\\ud83d\\ude00😀", "\\/"]
NUMBERS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "18446744073709551616",
    "1e400",
    "-0.0",
    "9" * 5000,
    "1E2",
    "9007199254740993",
]


def bodies() -> dict[str, bytes]:
    """Requests or answers in the shape of chat completions, with something odd inside."""
    found = {f"text {number}": chat(f'"{text}"', "1") for number, text in enumerate(TEXTS)}
    found |= {f"number {number}": chat('"x"', text) for number, text in enumerate(NUMBERS)}
    found["deep"] = chat("[" * 5000 + "]" * 5000, "1")
    found["repeated keys"] = chat('"x"', '1,"n":2,"messages":[1]')
    found["encoded surrogate"] = chat('"x"', "1").replace(b"x", b"\xed\xa0\x80")
    found["no utf-8"] = chat('"x"', "1").replace(b"x", b"\xff\xfe\x00")
    found["byte order mark"] = b"\xef\xbb\xbf" + chat('"x"', "1")
    found["white space"] = b"\r\n " + chat('"y"', "1").replace(b",", b"\t,\r\n") + b"\n\n"
    found |= {
        "empty": b"",
        "no json": b"{'a'",
        "a number": b"18446744073709551617",
        "null": b"null",
        "zeros": bytes(90_000),
    }
    return found


def chat(content: str, number: str) -> bytes:
    message = f'{{"role":"assistant","content":{content},"tool_calls":[{{"id":"c1","type":"function",'
    message += f'"function":{{"name":"t","arguments":{json.dumps(number)}}}}}]}}'
    text = f'{{"model":"m","messages":[{message}],"choices":[{{"index":0,"message":{message}}}],"n":{number}}}'
    return text.encode("utf-8", "surrogatepass")


BODIES = bodies()


class Echo(BaseHTTPRequestHandler):
    """Answers with the request's own body, and keeps it."""

    protocol_version = "HTTP/1.1"
    seen: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """A server that answers with what it was asked; gives what it has seen."""
    Echo.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    yield Echo.seen
    server.shutdown()
    server.server_close()
    thread.join()


def ask(base: str, names: list[str]) -> dict[str, bytes]:
    parts, answers = urlsplit(base), {}
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port)) as connection:
        for name in names:
            target = f"{parts.path}/chat/completions"
            connection.request("POST", target, BODIES[name], {"Content-Type": "application/json"})
            with connection.getresponse() as response:
                answers[name] = response.read()
            assert response.status == 200, answers[name]
    return answers


def base() -> str:
    run = worldline.current()
    assert run is not None
    return run.proxy.openai


def test_every_odd_body_is_recorded_shown_and_replayed(tmp_path: Path, upstream: list[bytes]) -> None:
    names = list(BODIES)
    with worldline.record(tmp_path) as run:
        assert ask(base(), names) == BODIES
    assert upstream == list(BODIES.values())
    assert run.path is not None
    recorded = worldline.open(run.path)
    cassette = recorded.cassette
    assert [cassette.request(exchange) for exchange in cassette.exchanges] == list(BODIES.values())
    assert [cassette.body(exchange) for exchange in cassette.exchanges] == list(BODIES.values())
    assert inspect(recorded.recording).contexts == len(BODIES) and recorded.verify().ok

    again: dict[str, bytes] = {}
    report = recorded.replay(lambda: again.update(ask(base(), names)))
    assert report.equivalent, (report.first_divergence, report.notes)
    assert again == BODIES and len(upstream) == len(BODIES), "nothing went out"

    shown = show(run.path, "--json")
    strict(shown)
    assert len(strict(shown)["steps"]) == len(BODIES)
    for odd in ("text 0", "number 0", "deep", "no utf-8"):
        show(run.path, "--step", str(names.index(odd)))


def test_no_odd_body_is_taken_for_another(keys: dict[str, str]) -> None:
    alike = {frozenset((one, other)) for one in keys for other in keys if one < other and keys[one] == keys[other]}
    assert not alike


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    from worldline.engine.boundary import keyed
    from worldline.seams.wire.exchange import call_of
    from worldline.store.secrets.vault import Vault

    return {
        name: keyed(call_of("POST", "/chat/completions", (), body, lambda value: None), Vault()).key
        for name, body in BODIES.items()
    }


def test_a_changed_odd_body_diverges_and_the_report_is_strict_json(tmp_path: Path, upstream: list[bytes]) -> None:
    with worldline.record(tmp_path) as run:
        ask(base(), ["text 0"])
    assert run.path is not None
    for other in ("number 0", "text 1", "deep", "no utf-8", "zeros"):
        report = worldline.open(run.path).replay(lambda other=other: ask(base(), [other]))  # type: ignore[misc]
        assert report.verdict == "diverged" and report.divergence is not None and report.divergence.kind == "changed"
        script = tmp_path / "agent.py"
        script.write_text(
            "import os, http.client as h, urllib.parse as u\n"
            "p = u.urlsplit(os.environ['OPENAI_BASE_URL']); c = h.HTTPConnection(p.hostname, p.port)\n"
            f"c.request('POST', p.path + '/chat/completions', {BODIES[other]!r})\nc.getresponse().read()\n"
        )
        done = subprocess.run(
            [sys.executable, "-m", "worldline", "replay", "--json", str(run.path), "--", sys.executable, str(script)],
            capture_output=True, check=False, timeout=240,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr.decode()
        assert strict(done.stdout.decode())["divergence"]["kind"] == "changed"
    assert len(upstream) == 1


def show(path: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "worldline", "show", str(path), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=420, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8")


def strict(text: str) -> Any:
    """JSON as every strict reader takes it."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is no JSON")

    msgspec.json.decode(text.encode("utf-8"))
    return json.loads(text, parse_constant=refuse)
