"""The server behind the panel: this machine's browser, this run, and nobody else.

    http://127.0.0.1:PORT/<token>/...

It listens on the loopback interface alone. A request gets an answer only if it names this address as its host (a
foreign name that resolves here is refused), comes from no other origin, and knows the token; all else is 403 or 404 and
says nothing. What goes out may be kept, framed, embedded and run nowhere: the page is the only thing that runs, under a
content security policy that is stricter than its own.
"""

from __future__ import annotations

import logging
import re
import select
import socket
import threading
from collections.abc import Callable, Mapping
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec

from worldline.engine import clock
from worldline.errors import PortInUse, ReadError, UsageError, WorldlineError
from worldline.view.answers import JSON, Answer, Bytes, Held, Stream, missing, refused, said
from worldline.view.ranges import Unsatisfiable, wanted

HOST = "127.0.0.1"
IDLE_SECONDS = 30.0  # for the next request of a connection, and for a client that takes nothing more
MOST_BODY = 64 * 1024  # bytes of a request
MOST_CONNECTIONS = 256
_GUARD = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_NOTHING_RUNS = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
_OWN_POLICY = re.compile(r"<meta http-equiv=\"Content-Security-Policy\" content=\"([^\"]*)\">")
_log = logging.getLogger("worldline")


class Routes(Protocol):
    """What is behind the token. `get` and `post` answer by the words of the path; both raise `WorldlineError`."""

    def get(self, path: list[str], query: Mapping[str, str], headers: Mapping[str, str]) -> Answer | None:
        """The answer to a GET or HEAD; None where nothing is."""

    def post(self, path: list[str], body: Mapping[str, Any]) -> Answer | None:
        """The answer to a POST; None where nothing is."""


