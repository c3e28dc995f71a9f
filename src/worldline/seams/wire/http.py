"""The words of HTTP/1.1 that both sides of the proxy share: heads, pieces, header rules and the errors of the wire.

Header text is latin-1 (one character per byte, RFC 9110 5.5), in the case and order in which it was received.
Nothing here opens a socket.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from worldline.errors import WorldlineError

Headers = tuple[tuple[str, str], ...]
Framing = Literal["chunked", "length", "close", "none"]
Failure = Literal["dns", "refused", "timeout", "tls", "protocol", "broken"]

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Lower-case names of the headers that speak of one connection and are never forwarded (RFC 9110 7.6.1)."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LINE_BREAKER = re.compile(r"[\r\n\0]")


class RequestHead(msgspec.Struct, frozen=True):
    """The first line and headers of a request. `target` is ASCII, percent-encoded exactly as received."""

    method: str
    target: str
    headers: Headers


class ResponseHead(msgspec.Struct, frozen=True):
    """The first line and headers of a response, and how its body ends.

    `framing` is `chunked` (transfer chunks), `length` (`length` bytes), `close` (until the connection ends) or `none`
    (an answer to HEAD, 204, 304: no body whatever the headers say). `length` is None except for `length`.
    """

    status: int
    reason: str
    headers: Headers
    framing: Framing
    length: int | None = None


class Piece(NamedTuple):
    """Body bytes as one unit of the wire, never empty.

    For `chunked` framing it is one whole transfer chunk, except that a chunk too long to be held comes in parts of
    which only the last has `ends_chunk`; so does the remainder of a chunk in which the peer died. For other framings
    it is what one read gave, with `ends_chunk` true.
    """

    data: bytes
    ends_chunk: bool


class UpstreamError(WorldlineError):
    """The upstream gave no whole answer.

    `kind` says at which stage: `dns` (name not found), `refused` (no TCP connection, or a proxy that said no), `tls`
    (handshake or certificate), `timeout` (connecting or reading took longer than allowed), `protocol` (what came is no
    HTTP/1.1) or `broken` (the peer closed or reset the connection before its answer was complete).
    `facts` has `host`, `port` and `failure` (the same word as `kind`).
    """

    def __init__(self, message: str, *, kind: Failure, host: str, port: int) -> None:
        super().__init__(message, failure=kind, host=host, port=port)
        self._failure: Failure = kind

    @property
    def kind(self) -> Failure:
        """The stage that failed; stands in reports in place of the class's name."""
        return self._failure


class ClientGone(WorldlineError):
    """The client hung up before it had the whole answer."""


class NotSendable(WorldlineError):
    """What was to be sent is no HTTP: a line break in a header, a body unlike its length, calls out of order."""


def header(headers: Iterable[tuple[str, str]], name: str) -> str | None:
    """The first value of header `name`, in any case, or None."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


def header_tokens(headers: Iterable[tuple[str, str]], name: str) -> frozenset[str]:
    """The lower-case members of a comma-separated list header such as Connection, over all its occurrences."""
    wanted = name.lower()
    members = (m.strip().lower() for key, value in headers if key.lower() == wanted for m in value.split(","))
    return frozenset(m for m in members if m)


def without_headers(headers: Iterable[tuple[str, str]], *names: str) -> Headers:
    """`headers` less those called one of `names`, in any case."""
    unwanted = {name.lower() for name in names}
    return tuple(pair for pair in headers if pair[0].lower() not in unwanted)


def with_header(headers: Iterable[tuple[str, str]], name: str, value: str) -> Headers:
    """`headers` with exactly one `name`: the first occurrence keeps its place and case, else it is added at the end."""
    wanted, out, placed = name.lower(), [], False
    for key, old in headers:
        if key.lower() != wanted:
            out.append((key, old))
        elif not placed:
            out.append((key, value))
            placed = True
    return tuple(out) if placed else (*out, (name, value))


def strip_hop_by_hop(headers: Iterable[tuple[str, str]]) -> Headers:
    """`headers` less the hop-by-hop ones and those that Connection names (RFC 9110 7.6.1)."""
    pairs = tuple(headers)
    return without_headers(pairs, *HOP_BY_HOP, *header_tokens(pairs, "connection"))


def encode_head(first_line: str, headers: Headers) -> bytes:
    """The bytes of a message head with its closing blank line, headers in the case and order given.

    Raises NotSendable for text that would be read back as something else: a line break or NUL, a name that is no token,
    a character outside latin-1.
    """
    for name, _ in headers:
        if not _TOKEN.fullmatch(name):
            raise NotSendable(f"header name {name!r} is no HTTP token", name=name)
    lines = [first_line, *(f"{name}: {value}" for name, value in headers)]
    for line in lines:
        if _LINE_BREAKER.search(line):
            raise NotSendable(f"line break or NUL in {line.partition(':')[0]!r}: it would end the line early")
    try:
        return "\r\n".join([*lines, "", ""]).encode("latin-1")
    except UnicodeEncodeError as error:
        raise NotSendable(f"character {error.object[error.start]!r} in a message head is outside latin-1") from error
