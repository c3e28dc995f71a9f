"""JSON as text: what stands where in it, so that one value can be exchanged and no other byte changes.

Nothing is converted, and what is cut off somewhere (a stream that broke, arguments half said) is read as far as it
goes. No recursion: any depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(rb'"(?:[^"\\]+|\\.)*+(?:"|\\?\Z)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_BOM = b"\xef\xbb\xbf"
_SCALAR = re.compile(rb"-?[0-9][0-9.eE+\-]*|true|false|null|-?Infinity|NaN")
_BEGUN = re.compile(rb"-?[0-9IN][0-9a-zA-Z.+\-]*|-|[tfn][a-z]{0,4}")  # one that is cut off
_UNIT = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]+", re.DOTALL
)


class Edit(NamedTuple):
    """Bytes that others come in place of. `label` is the rule that took them, empty where none did."""

    start: int
    end: int
    text: bytes
    label: str


class Node:
    """A value: kind `o` (object), `a` (array), `s` (string) or `v` (number, word), and where it stands."""

    __slots__ = ("end", "items", "keys", "kind", "start")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.keys: list[Node] = []
        self.items: list[Node] = []


class Text:
    """A JSON text: its `root`, and its strings in order. Raises `ValueError` for what neither is nor begins as one."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.strings: list[Node] = []
        self.root = self._read()

    def _read(self) -> Node:
        at = len(_BOM) if self.data.startswith(_BOM) else 0
        top = Node("a", 0, len(self.data))
        stack, wants = [top], "value"
        for token in _TOKEN.finditer(self.data, at):
            if token.start() != at and self.data[at : token.start()].strip(b" \t\r\n"):
                raise ValueError(f"no JSON at {at}")
            at, mark, holder = token.end(), token[0], stack[-1]
            if mark in (b"}", b"]"):
                if len(stack) == 1 or (mark == b"}") != (holder.kind == "o"):
                    raise ValueError(f"a bracket too many at {token.start()}")
                stack.pop().end = at
                wants = "more"
            elif mark == b"," or mark == b":":
                if wants != ("more" if mark == b"," else "colon") or len(stack) == 1:
                    raise ValueError(f"no JSON at {token.start()}")
                wants = "key" if mark == b"," and holder.kind == "o" else "value"
            else:
                wants = self._value(mark, token.span(), stack, wants)
        if self.data[at:].strip(b" \t\r\n") or len(top.items) != 1:
            raise ValueError(f"no JSON at {at}")
        return top.items[0]

    def _value(self, mark: bytes, span: tuple[int, int], stack: list[Node], wants: str) -> str:
        """Take a value or a key; returns what may come behind it."""
        holder, kind = stack[-1], {b"{": "o", b"[": "a"}.get(mark, "s" if mark[:1] == b'"' else "v")
        named = holder.kind == "o" and wants in ("key", "first")
        if wants in ("more", "colon") or (named and kind != "s") or (len(stack) == 1 and holder.items):
            raise ValueError(f"no JSON at {span[0]}")
        cut = len(stack) > 1 and span[1] == len(self.data) and _BEGUN.fullmatch(mark)
        if kind == "v" and not _SCALAR.fullmatch(mark) and not cut:
            raise ValueError(f"no JSON at {span[0]}")
        node = Node(kind, *span)
        (holder.keys if named else holder.items).append(node)
        if kind == "s":
            self.strings.append(node)
        if kind in ("o", "a"):
            node.end = len(self.data)  # until its bracket comes
            stack.append(node)
            return "first"
        return "colon" if named else "more"

    def inside(self, string: Node) -> tuple[int, int]:
        """Where a string's content stands, its quotes left out."""
        closed = string.end - string.start > 1 and self.data[string.end - 1 : string.end] == b'"'
        return string.start + 1, string.end - (1 if closed else 0)

    def said(self, string: Node) -> bytes:
        """The text of a string, as UTF-8 (surrogates kept); as it stands there where it cannot be unescaped."""
        start, end = self.inside(string)
        return unescaped(self.data[start:end])

    def named(self, node: Node) -> Iterator[tuple[str, Node, Node]]:
        """The members of an object: name, key and value."""
        for key, value in zip(node.keys, node.items, strict=False):
            yield self.said(key).decode("utf-8", "replace"), key, value

    def around(self, start: int, end: int) -> Node:
        """The smallest value that holds a stretch."""
        node = self.root
        while True:
            inner = next((n for n in (*node.items, *node.keys) if n.start <= start and end <= n.end), None)
            if inner is None:
                return node
            node = inner


def unescaped(raw: bytes) -> bytes:
    """The content of a JSON string as UTF-8."""
    if b"\\" not in raw:
        return raw
    try:
        text: str = json.loads(b'"' + raw + b'"', strict=False)
    except ValueError:
        return raw
    return text.encode("utf-8", "surrogatepass")


def escaped(text: bytes) -> bytes:
    """ASCII as the content of a JSON string."""
    return json.dumps(text.decode("ascii"))[1:-1].encode("ascii")


def raised(raw: bytes, edits: Sequence[Edit], start: int) -> list[Edit]:
    """Edits of a string's text as edits of its JSON spelling `raw`, which stands at `start`."""
    if not edits:
        return []
    if b"\\" not in raw or unescaped(raw) == raw:
        return [Edit(start + e.start, start + e.end, escaped(e.text), e.label) for e in edits]
    places = sorted({place for edit in edits for place in (edit.start, edit.end)})
    found: dict[int, int] = {}
    at = 0
    for unit in _UNIT.finditer(raw):
        size = len(unescaped(unit[0]))
        while places and places[0] < at + size:
            place = places.pop(0)
            # A place in the midst of a character that is escaped goes behind it.
            found[place] = (
                unit.start() + (place - at) if size == len(unit[0]) else (unit.start() if place == at else unit.end())
            )
        at += size
    found |= dict.fromkeys(places, len(raw))
    return [Edit(start + found[e.start], start + found[e.end], escaped(e.text), e.label) for e in edits]


def merged(edits: Sequence[Edit]) -> list[Edit]:
    """Edits in order, none inside another; of two that overlap the first is made as long as both."""
    out: list[Edit] = []
    for edit in sorted(edits, key=lambda e: (e.start, -e.end)):
        if not out or edit.start >= out[-1].end:
            out.append(edit)
        elif edit.end > out[-1].end:
            out[-1] = out[-1]._replace(end=edit.end)
    return out


def applied(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The text that edits, in order, make of another."""
    parts, at = [], 0
    for edit in edits:
        parts += [data[at : edit.start], edit.text]
        at = edit.end
    return b"".join([*parts, data[at:]])


def moved(edits: Sequence[Edit], places: Sequence[int]) -> list[int]:
    """Where places (ascending) of the old text are in the new one; one inside an edit is behind what came for it."""
    out, shift, at = [], 0, 0
    for place in places:
        while at < len(edits) and edits[at].end <= place:
            shift += len(edits[at].text) - (edits[at].end - edits[at].start)
            at += 1
        inside = at < len(edits) and edits[at].start < place
        out.append((edits[at].start + len(edits[at].text) if inside else place) + shift)
    return out