class PanelServer:
    """Serves `page` and what `routes` gives, from a thread of its own, until it is closed. Raises `PortInUse`."""

    def __init__(self, page: bytes, routes: Callable[[threading.Event], Routes], port: int = 0) -> None:
        self.token = clock.token()
        self.closing = threading.Event()
        self.page = page
        self.policy = policy_of(page)
        self.routes = routes(self.closing)
        self._once: str | None = clock.token()
        self._lock = threading.Lock()
        try:
            self._server = _Server((HOST, port), _Handler)
        except OSError as error:
            raise PortInUse(
                f"port {port} is taken: {error.strerror}; leave --port out to get a free one", port=port
            ) from (error)
        self._server.panel = self
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="worldline-view", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the page is, for people."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    @property
    def opener(self) -> str:
        """Where a browser is sent: it leads to the page once. Other users may see a browser's command line."""
        return f"http://{HOST}:{self.port}/{self._once}"

    def opens(self, word: str) -> bool:
        """Whether `word` is the one that leads to the page, for the first time."""
        with self._lock:
            right = self._once is not None and compare_digest(word.encode("latin-1"), self._once.encode("ascii"))
            self._once = None if right else self._once
            return right

    def close(self) -> None:
        """Stop: no new connection, and what goes on is told to end."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def policy_of(page: bytes) -> str:
    """The policy for the page: what it says itself of scripts, and connections to this server alone."""
    found = _OWN_POLICY.search(page[: 16 * 1024].decode("utf-8", "replace"))
    own = dict(part.strip().partition(" ")[::2] for part in found[1].split(";")) if found else {}
    scripts = own.get("script-src", "'none'")
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src blob: data:; media-src blob:; "
        "font-src data:; worker-src blob:; frame-src blob: data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    panel: PanelServer

    def __init__(self, *arguments: Any) -> None:
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("a connection to the panel's server broke", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: _Server
    connection: socket.socket

    def do_GET(self) -> None:
        """GET, and HEAD but for the body."""
        self._guarded(self._get)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """POST: of the page alone."""
        self._guarded(self._post)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the parser refuses."""
        self.close_connection = True
        self._give(said({"error": "bad-request", "what": message or "not a request of the panel"}, code))

    def version_string(self) -> str:
        """What answers, and no more of it."""
        return "worldline"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's word
        """Nothing: the paths hold the token."""

    def _guarded(self, answer: Callable[[list[str], dict[str, str]], Answer | None]) -> None:
        where = "the panel"
        try:
            path, query = self._path()
            if path is None:
                return
            where = "/".join(path) or "the page"
            given = answer(path, query)
        except WorldlineError as error:
            given = refused(error, where)
        except (ConnectionError, TimeoutError):
            raise
        except OSError as error:
            given = missing("lost", f"{error.filename or where}: {error.strerror}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the page is owed an answer; the log has it
            _log.exception("a defect of worldline, in the panel's server")
            self.close_connection = True
            told = {"error": "defect", "what": f"a defect of worldline: {type(error).__name__}", "where": where}
            given = said({**told, "todo": "Its terminal says more."}, 500)
        self._give(given if given is not None else said({"error": "no-route", "what": f"nothing at {where}"}, 404))

    def _path(self) -> tuple[list[str] | None, dict[str, str]]:
        """The words of the path behind the token; None where the request was refused already."""
        panel = self.server.panel
        path, _, query = self.path.partition("?")
        _, token, *words = [*path.split("/"), ""] if path.startswith("/") else ["", "", ""]
        hosts = self.headers.get_all("Host") or []
        own = (f"{HOST}:{panel.port}", f"localhost:{panel.port}")
        if len(hosts) != 1 or hosts[0].strip().lower() not in own or not self._same_origin(words, hosts[0].strip()):
            self._refuse(403)
        elif path.count("/") == 1 and self.command == "GET" and panel.opens(token):
            self._give(Bytes(Held(b""), "text/plain", status=303, headers={"Location": f"/{panel.token}/"}))
        elif not compare_digest(token.encode("latin-1", "replace"), panel.token.encode("ascii")):
            self._refuse(404)
        elif path == f"/{panel.token}":
            self._give(Bytes(Held(b""), "text/plain", status=308, headers={"Location": f"/{panel.token}/"}))
        else:
            asked = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=50))
            return [word for each in words[:-1] if (word := unquote(each, errors="replace"))], asked
        return None, {}

    def _same_origin(self, words: list[str], host: str) -> bool:
        """Whether the page itself asks, or somebody who types: a link may lead to the page, and nowhere else."""
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site")
        if self.command == "POST":
            hidden = origin == "null" and site == "same-origin"  # a browser that hides where it comes from, from us too
            return self.headers.get("X-Worldline") == "1" and (origin == f"http://{host}" or hidden)
        leads_there = self.headers.get("Sec-Fetch-Mode") == "navigate" and not "".join(words)
        return origin in (None, f"http://{host}") and (site in (None, "none", "same-origin") or leads_there)

    def _refuse(self, status: int) -> None:
        self.close_connection = True
        if (length := self._length()) is not None:  # what is closed on unread bytes is reset, and its answer lost
            self.rfile.read(length)
        self._give(said({"error": "refused"}, status))

    def _length(self) -> int | None:
        """The bytes of the request's body, where it has one that is read at all."""
        length = self.headers.get("Content-Length", "")
        known = re.fullmatch(r"[0-9]{1,9}", length) and "Transfer-Encoding" not in self.headers
        return int(length) if known and int(length) <= MOST_BODY else None

    def _get(self, path: list[str], query: dict[str, str]) -> Answer | None:
        panel = self.server.panel
        if not path:
            headers = {"Content-Security-Policy": panel.policy}
            return Bytes(Held(panel.page, "the page"), "text/html; charset=utf-8", headers=headers)
        return panel.routes.get(path, query, {name.lower(): value for name, value in self.headers.items()})

    def _post(self, path: list[str], query: dict[str, str]) -> Answer | None:
        if (length := self._length()) is None:
            self.close_connection = True
            raise UsageError(
                f"a request to the panel's server has a body of up to {MOST_BODY:,} bytes, of known length"
            )
        try:
            body = msgspec.json.decode(self.rfile.read(length), type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"the body is no JSON object: {error}") from None
        return self.server.panel.routes.post(path, body)

    def _give(self, answer: Answer) -> None:
        try:
            if isinstance(answer, Stream):
                self._stream(answer)
            else:
                self._bytes(answer)
        except (ConnectionError, TimeoutError):  # the client has left, or takes nothing more
            self.close_connection = True

    def _bytes(self, answer: Bytes) -> None:
        status, offsets, headers = answer.status, range(answer.source.size), {"Content-Type": answer.media_type}
        if status == 200:
            if answer.etag is not None and self._known(answer.etag):
                self._head(304, {**answer.headers, "ETag": answer.etag})
                return
            try:
                part = self._part(answer)
            except Unsatisfiable:
                size = answer.source.size
                told = said({"error": "range", "what": f"{answer.source.name} has {size:,} bytes"}, 416)
                self._bytes(Bytes(told.source, JSON, status=416, headers={"Content-Range": f"bytes */{size}"}))
                return
            headers["Accept-Ranges"] = "bytes"
            headers |= {"ETag": answer.etag} if answer.etag is not None else {}
            if part is not None:
                headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{answer.source.size}"
                status, offsets = 206, part
        self._head(status, {**headers, **answer.headers, "Content-Length": str(len(offsets))})
        if self.command == "HEAD":
            return
        try:
            for data in answer.parts(offsets):
                self.wfile.write(data)
        except (ReadError, OSError):  # cut or gone while it went out: the length says that the rest is missing
            self.close_connection = True

    def _part(self, answer: Bytes) -> range | None:
        """The part that is asked for; a HEAD asks for none. Raises `Unsatisfiable`."""
        if self.command != "GET":
            return None
        return wanted(
            self.headers.get("Range"), answer.source.size, if_range=self.headers.get("If-Range"), etag=answer.etag
        )

    def _known(self, etag: str) -> bool:
        """Whether the client has this very body."""
        given = self.headers.get("If-None-Match")
        return given is not None and (given.strip() == "*" or etag in (word.strip() for word in given.split(",")))

    def _stream(self, answer: Stream) -> None:
        self.close_connection = True
        self._head(200, {"Content-Type": answer.media_type})
        if self.command == "HEAD":
            return
        try:
            for data in answer.parts:
                if data:
                    self.wfile.write(data)
                elif self._has_left():
                    return
        except WorldlineError:  # what is followed cannot be read any more: the client asks again, and is told
            _log.debug("a run that is followed cannot be read", exc_info=True)

    def _has_left(self) -> bool:
        """Whether the client closed its end; what it may have sent meanwhile is not read."""
        waiting = select.poll()  # takes descriptors of any number
        waiting.register(self.connection, select.POLLIN)
        return bool(waiting.poll(0)) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Security-Policy": _NOTHING_RUNS} | _GUARD | dict(headers)).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
