"""A secret that a model streams token by token: contiguous in no byte window, whole only in the assembled text.

Of a stream of server-sent events, the fragments of each channel (the text of a choice, the arguments of one tool call)
are put together and scanned. An event is held back, whole, while its fragment may be the beginning of a secret. The
marker goes into the fragment in which the secret begins; the other parts are cut out of theirs, and no other byte
changes. A transfer border inside a part that is cut out moves behind it. At most 4 MiB are held back.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Hashable, Iterator
from typing import NamedTuple

import msgspec

from worldline.engine.fragments import Path, ended, fragments
from worldline.store.secrets.vault import Vault, Window

HELD = 4 << 20
Piece = tuple[bytes, int | None]  # bytes, and when the transfer chunk came that they end

_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
BLANK = re.compile(rb"(?:\r\n|\n|\r)(?:\r\n|\n|\r)")
DATA = re.compile(rb"^data: ?(.*)$", re.MULTILINE)
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"|[{}\[\],:]', re.DOTALL)
_UNIT = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)


class Fragment:
    """A channel's text in one event. `cuts` are what is taken out: (from, to, what comes in its place), in bytes."""

    __slots__ = ("cuts", "decided", "event", "path", "size")

    def __init__(self, event: Event, path: Path, size: int) -> None:
        self.event = event
        self.path = path
        self.size = size
        self.decided = 0
        self.cuts: list[tuple[int, int, bytes]] = []


class Event:
    """One event of the stream, by its places in it; `open` fragments are not decided yet."""

    __slots__ = ("end", "fragments", "json_at", "open", "text")

    def __init__(self, end: int, json_at: int, text: bytes) -> None:
        self.end = end
        self.json_at = json_at
        self.text = text
        self.open = 0
        self.fragments: list[Fragment] = []


class Channel:
    """What is being said in one place of an answer."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._open: deque[Fragment] = deque()
        self._said: list[bytes] = []

    def add(self, fragment: Fragment, text: bytes) -> None:
        """Go on with a fragment."""
        self._open.append(fragment)
        self._said.append(text)

    def decide(self, last: bool = False) -> None:
        """Look into what was said since; with `last`, nothing more comes."""
        if not (self._said or last):
            return
        text = b"".join(self._said)
        self._said.clear()
        for span in self._window.feed(text, last):
            left, instead = span.size, span.text
            while left:
                fragment = self._open[0]
                taken = min(left, fragment.size - fragment.decided)
                if span.secret:
                    fragment.cuts.append((fragment.decided, fragment.decided + taken, instead))
                    instead = b""
                fragment.decided += taken
                left -= taken
                if fragment.decided == fragment.size:
                    self._open.popleft().event.open -= 1


class Edit(NamedTuple):
    """Bytes of the stream that others stand for."""

    start: int
    end: int
    text: bytes


class Assembled:
    """The stage in front of a body's window: takes pieces as they come and gives them on without such secrets."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._streams: bool | None = None if vault.active else False
        self._raw = bytearray()
        self._at = self._came = 0  # the place of the first held byte, and that behind the last
        self._split = 0  # up to which the held bytes are split into events
        self._borders: deque[tuple[int, int]] = deque()
        self._events: deque[Event] = deque()
        self._channels: dict[Hashable, Channel] = {}

    def feed(self, pieces: list[Piece]) -> list[Piece]:
        """What may go on now these pieces came; they have a time where a transfer chunk ends with them."""
        if self._streams is False:
            return pieces
        before = len(self._raw)
        for data, when in pieces:
            self._raw += data
            self._came += len(data)
            if when is not None:
                self._borders.append((self._came, when))
        if self._streams is None:
            self._streams = is_stream(bytes(self._raw[:64]))
            if self._streams is None:
                return []
            if not self._streams:
                return self._release(self._came)
        for end in _blanks(self._raw, max(self._split, before - 3)):
            if end > self._split:
                self._examine(bytes(self._raw[self._split : end]), self._at + self._split)
                self._split = end
        for channel in self._channels.values():
            channel.decide()
        if len(self._raw) > HELD:
            self._end(None)
            if len(self._raw) - self._split > HELD:
                return self._release(self._came)
        return self._release(self._decided())

    def close(self) -> list[Piece]:
        """The stream is at its end: all that is left."""
        if self._streams:
            self._end(None)
        return self._release(self._came)

    def _decided(self) -> int:
        """The place up to which nothing can change any more."""
        return next((e.end - len(e.text) for e in self._events if e.open), self._at + self._split)

    def _examine(self, text: bytes, start: int) -> None:
        """Take an event: its fragments go to their channels, and a channel that it ends is ended."""
        at, behind = _data(text)
        event = Event(start + len(text), start + at, text)
        self._events.append(event)
        parsed = _parsed(text[at:behind]) if at < behind else None
        if not isinstance(parsed, dict):
            return
        for key, path, said in fragments(parsed):
            data = said.encode("utf-8", "surrogatepass")
            fragment = Fragment(event, path, len(data))
            event.open += 1
            event.fragments.append(fragment)
            channel = self._channels.get(key)
            if channel is None:
                channel = self._channels[key] = Channel(self._vault.window())
            channel.add(fragment, data)
        for group in ended(parsed):
            self._end(group)

    def _end(self, group: Hashable) -> None:
        """End the channels of a group, or all."""
        for key in [key for key in self._channels if group is None or key[0] == group]:  # type: ignore[index]
            self._channels.pop(key).decide(last=True)

    def _release(self, end: int) -> list[Piece]:
        """The held bytes up to a place, edited, by their transfer borders."""
        edits: list[Edit] = []
        while self._events and self._events[0].end <= end:
            edits += _edits(self._events.popleft())
        pieces: list[Piece] = []
        at = self._at
        while self._borders and self._borders[0][0] <= end:
            border, when = self._borders.popleft()
            if edits:
                border = next((edit.end for edit in edits if edit.start < border < edit.end), border)
            pieces.append((self._edited(at, border, edits), when))
            at = max(at, border)
        if at < end:
            pieces.append((self._edited(at, end, edits), None))
        del self._raw[: end - self._at]
        self._split = max(0, self._split - (end - self._at))
        self._at = end
        return pieces

    def _edited(self, start: int, end: int, edits: list[Edit]) -> bytes:
        if not edits:
            return bytes(self._raw[start - self._at : max(start, end) - self._at])
        out, at = bytearray(), start
        for edit in edits:
            if start <= edit.start and edit.end <= end:
                out += self._raw[at - self._at : edit.start - self._at] + edit.text
                at = edit.end
        return bytes(out + self._raw[at - self._at : max(at, end) - self._at])


