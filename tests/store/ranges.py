"""A file on a loopback server that answers ranges, and a count of the bytes that it sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def served(file: Path) -> Iterator[tuple[str, list[int]]]:
    """Its URL without the name, and the size of each answer. `/missing.skn` is not there, `/whole.skn` has no range."""
    sent: list[int] = []

    class Ranges(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/missing.skn":
                self.send_error(404)
                return
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            if self.path == "/whole.skn":
                first, last = 0, file.stat().st_size
            with file.open("rb") as opened:
                opened.seek(first)
                part = opened.read(last + 1 - first)
            self.send_response(200 if self.path == "/whole.skn" else 206)
            if self.path != "/whole.skn":
                self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{file.stat().st_size}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)
            sent.append(len(part))

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", sent
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
