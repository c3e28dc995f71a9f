"""Where rules find what they take out of a text: of JSON, of a stream of events, of any bytes. All other bytes stay.

JSON is read value by value: texts as they read (their escapes undone), JSON inside a text as JSON again, and across
its structure only what is the same in any text: values of secrets, keys. A stream of events is read twice: each event
as JSON, and what its fragments spell together.
"""

from __future__ import annotations

import base64
import json
from binascii import Error as NotBase64
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from worldline.engine.assembled import BLANK, DATA, is_stream, strings
from worldline.engine.fragments import ended, fragments
from worldline.engine.redact.jsontext import Edit, Node, Text, applied, merged, raised, unescaped
from worldline.engine.redact.rules import Hit, Rules, is_picture, marker
from worldline.model.events import encode_json

GIVEN = frozenset({"arguments", "input", "args", "output", "result", "response", "error"})  # of a tool, beside its name
ANSWERED = frozenset({"content", "output", "result", "error"})  # of a tool, beside the id of its call
_CALL_IDS = ("tool_call_id", "tool_use_id", "toolUseId", "call_id")
_MEDIA_TYPES = ("media_type", "mimeType", "mime_type", "mediaType")
_ESCAPES = ("$b64", "$wtf8")
Replaced = Callable[[Any, bool], bytes]  # what stands for a content's reference in the derived record


