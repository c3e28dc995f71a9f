"""Where bytes are read from: a file, or a URL with ranges. Only what is asked for is fetched."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from worldline.errors import ReadError, RecordingNotFound, UsageError

if TYPE_CHECKING:
    import http.client

_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")


class Source(Protocol):
    """Bytes of a known `size` that can be read anywhere. `name` is for people."""

    name: str
    size: int

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes from `offset`. Raises `ReadError` where they are not to be had."""


class FileSource:
    """A local file. Raises `RecordingNotFound` where there is none."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise RecordingNotFound(f"no recording at {path}", path=str(path)) from None
        state = os.fstat(self._descriptor)
        self.size, self.inode = state.st_size, (state.st_dev, state.st_ino)

    def read(self, offset: int, size: int) -> bytes:
        """Read from the file, which may be read by others meanwhile."""
        _inside(self, offset, size)
        data = os.pread(self._descriptor, size, offset)
        while len(data) < size and (more := os.pread(self._descriptor, size - len(data), offset + len(data))):
            data += more
        return _whole(self, data, offset, size)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


class Tailed:
    """A source whose last bytes are read at once: what opening a bundle asks for stands there, in small pieces."""

    BYTES = 64 * 1024

    def __init__(self, inner: Source) -> None:
        self.name, self.size = inner.name, inner.size
        self._inner = inner
        self._from = max(0, inner.size - self.BYTES)
        self._tail = inner.read(self._from, inner.size - self._from)

    def read(self, offset: int, size: int) -> bytes:
        """Read from the tail, and what is not in it from the source."""
        at = offset - self._from
        if at >= 0 and at + size <= len(self._tail):
            return self._tail[at : at + size]
        return self._inner.read(offset, size)


class UrlSource:
    """An http or https URL whose server answers ranges. Connections are kept; redirects are not followed.

    Raises `RecordingNotFound` for 404 and `ReadError` for a server that gives no ranges.
    """

    def __init__(self, url: str, timeout: float = 30.0) -> None:
        import http.client  # what it takes along costs more time than a short verb has

        self.name = url
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or parts.scheme not in ("http", "https") or not url.isascii():
            raise UsageError(f"not a URL of a bundle: {url}", url=url)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        try:
            self._connection = kind(host, port, timeout=timeout)
        except http.client.InvalidURL:
            raise UsageError(f"not a URL of a bundle: {url}", url=url) from None
        self.size = 0
        self.size = self._get(0, 1)[1]

    def read(self, offset: int, size: int) -> bytes:
        """Fetch one range."""
        _inside(self, offset, size)
        if size == 0:
            return b""
        data, total = self._get(offset, size)
        if total != self.size:
            raise ReadError(f"{self.name} changed while it was read", url=self.name)
        return _whole(self, data, offset, size)

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()

    def _get(self, offset: int, size: int) -> tuple[bytes, int]:
        import http.client

        try:
            self._connection.request("GET", self._target, headers={"Range": f"bytes={offset}-{offset + size - 1}"})
            response = self._connection.getresponse()
            answered = _RANGE.fullmatch(response.getheader("Content-Range") or "")
            if response.status == 404:
                raise RecordingNotFound(f"no recording at {self.name}", url=self.name)
            if response.status != 206 or answered is None or int(answered[1]) != offset:
                raise ReadError(
                    f"{self.name}: the server answers {response.status} without the range; download the file",
                    url=self.name,
                    status=response.status,
                )
            data = response.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise ReadError(f"cannot read {self.name}: {error}", url=self.name) from error
        finally:
            if self._connection.sock is not None and not _idle(self._connection):
                self._connection.close()
        return data, int(answered[3])


def _idle(connection: http.client.HTTPConnection) -> bool:
    """Whether the last answer was read to its end, so that the connection takes another request."""
    response = getattr(connection, "_HTTPConnection__response", None)
    return response is None or response.isclosed()


def _inside(source: Source, offset: int, size: int) -> None:
    """Raise `ReadError` for what no source of this size holds: nothing is allocated for it."""
    if offset < 0 or size < 0 or offset + size > source.size:
        raise ReadError(
            f"{source.name} has {source.size:,} bytes, none from {offset:,} to {offset + size:,}",
            file=source.name,
            offset=offset,
        )


def _whole(source: Source, data: bytes, offset: int, size: int) -> bytes:
    if len(data) != size:
        raise ReadError(
            f"{source.name} ends at byte {offset + len(data):,}, before {offset + size:,}",
            file=source.name,
            offset=offset + len(data),
        )
    return data
