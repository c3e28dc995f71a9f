"""Server-sent events, as streamable HTTP carries messages in: parsed from a stream of bytes, and written."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True):
    """One event. `data` is empty in one that only gives the id to resume behind; `retry` is in milliseconds."""

    data: bytes = b""
    id: str | None = None
    retry: int | None = None

    def encode(self) -> bytes:
        """Its lines, with the empty one that ends it."""
        lines = [b"event: message"] if self.data else []
        if self.id is not None:
            lines.append(b"id: " + self.id.encode())
        if self.retry is not None:
            lines.append(b"retry: %d" % self.retry)
        lines += [b"data: " + line for line in self.data.split(b"\n")]
        return b"\n".join([*lines, b"", b""])


KEEP_ALIVE = b": still at work\n\n"


class TooLong(Exception):
    """An event of more bytes than may be held."""


class Events:
    """The events of a stream. Raises `TooLong` for one of more than `most` bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: list[bytes] = []  # the parts of a line that has not ended
        self._held_size = 0
        self._data: list[bytes] = []
        self._size = 0
        self._id: str | None = None
        self._retry: int | None = None

    def feed(self, data: bytes) -> list[Event]:
        """The events that `data` completes."""
        if self._held and self._held[-1] == b"\r":  # it ended a line, unless the other half of its end comes now
            self._held[-1] = b"\n"
            data = data.removeprefix(b"\n")
        if data.endswith(b"\r"):
            data, half = data[:-1], [b"\r"]
        else:
            half = []
        events = []
        if b"\n" in data or b"\r" in data or b"\n" in self._held:
            whole = b"".join([*self._held, data]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            *lines, rest = whole.split(b"\n")
            events = [event for line in lines if (event := self._line(line)) is not None]
            self._held, self._held_size = [rest], len(rest)
        else:
            self._held.append(data)
            self._held_size += len(data)
        self._held += half
        if self._size + self._held_size > self._most:
            raise TooLong
        return events

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._ended()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self._retry = int(value)
        return None

    def _ended(self) -> Event | None:
        data, identifier, retry = b"\n".join(self._data), self._id, self._retry
        self._data, self._size, self._id, self._retry = [], 0, None, None
        return None if not data and identifier is None and retry is None else Event(data, identifier, retry)
