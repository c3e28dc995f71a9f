"""A bundle behind a URL whose server is no friend: every lie about a range ends in an error of ours, or is passed over.

What the server sends beyond the range that was asked for is not read.
"""

from __future__ import annotations

import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.store import hostile
from tests.store.hostile import defects, remade
from worldline.errors import Damaged, NotARecording, ReadError, UsageError, WorldlineError
from worldline.store.bundle.container import EVENTS, INDEX, MANIFEST
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.verify import verify

REFUSED = (NotARecording, Damaged, ReadError, UsageError)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    pack(hostile.recorded(folder / "runs"), folder / "good.skn")
    return folder / "good.skn"


class Answering(BaseHTTPRequestHandler):
    """Answers ranges of `data`, in the way that the path names."""

    protocol_version = "HTTP/1.1"
    data = b""
    asked = 0
    ways: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        way, cls = self.path.strip("/"), type(self)
        cls.asked += 1
        self.ways[way] += 1
        first, last = (int(text) for text in self.headers["Range"].removeprefix("bytes=").split("-"))
        part, total = self.data[first : last + 1], str(len(self.data))
        if way == "grows" and cls.asked > 1:
            total = str(len(self.data) + 1)
        total = {"huge": "9" * 5000, "large": str(1 << 62), "no-number": "x", "negative": "-5"}.get(way, total)
        begins = {"elsewhere": first + 1, "huge-begin": "9" * 4000}.get(way, first)
        if way in ("less", "large"):
            part = part[: len(part) // 2]
        if way == "nothing":
            part = b""
        self.send_response({"moved": 302, "error": 500, "whole": 200}.get(way, 206))
        if way == "moved":
            self.send_header("Location", "/good")
        self.send_header("Content-Range", f"bytes {begins}-{last}/{total}")
        if way == "more":
            part += b"x" * 100_000
        if way == "cut":
            self.send_header("Content-Length", str(len(part) + 10))
            self.close_connection = True
        elif way != "until-closed":
            self.send_header("Content-Length", str(len(part)))
        else:
            self.close_connection = True
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *args: object) -> None: ...


class Server(ThreadingHTTPServer):
    """A server that is left in the middle of an answer, and says nothing of it."""

    daemon_threads = True

    def handle_error(self, *args: object) -> None: ...


@pytest.fixture
def serve() -> Iterator[Callable[[bytes], str]]:
    """Serves bytes under the URL that it returns."""
    servers: list[Server] = []

    def start(data: bytes) -> str:
        handler = type("Handler", (Answering,), {"data": data})
        server = Server(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


WAYS = ["elsewhere", "huge-begin", "huge", "large", "no-number", "negative", "less", "nothing", "moved", "error"]


@pytest.mark.parametrize("way", [*WAYS, "whole", "grows"])
def test_a_server_that_lies(way: str, bundle: Path, serve: Callable[[bytes], str], tmp_path: Path) -> None:
    url = serve(bundle.read_bytes())
    assert verify(PackedRecording(f"{url}/good")).ok
    with pytest.raises(REFUSED):
        assert verify(PackedRecording(f"{url}/{way}")).ok
    before = sorted(tmp_path.rglob("*"))
    assert defects(f"{url}/{way}") == [] and sorted(tmp_path.rglob("*")) == before
    assert Answering.ways[way] > 2


@pytest.mark.parametrize("way", ["more", "until-closed", "cut"])
def test_a_server_that_says_more_is_read_no_further(way: str, bundle: Path, serve: Callable[[bytes], str]) -> None:
    assert verify(PackedRecording(f"{serve(bundle.read_bytes())}/{way}")).ok


def test_hostile_bytes_behind_a_url(bundle: Path, serve: Callable[[bytes], str]) -> None:
    good = bundle.read_bytes()
    lying = good[:-58] + struct.pack("<Q", 1 << 50) + good[-50:]  # the directory's size
    for data in (b"", b"x", good[:-1], good + b"x", b"x" + good, good[:-22] * 2, lying):
        url = serve(data)
        with pytest.raises(REFUSED):
            open_recording(f"{url}/x.skn")
        assert defects(f"{url}/x.skn", [["show"], ["verify"]]) == []
    for entry in (EVENTS, INDEX, MANIFEST):
        url = serve(remade(bundle, {entry: b"\0" * 100}))
        assert not verify(PackedRecording(f"{url}/x.skn")).ok
        assert defects(f"{url}/x.skn") == []


URLS = ["http://", "http://[", "http://[::1", "http://127.0.0.1:99999/", "http://127.0.0.1:x/", "http://127.0.0.1:0/"]


@pytest.mark.parametrize(
    "url", [*URLS, "http://a b/", "http://127.0.0.1:9/\r\nX: y", "http://127.0.0.1:9/ä", "https://"]
)
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(WorldlineError):
        open_recording(url)
    assert defects(url, [["show"], ["verify"]]) == []
