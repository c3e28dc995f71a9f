"""The proxy before a server over streamable HTTP, for clients over pipes and over HTTP, recorded and replayed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.fork.outside import Outside
from tests.mcp.pipe import pipe
from tests.mcp.scene import SHOP, Guest, proxied
from worldline.engine.spec import Spec
from worldline.seams.session import RecordingSession, ReplaySession
from worldline.store.catalog import find
from worldline.store.recording import Recording

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
TOKEN = "obviously-" * 2 + "fake"


@contextmanager
def shop_over_http(kind: str = "stateful", **variables: str) -> Iterator[str]:
    """The shop, on a port of its own; its URL."""
    with running([*SHOP, kind], variables) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"


@contextmanager
def listening(url: str, run: str, *options: str) -> Iterator[str]:
    """A proxy that listens; its URL."""
    words = [sys.executable, "-m", "worldline", "mcp", "--http", url, "--name", "shop", "--listen", "0", *options]
    with running(words, {"WORLDLINE_URL": run}) as process:
        assert process.stderr is not None
        found = next(found for line in process.stderr if (found := re.search(rb"listening on (\S+)", line)))
        yield found[1].decode()


@contextmanager
def running(words: list[str], variables: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


async def test_a_client_sees_the_same_through_a_proxy_of_http_and_on_a_replay(tmp_path: Path) -> None:
    """Recorded over pipes it is replayed over HTTP, and the other way round: the record knows no transport."""
    store = tmp_path / "runs"
    with Outside() as outside, shop_over_http(**outside.environment) as url:
        plain, piped, heard, modern, traced = Guest(), Guest(), Guest(), Guest(), Guest()
        async with plain.at(url, mode="legacy") as client:
            await plain.visit(client)
        async with streamed(url) as server, modern.at(server) as client:
            await modern.visit_modern(client)

        outside.posted.clear()
        session = RecordingSession(Spec(store=store, task="piped"), os.environ)
        async with piped.at(over_pipes(url, session.proxy.url), mode="legacy") as client:
            await piped.visit(client)
        session.close()

        outside.posted.clear()
        session = RecordingSession(Spec(store=store, task="heard", secrets={"TOKEN": TOKEN}), os.environ)
        with listening(url, session.proxy.url) as proxy:
            async with heard.at(proxy, mode="legacy") as client:
                await heard.visit(client)
            async with streamed(proxy) as server, traced.at(server) as client:
                await traced.visit_modern(client)
        session.close()
    assert piped.seen == plain.seen
    assert heard.seen == plain.seen
    assert traced.seen == modern.seen
    assert modern.seen[-1]["structuredContent"] == {"result": True}, "the token came to the server"
    assert not [path for path in store.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]

    replay, first, second = ReplaySession(found(store, "piped"), os.environ), Guest(), Guest()
    with listening(url, replay.proxy.url) as proxy:
        async with first.at(proxy, mode="legacy") as client:
            await first.visit(client)
    assert first.seen == plain.seen
    assert (report := replay.close(0)).equivalent, report.first_divergence
    replay = ReplaySession(found(store, "heard"), os.environ)
    async with second.at(over_pipes(url, replay.proxy.url), mode="legacy") as client:
        await second.visit(client)
    second.seen.clear()
    async with second.at(over_pipes(url, replay.proxy.url)) as client:
        await second.visit_modern(client)
    assert second.seen == modern.seen
    assert (report := replay.close(0)).equivalent, report.first_divergence


def over_pipes(url: str, run: str) -> StdioServerParameters:
    return proxied((), "--name", "shop", "--http", url, WORLDLINE_URL=run)


@asynccontextmanager
async def streamed(url: str) -> AsyncIterator[Any]:
    """A transport that shows a token."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        yield streamable_http_client(url, http_client=client)


def found(store: Path, task: str) -> Recording:
    return find(str(next(path.parent for path in store.glob(f"*/{task}.json"))), store)


async def test_what_a_server_refuses_over_http_is_refused_the_same_way_live_and_on_a_replay(tmp_path: Path) -> None:
    """401, a session that is gone, a server that is not there; and a page of another origin."""
    with Refusing() as server:
        session = RecordingSession(Spec(store=tmp_path / "runs"), os.environ)
        with listening(server.url, session.proxy.url) as proxy:
            live = [await post(proxy, "initialize"), await post(proxy, "tools/list")]
            assert (await post(proxy, "tools/list", {"Mcp-Session-Id": "gone"})).status_code == 404
            assert (await post(proxy, "tools/list", {"Origin": "https://elsewhere.example"})).status_code == 403
            assert (await post(proxy, None)).status_code == 400
        session.close()
    assert live[0].status_code == 401
    assert live[0].headers["WWW-Authenticate"] == "Bearer"
    assert live[1].json()["error"]["message"].startswith("shop gave no answer")
    replay = ReplaySession(find("latest", tmp_path / "runs"), os.environ)
    with listening(server.url, replay.proxy.url) as proxy:
        served = [await post(proxy, "initialize"), await post(proxy, "tools/list")]
    assert [(each.status_code, each.content) for each in served] == [(each.status_code, each.content) for each in live]
    assert served[0].headers["WWW-Authenticate"] == "Bearer"
    assert replay.close(0).equivalent


async def test_a_stream_that_breaks_is_resumed_behind_its_last_event(tmp_path: Path) -> None:
    with Refusing() as server:
        async with pipe("--http", server.url, server=()) as client:
            assert await client.ask("resume") == {"events": ["7"]}


async def post(url: str, method: str | None, headers: dict[str, str] | None = None) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}} if method else [1]
    async with httpx2.AsyncClient(timeout=60) as client:
        return await client.post(
            url, json=body, headers={"Accept": "application/json, text/event-stream", **(headers or {})}
        )


class Refusing:
    """A server that wants a token for a handshake, and hangs up on everything else."""

    def __enter__(self) -> Refusing:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if asked["method"] == "resume":
                    self.stream(b"id: 7\nretry: 0\ndata: \n\n")
                    return
                if asked["method"] != "initialize":
                    self.close_connection = True
                    return
                self.send_response(401)
                for name, value in (("WWW-Authenticate", "Bearer"), ("Content-Length", "4")):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"who?")

            def do_GET(self) -> None:
                result = {"jsonrpc": "2.0", "id": 1, "result": {"events": [self.headers["Last-Event-ID"]]}}
                self.stream(b"data: " + json.dumps(result).encode() + b"\n\n")

            def stream(self, data: bytes) -> None:
                self.close_connection = True
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/mcp"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
