"""A model request as chains of elements, so that turn n stores only what turn n added.

The body is cut at the byte spans of the elements of its top-level arrays (`messages`, `input`, `tools` ...); what is
left is the template. Joining gives back the exact bytes. Each array is a chain:

    c_0 = 32 zero bytes        c_i = SHA256(0x05 | c_{i-1} | SHA256(e_i))

Where the bodies are restricted content every hash is keyed with the tier's key, and the form says `"tier"`: then
`c_i = SHA256(0x05 | key | c_{i-1} | SHA256(e_i))`, and `context_hash` is HMAC-SHA256.

A request names the longest prefix that an earlier request had, and adds the rest. An element that stands elsewhere
already (a moved cache marker changes its neighbours, not it) is named by where it stands, never stored again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Any

import msgspec

from worldline.model.fields import is_element

ROOT = bytes(32)
MOST_BODY = 1 << 30  # bytes of a request that is rebuilt
_SPACE = re.compile(rb"[ \t\n\r]*")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_object_of_raw = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list_of_raw = msgspec.json.Decoder(list[msgspec.Raw])
TEMPLATE = -1  # the array index that names a request's template


class Array(msgspec.Struct, frozen=True):
    """One top-level array of a body: where it stood in the template, and its elements as bytes."""

    name: str
    at: int
    between: tuple[bytes, bytes, bytes]  # what stood after "[", between two elements, before "]"
    elements: tuple[bytes, ...]


class Cut(msgspec.Struct, frozen=True):
    """A body cut into its template and arrays."""

    template: bytes
    arrays: tuple[Array, ...]

    @property
    def size(self) -> int:
        """The size of the body, in bytes."""
        gaps = sum(
            len(first) + len(last) + len(gap) * max(0, len(elements) - 1)
            for (first, gap, last), elements in ((array.between, array.elements) for array in self.arrays)
        )
        return len(self.template) + gaps + sum(len(element) for array in self.arrays for element in array.elements)

    def join(self) -> bytes:
        """The exact bytes of the body."""
        parts, at = [], 0
        for array in self.arrays:
            first, between, last = array.between
            parts += [self.template[at : array.at], first, between.join(array.elements), last]
            at = array.at
        parts.append(self.template[at:])
        return b"".join(parts)


def cut(body: bytes) -> Cut:
    """Cut a JSON body at its top-level arrays. What cannot be cut exactly is one template without arrays."""
    try:
        result = _cut(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return Cut(body, ())
    return result if result.join() == body else Cut(body, ())


def _cut(body: bytes) -> Cut:
    kept, arrays, done, at = [], [], 0, 0
    position = _skip(body, 0, b"{")
    for name, raw in _object_of_raw.decode(body).items():
        position = _skip(body, position)
        key = _STRING.match(body, position)
        if key is None:
            raise ValueError("no key here: the object repeats one")
        position = _skip(body, key.end(), b":")
        value = bytes(raw)
        if value[:1] == b"[" and (array := _elements(name, value)) is not None:
            inside = body[done : position + 1]
            kept.append(inside)
            at += len(inside)
            arrays.append(Array(name, at, array[0], array[1]))
            done = position + len(value) - 1
        position = _skip(body, position + len(value))
        if body[position : position + 1] == b",":
            position += 1
    kept.append(body[done:])
    return Cut(b"".join(kept), tuple(arrays))


def _elements(name: str, text: bytes) -> tuple[tuple[bytes, bytes, bytes], tuple[bytes, ...]] | None:
    """The elements of one array's text and what stands around them; None where that differs from gap to gap."""
    elements = tuple(bytes(raw) for raw in _list_of_raw.decode(text))
    if not elements:
        return None
    position = _skip(text, 1)
    first, gaps = text[1:position], set()
    for index, element in enumerate(elements):
        start = position = position + len(element)
        position = _skip(text, position)
        if index + 1 < len(elements):
            position = _skip(text, position, b",")
            gaps.add(text[start:position])
    if len(gaps) > 1:
        return None
    return (first, gaps.pop() if gaps else b",", text[start:-1]), elements


def _skip(text: bytes, position: int, mark: bytes = b"") -> int:
    """The position after white space, and where `mark` is given after it and the white space behind it."""
    match = _SPACE.match(text, position)
    position = match.end() if match else position
    if not mark:
        return position
    if text[position : position + 1] != mark:
        raise ValueError(f"expected {mark!r} at {position}")
    return _skip(text, position + 1)


def follow(c: bytes, element: bytes, key: bytes = b"") -> bytes:
    """The chain's next value."""
    return hashlib.sha256(b"\x05" + key + c + hashlib.sha256(element).digest()).digest()


def context_hash(body: bytes, key: bytes = b"") -> str:
    """The hash that a request row carries and that a rebuilt request must meet: over the recorded bytes, in hex."""
    return hmac.new(key, body, hashlib.sha256).hexdigest() if key else hashlib.sha256(body).hexdigest()


