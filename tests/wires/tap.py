"""A tap on a wire: passes every byte on between a client and a port, keeps it, and reads it as HTTP answers.

It sits between two programs that know nothing of it, so what it shows is what was on the socket: transfer chunks with
their borders, and whether an answer came to its end.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

BODILESS = (204, 304)


@dataclass(frozen=True)
class Seen:
    """One answer as it stood on the wire.

    `chunks` are the transfer chunks of a chunked body, else one item with the whole body. `whole` says whether the end
    that the head announced was there: the last chunk, or all bytes of the Content-Length.
    """

    status: int
    headers: dict[str, str]
    chunks: list[bytes]
    whole: bool

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


class Tap:
    """Listens on a free port and passes on to `port`, a thread for each direction of each connection."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._pairs: list[tuple[bytearray, bytearray]] = []
        self._log: list[tuple[bytearray, int]] = []  # each read of an answer: its stream, and where the read began
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for sock in self._sockets:
            sock.close()

    @property
    def connections(self) -> int:
        return len(self._pairs)

    def answers(self) -> list[Seen]:
        """Every answer that passed, in the order in which they began. To be asked once the tap is closed."""
        found: list[tuple[int, Seen]] = []
        for asked, answered in self._pairs:
            reads = [(number, at) for number, (stream, at) in enumerate(self._log) if stream is answered]
            for began, seen in read_answers(bytes(asked), bytes(answered)):
                found.append((max(number for number, at in reads if at <= began), seen))
        return [seen for _, seen in sorted(found, key=lambda pair: pair[0])]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._sockets += [client, server]
                asked, answered = bytearray(), bytearray()
                self._pairs.append((asked, answered))
                for source, sink, kept in ((client, server, asked), (server, client, answered)):
                    sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    thread = threading.Thread(target=_pass_on, args=(source, sink, kept, self._log), daemon=True)
                    self._threads.append(thread)
                    thread.start()


def _pass_on(source: socket.socket, sink: socket.socket, kept: bytearray, log: list[tuple[bytearray, int]]) -> None:
    try:
        while data := source.recv(1 << 16):
            log.append((kept, len(kept)))
            kept += data
            sink.sendall(data)
    except OSError:
        _reset(sink)
        return
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _reset(sink: socket.socket) -> None:
    """Passes a reset on as one. The thread that reads from `sink` holds it open, so it is woken first."""
    with contextlib.suppress(OSError):
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sink.shutdown(socket.SHUT_RD)
    sink.close()


def read_answers(asked: bytes, answered: bytes) -> list[tuple[int, Seen]]:
    """The answers in a connection's bytes and where each begins; `asked` tells which of them answer a HEAD."""
    methods = [line.split(b" ")[0] for line in asked.split(b"\r\n") if line.endswith(b" HTTP/1.1")]
    seen: list[tuple[int, Seen]] = []
    size = len(answered)
    while answered:
        began = size - len(answered)
        head, _, answered = answered.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split(" ")[1])
        if status < 200:
            continue
        if methods[len(seen)] == b"HEAD" or status in BODILESS:
            chunks, whole = [], True
        elif headers.get("transfer-encoding") == "chunked":
            chunks, whole, answered = read_chunks(answered)
        else:
            length = int(headers.get("content-length", len(answered)))
            chunks, whole, answered = [answered[:length]], len(answered) >= length, answered[length:]
        seen.append((began, Seen(status, headers, chunks, whole)))
    return seen


def read_chunks(data: bytes) -> tuple[list[bytes], bool, bytes]:
    """The transfer chunks (RFC 9112, 7.1), whether the last one was there, and what stands behind it."""
    chunks: list[bytes] = []
    while b"\r\n" in data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            assert data[:2] == b"\r\n"
            return chunks, True, data[2:]
        chunks.append(data[:length])
        if len(data) < length + 2:
            return chunks, False, b""
        assert data[length : length + 2] == b"\r\n"
        data = data[length + 2 :]
    return chunks, False, b""
