"""A browser opens a bundle over ranges with what it has by itself, and finds seal and chain as they were made."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import worldline as wl
from tests.conftest import require
from worldline.store.bundle.pack import pack
from worldline.store.recording import Recording

PAGE = Path(__file__).parent / "browser" / "read.html"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
)


@wl.tool(effect="pure")
def first_question(text: str) -> str:
    return text * 2


@contextmanager
def serving(bundle: Path) -> Iterator[tuple[str, queue.Queue[dict[str, Any]]]]:
    """The page, the bundle in ranges, and what the page said."""
    said: queue.Queue[dict[str, Any]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/page":
                self.answer(200, PAGE.read_bytes(), "text/html; charset=utf-8")
            elif self.path == "/run.skn" and (asked := self.headers.get("Range")):
                first, last = map(int, asked.removeprefix("bytes=").split("-"))
                self.answer(206, bundle.read_bytes()[first : last + 1], "application/zip", first)
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            said.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.answer(204, b"", "text/plain")

        def answer(self, status: int, body: bytes, media_type: str, first: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            if first is not None:
                end = first + len(body) - 1
                self.send_header("Content-Range", f"bytes {first}-{end}/{bundle.stat().st_size}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page", said
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_browser_reads_the_first_block_and_checks_it(tmp_path: Path) -> None:
    browser = next((found for name in NAMES if (found := shutil.which(name))), None)
    require("chromium", browser, "opens a bundle as a page does")
    with wl.record(tmp_path / "runs") as run:
        for number in range(300):
            first_question(f"{number}: " + "what was that again? " * 200)
    assert run.path is not None
    recording, bundle = Recording(run.path), tmp_path / "run.skn"
    pack(recording, bundle)
    with serving(bundle) as (url, said):
        command = [str(browser), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", url]
        page = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            found = said.get(timeout=240)
        finally:
            page.terminate()
            page.wait(timeout=120)
    assert found.get("sealed") is True, found
    assert (found["seal"], found["first"]) == (recording.fingerprint, "first_question")
    assert 10 < found["rows"] < 600 and found["fetched"] < found["total"] / 2