class Eraser:
    """Applies the rules of one derivation and counts by their labels what went (`counts`)."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.counts: Counter[str] = Counter()
        self._calls: dict[str, str] = {}  # id of a tool call -> the label of the rule that its tool falls under

    def counted(self, edits: list[Edit]) -> list[Edit]:
        """The edits themselves, counted."""
        self.counts.update(edit.label for edit in edits if edit.label)
        return edits

    def called(self, identifier: object, name: object) -> None:
        """A model asked for a tool: what comes back under this id is its result."""
        label = self.rules.tool(name)
        if label is not None and isinstance(identifier, str) and identifier:
            self._calls[identifier] = label

    def learn(self, data: bytes) -> None:
        """Find the calls of tools in a message, so that their results are known before they come."""
        if not self.rules.tools:
            return
        with suppress(ValueError):
            text = Text(data)
            work = [text.root]
            while work:
                node = work.pop()
                work += node.items
                members = {name: value for name, _, value in text.named(node)} if node.kind == "o" else {}
                holder = members.get("function")
                inner = {n: v for n, _, v in text.named(holder)} if holder is not None and holder.kind == "o" else {}
                name = inner.get("name") or members.get("name")
                if name is not None and name.kind == "s":
                    for key in ("id", *_CALL_IDS):
                        if key in members and members[key].kind == "s":
                            self.called(_word(text, members[key]), _word(text, name))

    def body(self, data: bytes) -> list[Edit]:
        """What goes from a body: a stream of events, JSON, lines of JSON, or anything else."""
        if is_stream(data[:64]):
            return merged([edit for edits in _Stream(self, data).edits() for edit in edits])
        if _begins(data) in (b"{", b"[", b'"'):
            with suppress(ValueError):
                return self.json(data)
        if _begins(data) == b"{" and b"\n" in data.strip():
            return merged([edit for edits in self._lines(data) for edit in edits])
        return self.text(data)

    def _lines(self, data: bytes) -> Iterator[list[Edit]]:
        at = 0
        for line in data.splitlines(keepends=True):
            yield _shifted(self.inner(line), at)
            at += len(line)
        yield [_edit(hit) for hit in self.rules.in_bytes(data)]

    def text(self, data: bytes) -> list[Edit]:
        """What goes from bytes that are no JSON."""
        return merged([_edit(hit) for hit in (*self.rules.in_bytes(data), *self.rules.in_text(data))])

    def inner(self, data: bytes) -> list[Edit]:
        """What goes from a text inside another, which may be JSON itself."""
        if _begins(data) in (b"{", b"["):
            with suppress(ValueError):
                return self.json(data)
        return self.text(data)

    def json(
        self,
        data: bytes,
        *,
        own: Replaced | None = None,
        fields: bool = True,
        content: bool = True,
        skip: frozenset[tuple[int, int]] = frozenset(),
        label: str | None = None,
    ) -> list[Edit]:
        """What goes from a JSON text. Raises `ValueError` for what is none.

        `own` says that it has the escapes of our rows, and makes what stands for a `$blob`; `fields` whether members
        are looked at by their names, `content` whether its numbers and names are somebody's words, too; `skip` has
        strings whose text is looked at elsewhere; `label` makes the outermost object a tool's.
        """
        text = Text(data)
        edits: list[Edit] = []
        work = [text.root]
        while work:
            node = work.pop()
            if node.kind == "a":
                work += node.items
            elif node.kind == "s":
                edits += self._string(text, node, skip)
            elif node.kind == "v":
                said = data[node.start : node.end]
                edits += [_value(text, node, hit.label) for hit in self.rules.in_text(said) if content][:1]
            elif own is not None and (escape := self._escape(text, node, own, fields)) is not None:
                edits += escape
            else:
                gone = self._members(text, node, fields, own is not None)
                if label is not None and node is text.root:
                    gone |= {v: label for name, _, v in text.named(node) if name in GIVEN}
                edits += [_value(text, value, by) for value, by in gone.items() if not _is_marker(text, value, by)]
                work += [value for value in node.items if value not in gone]
                for key in node.keys if content else ():
                    edits += self._string(text, key, skip)
        return merged([*edits, *self._across(text, content)])

    def _members(self, text: Text, node: Node, fields: bool, own: bool) -> dict[Node, str]:
        """The values of an object that go by the names beside them, each with the label of its rule."""
        rules = self.rules
        gone: dict[Node, str] = {}
        label: str | None
        members = {name: value for name, _, value in text.named(node)}
        if rules.fields and fields:
            for name, _, value in text.named(node):
                plain = name[1:] if own and name.startswith("$$") else name
                if plain in rules.fields:
                    gone[value] = rules.fields[plain]
            if own and "$items" in members:
                for pair in members["$items"].items:
                    if len(pair.items) == 2 and (label := rules.fields.get(str(_word(text, pair.items[0])))):
                        gone[pair.items[1]] = label
        if rules.tools:
            label = rules.tool(_word(text, members.get("name")))
            if label is not None:
                given = GIVEN | ({"content"} if _word(text, members.get("role")) == "function" else set())
                gone |= {value: label for name, value in members.items() if name in given}
            for key in _CALL_IDS:
                if (answered := self._calls.get(str(_word(text, members.get(key))))) is not None:
                    gone |= {value: answered for name, value in members.items() if name in ANSWERED}
        if rules.pictures is not None and "data" in members:
            kinds = [str(_word(text, members.get(name))) for name in _MEDIA_TYPES]
            if any(kind.startswith("image/") for kind in kinds):
                gone[members["data"]] = rules.pictures
        return gone

    def _string(self, text: Text, node: Node, skip: frozenset[tuple[int, int]]) -> list[Edit]:
        start, end = text.inside(node)
        if (start, end) in skip:
            return []
        raw, said = text.data[start:end], text.said(node)
        if _begins(said) in (b"{", b"["):
            with suppress(ValueError):
                return raised(raw, self.json(said), start)
        if said == raw:  # what is to be found in any bytes is found in the whole text
            hits = (*self.rules.in_text(said), *self.rules.pictures_in(said))
            return merged([_edit(hit, start) for hit in hits])
        return raised(raw, self.text(said), start)

    def _across(self, text: Text, content: bool) -> Iterator[Edit]:
        """What goes from a JSON text whatever it is; where it would break a value, the whole value goes."""
        starts = [string.start for string in text.strings]
        for hit in self.rules.in_bytes(text.data):
            at = bisect_right(starts, hit.start) - 1
            if at >= 0:
                begin, end = text.inside(text.strings[at])
                if begin <= hit.start and hit.end <= end:
                    yield _edit(hit)
                    continue
            if content or text.around(hit.start, hit.end).kind != "v":
                yield _value(text, text.around(hit.start, hit.end), hit.label)

    def _escape(self, text: Text, node: Node, own: Replaced, fields: bool) -> list[Edit] | None:
        """What becomes of an object that stands for what JSON cannot say, or for a content; None for any other."""
        if len(node.keys) != 1 or len(node.items) != 1:
            return None
        name, value = text.said(node.keys[0]), node.items[0]
        if name == b"$blob" and value.kind == "o":
            reference = msgspec.json.decode(text.data[value.start : value.end])
            return [Edit(node.start, node.end, own(reference, fields), "")]
        if name in (b"$int", b"$f64") and value.kind == "s":
            said = text.said(value)
            return [_value(text, node, hit.label) for hit in (*self.rules.in_bytes(said), *self.rules.in_text(said))][
                :1
            ]
        if name.decode("utf-8", "replace") not in _ESCAPES or value.kind != "s":
            return None
        try:
            data = base64.b64decode(text.said(value), validate=True)
        except NotBase64:
            return None
        if self.rules.pictures is not None and is_picture(data):
            return [_value(text, node, self.rules.pictures)]
        edits = self.inner(data)
        if not edits:
            return []
        self.counts.update(edit.label for edit in edits[1:])  # the first is counted with what stands for all
        begin, end = text.inside(value)
        return [Edit(begin, end, base64.b64encode(applied(data, edits)), edits[0].label)]

    def taken_from(self, label: str, data: bytes) -> bytes:
        """What stands for a whole value that a rule takes, as JSON; what is that already stays, uncounted."""
        whole = encode_json(marker(label))
        self.counts[label] += data != whole
        return whole


class _Stream:
    """A stream of events, all there: its events as JSON, and what the fragments of each channel spell together."""

    def __init__(self, eraser: Eraser, data: bytes) -> None:
        self._eraser = eraser
        self._data = data
        self._open: dict[tuple[Hashable, ...], list[tuple[int, int]]] = {}  # a channel's fragments: where they stand
        self._tools: dict[tuple[Hashable, ...], str] = {}  # channel or group -> label, where a tool's arguments come
        self._spelled: list[list[Edit]] = []

    def edits(self) -> Iterator[list[Edit]]:
        """The edits, event by event and then what was spelled."""
        at = 0
        for blank in BLANK.finditer(self._data):
            yield self._event(at, blank.end())
            at = blank.end()
        yield self._event(at, len(self._data))
        self._close(None)
        yield from self._spelled
        yield [_edit(hit) for hit in self._eraser.rules.in_bytes(self._data)]

    def _event(self, start: int, end: int) -> list[Edit]:
        text = self._data[start:end]
        found = list(DATA.finditer(text.replace(b"\r", b"\n")))
        if len(found) != 1:
            return _shifted(self._eraser.text(text), start)
        begin, said = found[0].start(1), text[found[0].start(1) : found[0].end(1)]
        try:
            parsed = json.loads(said)
        except (ValueError, RecursionError):
            parsed = None
        around = [_edit(hit, start) for hit in self._eraser.rules.in_text(text[: found[0].start()])]
        if not isinstance(parsed, dict):
            return around + _shifted(self._eraser.inner(said), start + begin)
        self._eraser.learn(said)
        self._named(parsed)
        places, spelled = dict(strings(said)), set()
        for key, path, _ in fragments(parsed):
            first, behind = places[path]
            spelled.add((first, behind))
            self._open.setdefault(key, []).append((start + begin + first, start + begin + behind))
        label = self._tools.get((_index(parsed.get("output_index")),))
        edits = self._eraser.json(said, skip=frozenset(spelled), label=label)
        for group in ended(parsed):
            self._close(group)
        return around + _shifted(edits, start + begin)

    def _named(self, event: dict[str, Any]) -> None:
        """Remember the places in which the arguments of a tool will come."""
        rules = self._eraser.rules
        if not rules.tools:
            return
        named: list[tuple[tuple[Hashable, ...], Any]] = []
        for holder, place in (("content_block", "index"), ("item", "output_index")):
            named.append(((_index(event.get(place)),), _dict(event.get(holder)).get("name")))
        for number, choice in enumerate(_list(event.get("choices"))):
            delta, index = _dict(_dict(choice).get("delta")), _index(_dict(choice).get("index", number))
            named.append(((index, "call", _index(None)), _dict(delta.get("function_call")).get("name")))
            for at, call in enumerate(map(_dict, _list(delta.get("tool_calls")))):
                place_of = (index, "call", _index(call.get("index", at)))
                named += [(place_of, _dict(call.get(holder)).get("name")) for holder in ("function", "custom")]
        for key, name in named:
            if (label := rules.tool(name)) is not None:
                self._tools[key] = label

    def _close(self, group: Hashable) -> None:
        """Look at what the channels of a group spell, or all channels."""
        for key in [key for key in self._open if group is None or key[0] == group]:
            places = self._open.pop(key)
            raws = [self._data[a:b] for a, b in places]
            texts = [unescaped(raw) for raw in raws]
            whole = b"".join(texts)
            label = self._tools.get(key[:3]) or (self._tools.get(key[:1]) if _arguments(key) else None)
            if label is not None:
                edits = [Edit(0, len(whole), marker(label).encode("ascii"), label)]
            else:
                edits = self._eraser.inner(whole)
            self._spelled.append(list(_parted(edits, texts, raws, places)))


def _parted(edits: list[Edit], texts: list[bytes], raws: list[bytes], places: list[tuple[int, int]]) -> Iterator[Edit]:
    """Edits of a text that was said in parts, as edits of the parts: what comes in stands where it begins."""
    at = 0
    for text, raw, (start, _) in zip(texts, raws, places, strict=True):
        here = []
        for edit in edits:
            if edit.start < at + len(text) and at < edit.end:
                first = edit.start >= at
                inside = (max(edit.start - at, 0), min(edit.end - at, len(text)))
                here.append(Edit(*inside, edit.text if first else b"", edit.label if first else ""))
        yield from raised(raw, here, start)
        at += len(text)


def _begins(data: bytes) -> bytes:
    """The first character of a text that may be JSON."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")[:1]


