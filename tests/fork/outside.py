"""The world outside an agent, on loopback: a shop over HTTP and a mail server, both real, both counting."""

from __future__ import annotations

import socketserver
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass
class Outside:
    """What happened: the paths that were posted to, and the recipients of mails, in order."""

    posted: list[str] = field(default_factory=list)
    mailed: list[str] = field(default_factory=list)
    hold: threading.Event | None = None  # while it is set, the shop has done its work and does not answer
    reached: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        outside = self

        class Shop(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outside.posted.append(self.path)
                outside.reached.set()
                if outside.hold is not None:
                    outside.hold.wait(30)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(f"done {len(outside.posted)}".encode())

            def log_message(self, *_: object) -> None: ...

        class Mail(socketserver.StreamRequestHandler):
            """As much of RFC 5321 as `smtplib` speaks when it sends."""

            def handle(self) -> None:
                self.wfile.write(b"220 mail ready\r\n")
                recipient, inside = "", False
                for raw in self.rfile:
                    line = raw.decode().rstrip("\r\n")
                    word = line[:4].upper()
                    if inside:
                        if line == ".":
                            inside = False
                            outside.mailed.append(recipient)
                            self.wfile.write(b"250 sent\r\n")
                    elif word == "RCPT":
                        recipient = line.partition("<")[2].partition(">")[0]
                        self.wfile.write(b"250 ok\r\n")
                    elif word == "DATA":
                        inside = True
                        self.wfile.write(b"354 go on\r\n")
                    elif word == "QUIT":
                        self.wfile.write(b"221 bye\r\n")
                        return
                    else:
                        self.wfile.write(b"250 ok\r\n")

        class Threaded(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        ThreadingHTTPServer.daemon_threads = True
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), Shop), Threaded(("127.0.0.1", 0), Mail)]
        self._threads = [threading.Thread(target=server.serve_forever, args=[0.02]) for server in self._servers]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server, thread in zip(self._servers, self._threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """Where an agent finds it."""
        shop, mail = (server.server_address[1] for server in self._servers)
        return {"SHOP": f"http://127.0.0.1:{shop}", "MAIL_PORT": str(mail)}

    @property
    def did(self) -> tuple[list[str], list[str]]:
        """All of it so far."""
        return list(self.posted), list(self.mailed)
