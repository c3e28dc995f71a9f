"""An incremental reader of server-sent events by the WHATWG rules (HTML standard, "Server-sent events").

Lines end with LF, CR LF or CR and with nothing else: U+2028 inside an answer is text. Chunk borders may fall
anywhere, also inside a character or between CR and LF. The `id` and `retry` fields speak to a reconnecting browser
and are ignored; an event that no empty line ends is never given out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""Default bound of one event: room for a generated image in base64."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True):
    """One event: its type (`message` where the stream names none) and its data lines joined by LF."""

    event: str
    data: str


class SseParser:
    """Feeds on chunks of bytes and gives back the events that they complete.

    Memory stays near `max_event_bytes`: an event whose lines are longer is dropped whole and counted in `dropped`.
    Which events come out never depends on where the chunks were cut.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._head: bytes | None = b""
        self._after_cr = False
        self._line = bytearray()
        self._event = ""
        self._data: list[bytes] = []
        self._size = 0
        self._oversized = False
        self.dropped = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that end within this chunk, in order."""
        chunk = self._without_bom(chunk)
        if not chunk:
            return []
        events: list[SseEvent] = []
        start = 1 if self._after_cr and chunk.startswith(b"\n") else 0
        for end in _LINE_END.finditer(chunk, start):
            self._extend(chunk[start : end.start()])
            start = end.end()
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._after_cr = chunk.endswith(b"\r")
        self._extend(chunk[start:])
        return events

    def _without_bom(self, chunk: bytes) -> bytes:
        if self._head is None:
            return chunk
        self._head += chunk
        if len(self._head) < len(_BOM) and _BOM.startswith(self._head):
            return b""
        chunk, self._head = self._head.removeprefix(_BOM), None
        return chunk

    def _extend(self, piece: bytes) -> None:
        # One byte over the limit is kept: it is what tells an oversized line from one that just fits.
        room = self._limit + 1 - len(self._line)
        self._line += piece[:room]

    def _end_line(self) -> SseEvent | None:
        line = bytes(self._line)
        self._line.clear()
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            return None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        self._size += len(line)
        if self._size > self._limit:
            self._oversized = True
            self._data.clear()
        elif field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        return None

    def _dispatch(self) -> SseEvent | None:
        data, event = self._data, self._event
        self.dropped += self._oversized
        oversized = self._oversized
        self._data, self._event, self._size, self._oversized = [], "", 0, False
        if oversized or not data:
            return None
        return SseEvent(event=event or "message", data=b"\n".join(data).decode("utf-8", "replace"))


def all_events(body: bytes) -> Iterator[SseEvent]:
    """The events of a body that is all there. Most streams have nothing but one data line in each event."""
    if body.startswith(_BOM) or b"\r" in body:
        yield from SseParser(max_event_bytes=len(body)).feed(body)
        return
    *events, _ = body.split(b"\n\n")
    for lines in events:
        if lines.startswith(b"data: ") and b"\n" not in lines:
            yield SseEvent(event="message", data=lines[6:].decode("utf-8", "replace"))
        else:
            yield from SseParser(max_event_bytes=len(body)).feed(lines + b"\n\n")
