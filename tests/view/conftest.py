"""The panel's server on a real port, a client that speaks to it as a browser does, and recorders to look at."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import worldline as wl
from tests.conftest import ROOT
from worldline.store.recording import Recording
from worldline.view.page import viewer_page
from worldline.view.routes import PanelRoutes
from worldline.view.server import PanelServer
from worldline.view.shown import Shown

PATIENCE = 120.0  # seconds until a test that waits for an event has failed


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Panel:
    """A server, and requests to it. `ids` are those of the runs that were named."""

    def __init__(self, server: PanelServer, shown: Shown) -> None:
        self.server = server
        self.ids = shown.ids
        self.base = f"/{server.token}/"
        self.origin = f"http://127.0.0.1:{server.port}"

    def ask(self, method: str, target: str, body: bytes | None = None, **headers: str) -> Got:
        """One request; `target` as it stands, header names with `_` for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, target, body, named)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Got(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Got:
        return self.ask("GET", self.base + path, **headers)

    def run(self, path: str, **headers: str) -> Got:
        """Of the first run that was named."""
        return self.get(f"r/{self.ids[0]}/{path}", **headers)

    def post(self, path: str, body: Any, **headers: str) -> Got:
        """As the page posts."""
        own = {"X_Worldline": "1", "Origin": self.origin, "Content_Type": "application/json", **headers}
        return self.ask("POST", self.base + path, json.dumps(body).encode(), **own)

    def raw(self, sent: bytes) -> bytes:
        """Bytes as they are, and what comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def live(self, path: str, **headers: str) -> Events:
        return Events(self, self.base + path, headers)


class Events:
    """Server-Sent Events as they come. A block that ends hangs up."""

    def __init__(self, panel: Panel, target: str, headers: dict[str, str]) -> None:
        self._socket = socket.create_connection(("127.0.0.1", panel.server.port), timeout=PATIENCE)
        named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        host = f"127.0.0.1:{panel.server.port}"
        self._socket.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{named}\r\n".encode())
        self._file = self._socket.makefile("rb")
        head = b"".join(iter(self._file.readline, b"\r\n"))
        assert head.startswith(b"HTTP/1.1 200"), head
        self.rows: list[bytes] = []
        self.states: list[str] = []
        self.last_id = ""

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def more(self) -> bool:
        """Take the next event; False at the end of the stream."""
        kind, data = "message", []
        while line := self._file.readline():
            name, _, value = line.rstrip(b"\n").partition(b": ")
            if line == b"\n":
                break
            if name == b"event":
                kind = value.decode()
            elif name == b"data":
                data.append(value)
            elif name == b"id":
                self.last_id = value.decode()
        if kind == "rows":
            self.rows += [row + b"\n" for row in data]
        elif kind == "state":
            self.states += [value.decode() for value in data]
        return bool(line)

    def until(self, done: Callable[[Events], bool]) -> Events:
        """Take events until `done`."""
        while not done(self):
            assert self.more(), f"the stream ended early: {self.states}, {len(self.rows)} rows"
        return self

    def to_the_end(self) -> Events:
        while self.more():
            pass
        return self


@pytest.fixture
def panel() -> Iterator[Callable[..., Panel]]:
    """Makes servers: of recordings (or their paths), or of a store."""
    servers: list[tuple[PanelServer, PanelRoutes]] = []

    def serve(*named: Recording | Path, store: Path | None = None, program: Sequence[str] | None = None) -> Panel:
        recordings = [each if isinstance(each, Recording) else Recording(each) for each in named]
        made: list[tuple[Shown, PanelRoutes]] = []

        def routes(closing: threading.Event) -> PanelRoutes:
            shown = Shown(recordings, store, closing)
            made.append((shown, PanelRoutes(shown, closing, program)))
            return made[0][1]

        server = PanelServer(viewer_page(), routes)
        servers.append((server, made[0][1]))
        return Panel(server, made[0][0])

    yield serve
    for server, routes in servers:
        server.close()
        routes.close()


class Writer:
    """A recorder in a child process (`tests.view.writer`)."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.view.writer", str(store)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        begun = self.heard("run")
        self.run, self.attempt, self.token = begun["run"], begun["attempt"], begun["token"]

    @property
    def path(self) -> Path:
        return self.store / self.run

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, **words: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        self._process.stdin.flush()

    def heard(self, word: str) -> Any:
        """The next line that says `word`."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if word in (said := json.loads(line)):
                return said
        raise AssertionError(f"the recorder ended before it said {word!r}")

    def do(self, word: str, **words: Any) -> Any:
        self.tell(**words)
        return self.heard(word)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.kill()
        self._process.wait()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """A run that is being recorded."""
    made = Writer(tmp_path / "runs")
    yield made
    made.close()


@wl.tool(effect="pure")
def look(what: str, size: int = 3) -> str:
    if what == "nothing":
        raise LookupError("nothing there")
    return what * size


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sealed run with contents of some types, and steps. Tests read it, and copy it where they write."""
    store = tmp_path_factory.mktemp("view") / "runs"
    with wl.record(store, task="look around", secrets={"KEY": "not-a-real-secret"}) as run:
        for number in range(6):
            with run.step(f"step {number}"):
                look("a", 50_000)
                run.observe(b"<script>parent.stolen = 1</script>", src="dom_full", media_type="text/html")
                run.observe(b"<svg xmlns='http://www.w3.org/2000/svg'/>", src="picture", media_type="image/svg+xml")
                run.permission("denied" if number == 3 else "granted", "net", policy="p")
    assert run.path is not None
    return run.path


def log_of(attempt: Path) -> bytes:
    """The log of an attempt as it stands on the disk."""
    tail = attempt / "tail.jsonl"
    chunks = sorted((attempt / "chunks").glob("*.jsonl"))
    return b"".join(path.read_bytes() for path in [*chunks, *([tail] if tail.exists() else [])])