def _edit(hit: Hit, shift: int = 0) -> Edit:
    return Edit(hit.start + shift, hit.end + shift, marker(hit.label).encode("ascii"), hit.label)


def _value(text: Text, node: Node, label: str) -> Edit:
    """A whole value gone: of a string its content, of anything else the value itself."""
    if node.kind == "s":
        return Edit(*text.inside(node), marker(label).encode("ascii"), label)
    return Edit(node.start, node.end, encode_json(marker(label)), label)


def _is_marker(text: Text, node: Node, label: str) -> bool:
    return node.kind == "s" and text.said(node) == marker(label).encode("ascii")


def _shifted(edits: list[Edit], by: int) -> list[Edit]:
    return [edit._replace(start=edit.start + by, end=edit.end + by) for edit in edits]


def _word(text: Text, node: Node | None) -> str | None:
    return text.said(node).decode("utf-8", "replace") if node is not None and node.kind == "s" else None


def _arguments(key: tuple[Hashable, ...]) -> bool:
    """Whether a channel is one of a tool's arguments."""
    kind = key[1] if len(key) > 1 else None
    return isinstance(kind, str) and (kind == "partial_json" or "arguments" in kind or "_input." in kind)


def _index(value: object) -> Hashable:
    return value if isinstance(value, int | str) else str(value)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
