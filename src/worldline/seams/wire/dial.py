"""Opens a connection to an upstream: name, TCP, an HTTP proxy's tunnel, TLS. Each stage fails in its own word."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import ssl
from urllib.parse import unquote, urlsplit

from worldline.errors import UsageError
from worldline.seams.wire.connection import Connection
from worldline.seams.wire.http import Failure, UpstreamError

_TUNNEL_HEAD_MAX = 64 * 1024


class Origin:
    """Scheme, host and port out of a URL, and the host as it is written in a Host header.

    Raises UsageError for what is no URL with one of `schemes` and a host; credentials are not repeated in the message.
    """

    def __init__(self, url: str, *, what: str, schemes: tuple[str, ...] = ("http", "https")) -> None:
        shown = url.rpartition("@")[2]
        try:
            parts = urlsplit(url)
            port = parts.port
            host = (parts.hostname or "").encode("idna").decode() if not url.isascii() else parts.hostname or ""
        except ValueError:
            # Not chained: the parser's message may quote a piece of a password.
            raise UsageError(f"{what} {shown!r} is not usable: its host or port is malformed") from None
        if parts.scheme not in schemes or not host:
            wanted = " or ".join(f"{scheme}://HOST" for scheme in schemes)
            raise UsageError(f"{what} {shown!r} is not usable: it must begin with {wanted}")
        self.tls = parts.scheme == "https"
        self.host = host
        self.port = port if port is not None else (443 if self.tls else 80)
        self.credentials = (parts.username or "", parts.password or "") if parts.username is not None else None
        bracketed = f"[{host}]" if ":" in host else host
        self.address = f"{bracketed}:{self.port}"
        self.authority = bracketed if port is None else self.address

    def fail(self, kind: Failure, message: str) -> UpstreamError:
        """An UpstreamError about this origin."""
        return UpstreamError(f"{self.address}: {message}", kind=kind, host=self.host, port=self.port)


class HttpProxy(Origin):
    """A forward proxy given as `http://[user:password@]host:port`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, what="proxy", schemes=("http",))

    @property
    def authorization(self) -> tuple[tuple[str, str], ...]:
        """The Proxy-Authorization header, if the URL had credentials."""
        if self.credentials is None:
            return ()
        plain = ":".join(unquote(part) for part in self.credentials)
        return (("Proxy-Authorization", "Basic " + base64.b64encode(plain.encode()).decode()),)


async def dial(
    origin: Origin, *, proxy: HttpProxy | None, ssl_context: ssl.SSLContext | None, timeout: float | None
) -> Connection:
    """A fresh connection on which HTTP can be spoken with `origin` (or with `proxy`, for an origin without TLS).

    `timeout` in seconds bounds all stages together. Raises UpstreamError: dns, refused, tls or timeout.
    """
    hop = proxy or origin
    try:
        async with asyncio.timeout(timeout):
            sock = await _connect(hop)
            if proxy is not None and origin.tls:
                await _open_tunnel(sock, proxy, origin)
            return await _speak(sock, origin, ssl_context)
    except TimeoutError as error:
        raise hop.fail("timeout", "no connection in time") from error


async def _connect(hop: Origin) -> socket.socket:
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(hop.host, hop.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise hop.fail("dns", f"name not found ({error})") from error
    refusals: list[OSError] = []
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
            return sock
        except OSError as error:
            sock.close()
            refusals.append(error)
        except BaseException:
            sock.close()
            raise
    if refusals and all(isinstance(error, TimeoutError) for error in refusals):
        raise refusals[-1]
    why = str(refusals[-1].strerror or refusals[-1]) if refusals else "no address"
    raise hop.fail("refused", f"no connection ({why})") from (refusals[-1] if refusals else None)


async def _open_tunnel(sock: socket.socket, proxy: HttpProxy, origin: Origin) -> None:
    lines = [f"CONNECT {origin.address} HTTP/1.1", f"Host: {origin.address}"]
    lines += [f"{name}: {value}" for name, value in proxy.authorization]
    try:
        answer = await _ask_proxy(sock, "\r\n".join([*lines, "", ""]).encode("latin-1"))
        status_line = answer.partition(b"\r\n")[0]
        # Nothing may follow the head, because it is our side that begins TLS.
        if not re.match(rb"HTTP/1\.\d 2\d\d\b", status_line) or not answer.endswith(b"\r\n\r\n"):
            raise proxy.fail("refused", f"the proxy opened no tunnel ({status_line[:200].decode('latin-1')!r})")
    except TimeoutError:
        sock.close()
        raise
    except OSError as error:
        sock.close()
        raise proxy.fail("refused", f"the proxy broke the connection ({error.strerror or error})") from error
    except BaseException:
        sock.close()
        raise


async def _ask_proxy(sock: socket.socket, request: bytes) -> bytes:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, request)
    answer = b""
    while b"\r\n\r\n" not in answer and len(answer) < _TUNNEL_HEAD_MAX:
        data = await loop.sock_recv(sock, 4096)
        if not data:
            break
        answer += data
    return answer


async def _speak(sock: socket.socket, origin: Origin, ssl_context: ssl.SSLContext | None) -> Connection:
    # From here on asyncio owns the socket and closes it when the handshake fails.
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_connection(
            Connection,
            sock=sock,
            ssl=ssl_context if origin.tls else None,
            server_hostname=origin.host if origin.tls else None,
        )
        return connection
    except TimeoutError:
        raise
    except (OSError, ValueError) as error:
        raise origin.fail("tls", f"no TLS session ({error})") from error