def without_spelled(vault: Vault, body: bytes) -> bytes:
    """A body that is all there, without the secrets that its events spell out."""
    stage = Assembled(vault)
    return b"".join(data for data, _ in [*stage.feed([(body, None)]), *stage.close()])


def _blanks(raw: bytearray, at: int) -> Iterator[int]:
    """The places behind the empty lines from `at` on."""
    if raw.find(b"\r", at) >= 0:
        yield from (blank.end() for blank in BLANK.finditer(raw, at))
        return
    while (at := raw.find(b"\n\n", at) + 2) > 1:
        yield at


def _data(text: bytes) -> tuple[int, int]:
    """Where the one data line of an event has its value; nowhere where it has none, or several."""
    if text.startswith(b"data: ") and text.find(b"\n") == len(text) - 2 and b"\r" not in text:
        return 6, len(text) - 2
    found = list(DATA.finditer(text.replace(b"\r", b"\n")))
    return found[0].span(1) if len(found) == 1 else (0, 0)


def _parsed(text: bytes) -> object:
    """A JSON value, or None. What msgspec refuses (lone surrogates, NaN) the standard library may still read."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_stream(start: bytes) -> bool | None:
    """Whether a body that begins so is a stream of events; None while too little of it came."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(_STARTS):
        return True
    return None if len(text) < 6 and any(mark.startswith(text) for mark in _STARTS) and len(start) < 64 else False


def _edits(event: Event) -> list[Edit]:
    """What changes in an event, by places in the stream."""
    cut = [fragment for fragment in event.fragments if fragment.cuts]
    if not cut:
        return []
    at = event.json_at - (event.end - len(event.text))
    places = dict(strings(event.text[at:]))
    edits = []
    for fragment in cut:
        begin, end = places[fragment.path]
        raw = event.text[at + begin : at + end]
        for first, behind, instead in fragment.cuts:
            start, stop = _raw(raw, first, behind)
            edits.append(Edit(event.json_at + begin + start, event.json_at + begin + stop, instead))
    return sorted(edits)


def strings(text: bytes) -> Iterator[tuple[Path, tuple[int, int]]]:
    """The string values of a JSON text: path, and where their content stands."""
    path: list[str | int] = []
    named = False  # whether a value comes, not a name
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in (b"{", b"["):
            path.append(0 if mark == b"[" else "")
            named = mark == b"["
        elif mark in (b"}", b"]"):
            path.pop()
            if not path:
                return
            named = isinstance(path[-1], int)
        elif mark == b",":
            if isinstance(last := path[-1], int):
                path[-1] = last + 1
            named = isinstance(path[-1], int)
        elif mark == b":":
            named = True
        elif named:
            yield tuple(path), token.span(1)
        else:
            path[-1] = json.loads(mark)


def _raw(raw: bytes, first: int, behind: int) -> tuple[int, int]:
    """Where the bytes from `first` up to `behind` of a decoded string stand in its JSON spelling."""
    start, stop, at = len(raw), len(raw), 0
    for unit in _UNIT.finditer(raw):
        size = len(json.loads(b'"' + unit[0] + b'"').encode("utf-8", "surrogatepass")) if len(unit[0]) > 1 else 1
        if at <= first < at + size:
            start = unit.start()
        if at < behind <= at + size:
            stop = unit.end()
            break
        at += size
    return start, stop
