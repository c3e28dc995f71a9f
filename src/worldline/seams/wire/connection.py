"""One TCP or TLS connection, as both the server and the upstream side hold it.

Differs from asyncio streams in three ways that a recording proxy needs: all bytes that came are read before the error
that ended the connection is raised; the peer's hang-up is known at once, even when nobody reads or writes; and
whether unread bytes wait can be asked. TCP_NODELAY is set by asyncio itself on every TCP transport.
"""

from __future__ import annotations

import asyncio
import asyncio.trsock
import os
import socket
import struct
import weakref
from collections.abc import Callable
from typing import cast

READ_SIZE = 64 * 1024
"""Most bytes that one `read` gives."""

_UNREAD_MAX = 4 * READ_SIZE
_FLUSH_SECONDS = 5.0
_LINGER_ZERO = struct.pack("ii", 1, 0)


class Connection(asyncio.Protocol):
    """A connection made by asyncio's `create_server` or `create_connection` with this as its protocol.

    `gone` is set as soon as the peer's EOF, reset or loss is seen. `on_open` is called once when the connection stands.
    """

    def __init__(self, on_open: Callable[[Connection], None] | None = None) -> None:
        self.gone = asyncio.Event()
        self._on_open = on_open
        self._unread = bytearray()
        self._error: Exception | None = None
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._reading_paused = False
        self._lost = False
        self._flush_limit: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    @property
    def peer(self) -> str:
        """The other side as `host:port`, empty when the system does not know it any more."""
        name = self._transport.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""

    @property
    def reusable(self) -> bool:
        """True when nothing is left to read or to send and the peer still holds its end."""
        idle = not self._unread and self._transport.get_write_buffer_size() == 0
        return idle and not self.gone.is_set() and not self._transport.is_closing()

    async def read(self) -> bytes:
        """Up to READ_SIZE bytes as soon as there are any; `b""` at the end.

        Raises OSError if the connection ended by an error, after all that came before it was read.
        """
        await self._readable.wait()
        data = bytes(self._unread[:READ_SIZE])
        del self._unread[: len(data)]
        if not self._unread and not self.gone.is_set():
            self._readable.clear()
        if self._reading_paused and len(self._unread) < _UNREAD_MAX:
            self._reading_paused = False
            self._transport.resume_reading()
        if not data and self._error is not None:
            raise ConnectionResetError(str(self._error)) from self._error
        return data

    def write(self, data: bytes) -> None:
        """Sends `data`, or buffers what the system does not take now; silently nothing once the connection is lost."""
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        """Waits while too much is buffered. Raises ConnectionResetError as soon as the peer is gone."""
        await self._writable.wait()
        if self.gone.is_set():
            raise ConnectionResetError("the peer hung up")

    def write_eof(self) -> None:
        """Ends our direction; reading goes on. Without effect where the transport cannot do it (TLS)."""
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()

    def close(self) -> None:
        """Sends what is buffered, then closes; gives the peer a bounded time to take it."""
        if not self._lost and self._flush_limit is None:
            self._transport.close()
            self._flush_limit = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._transport.abort)

    def discard(self) -> None:
        """Closes now; what is buffered is lost."""
        self._transport.abort()

    def reset(self) -> None:
        """Closes with RST, which the peer cannot take for a regular end of data."""
        sock = self._transport.get_extra_info("socket")
        if sock is not None and not self._lost:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.close()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast(asyncio.Transport, transport)
        _open_connections.add(self)
        if self._on_open is not None:
            self._on_open(self)

    def data_received(self, data: bytes) -> None:
        """Keeps the bytes for `read`; stops the peer when too many wait."""
        self._unread += data
        self._readable.set()
        if len(self._unread) >= _UNREAD_MAX and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """The peer ended its direction, which counts as hung up."""
        self._hang_up()
        # True keeps our direction open, so that an answer can still be sent; TLS has no half-closed state.
        return self._transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing comes or goes any more; `exc` is what ended it, None for a regular end."""
        self._error = exc
        self._lost = True
        if self._flush_limit is not None:
            self._flush_limit.cancel()
        self._hang_up()

    def pause_writing(self) -> None:
        """The system takes no more for now."""
        if not self.gone.is_set():
            self._writable.clear()

    def resume_writing(self) -> None:
        """The system takes bytes again."""
        self._writable.set()

    def _hang_up(self) -> None:
        self.gone.set()
        self._readable.set()
        self._writable.set()


_open_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def let_go(sock: asyncio.trsock.TransportSocket | socket.socket | None) -> None:
    """In a forked child: give up its share of a socket, which else stays open for as long as the child lives."""
    if sock is not None and sock.fileno() >= 0:
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nowhere, sock.fileno(), inheritable=False)
        os.close(nowhere)


def _leave_in_child() -> None:
    for connection in list(_open_connections):
        let_go(connection._transport.get_extra_info("socket"))


os.register_at_fork(after_in_child=_leave_in_child)