class ContextWriter:
    """Encodes bodies for request rows, each against all it encoded before. Not thread-safe: the log's lock holds.

    `key` is the restricted tier's where the bodies belong to it.
    """

    def __init__(self, key: bytes = b"") -> None:
        self._key = key
        self._known: set[bytes] = set()
        self._stored: dict[bytes, list[Any]] = {}

    def encode(self, call: str, body: bytes) -> dict[str, Any]:
        """The row form of `body`, the request of `call`: hash, size, template and arrays with what they add.

        Texts are `bytes` where they are new and `{"$e": [call, array, index]}` where they stand already; the caller
        turns bytes into what a row can carry.
        """
        parts = cut(body)
        arrays = []
        for index, array in enumerate(parts.arrays):
            c, known = ROOT, 0
            for element in array.elements:
                after = follow(c, element, self._key)
                if after not in self._known:
                    break
                c, known = after, known + 1
            base = [c.hex(), known] if known else None
            add: list[Any] = []
            for element in array.elements[known:]:
                c = follow(c, element, self._key)
                self._known.add(c)
                add.append(self._place(element, call, index, len(add)))
            form = {"name": array.name, "at": array.at, "base": base, "add": add}
            if array.between != (b"", b",", b""):
                form["between"] = [gap.decode("ascii") for gap in array.between]
            arrays.append(form)
        template = self._place(parts.template, call, TEMPLATE, 0)
        tier = {"tier": "restricted"} if self._key else {}
        return {
            "context_hash": context_hash(body, self._key),
            "size": len(body),
            **tier,
            "template": template,
            "arrays": arrays,
        }

    def _place(self, text: bytes, call: str, array: int, index: int) -> Any:
        digest = hashlib.sha256(text).digest()
        place = self._stored.get(digest)
        if place is None:
            self._stored[digest] = [call, array, index]
            return text
        return {"$e": place}


class ContextReader:
    """Rebuilds bodies from request rows, fed in the order of the log.

    `load` turns a text as the row carries it (a string, `$b64`, a blob) into bytes; `load_add` does so for an array's
    whole `add` list; `key` is the restricted tier's, None where it is not at hand.
    """

    def __init__(self, load: Callable[[Any], bytes], load_add: Callable[[Any], Any], key: bytes | None = None) -> None:
        self._key = key
        self._load = load
        self._load_add = load_add
        self._nodes: dict[bytes, tuple[bytes, bytes]] = {}
        self._texts: dict[tuple[str, int, int], bytes] = {}

    def rebuild(self, call: str, form: dict[str, Any]) -> bytes:
        """The exact body that `call` sent. Raises `ValueError` where the form names what no row before it had."""
        arrays, key, size = [], self.key_of(form), 0
        for index, array in enumerate(form["arrays"]):
            c, known = (bytes.fromhex(array["base"][0]), array["base"][1]) if array["base"] else (ROOT, 0)
            elements, added = self._prefix(c, known), self._load_add(array["add"])
            if not (isinstance(added, list) and all(map(is_element, added))):
                raise ValueError("what a request adds is no list of texts")
            for place, text in enumerate(added):
                element = self._text(call, index, place, text)
                size += len(element)
                if size > MOST_BODY:  # few texts can be named very often
                    raise ValueError(f"a request of over {MOST_BODY:,} bytes")
                after = follow(c, element, key)
                self._nodes.setdefault(after, (c, element))
                c = after
                elements.append(element)
            gaps = [gap.encode("ascii") for gap in array.get("between", ("", ",", ""))]
            arrays.append(Array(array["name"], array["at"], (gaps[0], gaps[1], gaps[2]), tuple(elements)))
        parts = Cut(self._text(call, TEMPLATE, 0, form["template"]), tuple(arrays))
        if parts.size > MOST_BODY:
            raise ValueError(f"a request of {parts.size:,} bytes is over {MOST_BODY:,}")
        return parts.join()

    def key_of(self, form: dict[str, Any]) -> bytes:
        """What a form's hashes are keyed with. Raises `ValueError` where that is not at hand."""
        if form.get("tier") is None:
            return b""
        if not self._key:
            raise ValueError("the body is restricted content, and the tier's key is not here")
        return self._key

    def _prefix(self, c: bytes, known: int) -> list[bytes]:
        elements = []
        for _ in range(known):
            if c not in self._nodes:
                raise ValueError(f"the context {c.hex()} was never stored")
            c, element = self._nodes[c]
            elements.append(element)
        if c != ROOT:
            raise ValueError(f"the context's length {known} is not its depth")
        return elements[::-1]

    def _text(self, call: str, array: int, index: int, text: Any) -> bytes:
        if isinstance(text, dict) and "$e" in text:
            where = (text["$e"][0], text["$e"][1], text["$e"][2])
            if where not in self._texts:
                raise ValueError(f"the element {where} was never stored")
            return self._texts[where]
        loaded = self._texts[(call, array, index)] = self._load(text)
        return loaded
