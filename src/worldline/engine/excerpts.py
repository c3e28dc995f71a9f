"""Reading contents for people: of a large one only its beginning, however large it is.

With `most` no content is read beyond that many bytes; without it all are read whole and checked, as a replay does.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from worldline.engine.codings import DECODERS
from worldline.engine.exchanges import CONTENTS, Exchange
from worldline.engine.stream import KEPT
from worldline.errors import Damaged
from worldline.model import fields
from worldline.model.dialects import ToolResult, read_request
from worldline.model.events import Event, encode_json
from worldline.store.recording import JSON, Recording

_LONGEST_ESCAPE = 12  # characters of JSON that stand for one of text


class Text(NamedTuple):
    """A text, and where it is only the beginning of a content that content's size in bytes."""

    text: str
    size: int | None = None


class Excerpts:
    """Reads the contents of a recording."""

    def __init__(self, recording: Recording, most: int | None = None) -> None:
        self.recording = recording
        self._most = most

    def opened(self, event: Event) -> dict[str, Any]:
        """A row's data, what its row had no room for read from its contents; what cannot be read is left out."""
        if b'"$blob"' not in event.raw:
            return event.data
        opened = {}
        for key, value in event.data.items():
            try:
                opened[key] = value if key in CONTENTS or self._is_large(value) else self.recording.loaded(value)
            except Damaged as lost:
                if key == "error":  # that it failed is in the row, its words are not here
                    opened[key] = {"type": "Unavailable", "message": str(lost)}
        while (wrong := fields.unfit(event.name, opened)) in opened:
            del opened[str(wrong)]
        return {key: value for key, value in opened.items() if key in CONTENTS or not self._is_large(value)}

    def _is_large(self, value: Any) -> bool:
        return self._most is not None and _size(value) > max(self._most, KEPT)

    def text(self, form: Any) -> Text:
        """A recorded value as text: its own where it is one, else JSON as the record has it, with its escapes."""
        most, size = self._most, _size(form)
        try:
            if most is not None and size > most:
                return Text(_readable_beginning(self._beginning(form["$blob"], most)), size)
            data, _ = self.recording.encoded(form)
        except Damaged as error:
            return Text(f"({error})")
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Text(f"(it cannot be read: {error})")
        return Text(value if isinstance(value, str) else data.decode("utf-8", "replace"))

    def cut(self, text: str) -> Text:
        """A text that is here already, cut as a content would be."""
        if self._most is None or len(text) <= self._most:
            return Text(text)
        return Text(text[: self._most], len(text.encode("utf-8", "surrogatepass")))

    def value(self, form: Any) -> Any:
        """A recorded value; None where it cannot be read, or is larger than is read."""
        try:
            return None if self._is_large(form) else self.recording.value(form)
        except Damaged:
            return None

    def answer(self, exchange: Exchange) -> bytes:
        """The recorded body of a response as people read it, its content encoding undone. Raises `Damaged`."""
        body = self._body(row["body"] for row in (*exchange.chunks, exchange.data) if "body" in row)
        return decoded(body, exchange.data)

    def results(self, route: str, form: Any) -> tuple[ToolResult, ...]:
        """The tool results among the texts that a request adds, read without what stood there before it.

        `form` is the request's body as its row carries it. What cannot be read has no results.
        """
        try:
            form = None if self._is_large(form) else self.recording.loaded(form)
            if form is None or "$withheld" in form or fields.unfit("decision/request", {"body": form}):
                return ()
            added = [encode_json(a["name"]) + b":[" + b",".join(self._added(a["add"])) + b"]" for a in form["arrays"]]
            body = b"{" + b",".join(added) + b"}" if added else b"".join(self._texts([form["template"]]))
        except (Damaged, UnicodeEncodeError):
            return ()
        ask = read_request(route, body)
        return ask.tool_results if ask is not None else ()

    def _added(self, form: Any) -> list[bytes]:
        texts = [] if self._is_large(form) else self.recording.loaded(form)
        return self._texts(texts) if isinstance(texts, list) else []

    def _texts(self, texts: list[Any]) -> list[bytes]:
        """Texts of a request as bytes; those that stand elsewhere already are left out."""
        return [self.recording.content(text) for text in texts if not (isinstance(text, dict) and "$e" in text)]

    def _body(self, parts: Iterable[Any]) -> bytes:
        if self._most is None:
            return b"".join(map(self.recording.content, parts))
        body = b""
        for part in parts:
            body += b"" if len(body) >= KEPT else self._content(part, KEPT)
        return body

    def _content(self, value: Any, most: int) -> bytes:
        if _size(value) <= most:
            return self.recording.content(value)
        begins = self._beginning(value["$blob"], most)
        return _readable_beginning(begins).encode("utf-8", "replace") if value["$blob"]["type"] == JSON else begins

    def _beginning(self, reference: dict[str, Any], most: int) -> bytes:
        """The first `most` bytes of a content. No digest speaks for a part of one."""
        parts, left = [], most
        for part in self.recording.stream_blob(reference):
            parts.append(part[:left])
            left -= len(part)
            if left <= 0:
                break
        return b"".join(parts)


def decoded(body: bytes, data: Mapping[str, Any]) -> bytes:
    """A recorded body with the content encoding undone that the finished row's headers name, where that is possible."""
    headers = data.get("headers", ())
    encoding = next((value for name, value in headers if name.lower() == "content-encoding"), "identity")
    decode = DECODERS.get(encoding.strip().lower())
    if decode is None or "decoded" in data:
        return body
    try:
        return decode(body)
    except zlib.error:
        return b""  # the recorder could not look into it either; the bytes as they came are in the record


def _size(value: Any) -> int:
    """The size of a content that a row names, in bytes; 0 of what stands in the row itself."""
    reference = value.get("$blob") if isinstance(value, dict) else None
    size = reference.get("size") if isinstance(reference, dict) else 0
    return size if isinstance(size, int) else 0


def _readable_beginning(data: bytes) -> str:
    """The beginning of JSON as text: of a string what it says, as far as that came."""
    for back in range(_LONGEST_ESCAPE if data[:1] == b'"' else 0):
        try:
            return str(msgspec.json.decode(data[: len(data) - back] + b'"'))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return data.decode("utf-8", "replace")
