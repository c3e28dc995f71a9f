"""Requests of a recording, rebuilt, redacted element by element, and stored as chains anew.

An element is redacted once, however many requests repeat it. What builds on a content that the source does not have
any more is stood for by its size: its hash would be one of bytes that nobody could look into.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec

from worldline.engine.facts import Told, request_facts
from worldline.engine.redact.erase import Eraser
from worldline.engine.redact.jsontext import Edit, applied, moved
from worldline.engine.redact.recontent import Contents
from worldline.engine.redact.recut import encoding_of, headers_of, listed, odd, opened, withheld
from worldline.engine.redact.rules import UNREADABLE, marker
from worldline.errors import Damaged
from worldline.model import fields
from worldline.model.chain import Array, ContextReader, Cut, cut
from worldline.model.events import Event, encode_json
from worldline.store import layout
from worldline.store.recording import JSON, Recording

JOINT = 4096  # bytes at the end of one element and the beginning of the next that are looked at together
_FACTS = ("tool_uses", "said_error", "results", "server_held")


class Requests:
    """The requests of one recording, fed in order. `latest` is the last one's body, before and after."""

    def __init__(self, recording: Recording, contents: Contents) -> None:
        self._recording = recording
        self._contents = contents
        self._eraser = contents.eraser
        self._rules = contents.eraser.rules
        self._reader = ContextReader(recording.content, recording.loaded, recording.tier_key)
        self._elements: dict[bytes, bytes] = {}
        self._neighbours: set[tuple[int, int]] = set()
        self._told = Told()
        self._lost = "withheld"  # what became of the latest part of a request that is not here
        self._named_contents = _context_contents(recording, contents.eraser)
        self.latest: tuple[bytes, bytes] = (b"", b"")

    def row(self, event: Event, data: dict[str, bytes]) -> dict[str, bytes]:
        """A request's row, whose other members are redacted already, with its body."""
        try:
            form = self._recording.loaded(event.data["body"])
        except Damaged as lost:
            return self._without(data, event.data["body"]["$blob"], lost)
        if fields.unfit(event.name, {"body": form}):
            raise odd(event)
        before = [str(result) for result in listed(self._recording, event, "results")]
        if "context_hash" not in form:  # withheld when it was recorded: nothing but a commitment
            self._told.seen.update(before)
            return data | {"body": encode_json(form)}
        try:
            body = self._reader.rebuild(str(event.call), form)
        except (Damaged, ValueError) as lost:
            return self._without(data, form, lost)
        new = self._erased(event, body)
        if new != body:
            told = request_facts(str(event.data.get("name")), new, self._told, str(event.data.get("path", "")))
            data = with_length(with_facts(data, told), len(new))
        self._told.seen.update(before)
        self.latest = (body, new)
        return data | {"body": encode_json(self._contents.keep.body(str(event.call), new, tier_of(form)))}

    def _without(self, data: dict[str, bytes], told: Mapping[str, Any], lost: Exception) -> dict[str, bytes]:
        """A row whose body is not here; a `ValueError` says that it builds on one that is not."""
        if isinstance(lost, Damaged):
            self._lost = str(lost.facts.get("state"))
        return data | {"body": encode_json(withheld(told, self._lost))}

    def _erased(self, event: Event, body: bytes) -> bytes:
        """A request's body without what goes."""
        plain, _ = opened(body, encoding_of({"headers": headers_of(self._recording, event)}, body))
        if plain is None:
            if not self._rules.look_inside:
                return body
            self._eraser.counts[UNREADABLE] += 1
            return marker(UNREADABLE).encode("ascii")
        parts = cut(plain)
        new = self._joined(parts) if parts.arrays else None
        if new is None:
            edits = self._eraser.counted(self._named(plain) or self._eraser.body(plain))
            new = applied(plain, edits)
            self._contents.check(new, f"the request of row {event.seq}")
        return new if new != plain else body

    def _joined(self, parts: Cut) -> bytes | None:
        """A body of elements, each redacted once however often it is sent; None where a value stands across two."""
        arrays = [
            msgspec.structs.replace(array, elements=tuple(map(self._element, array.elements))) for array in parts.arrays
        ]
        if any(self._across(array) for array in arrays):
            return None
        edits = self._named(parts.template) or self._eraser.json(parts.template)
        places = moved(edits, [array.at for array in arrays])
        left: list[Array] = [
            msgspec.structs.replace(array, at=at)
            for array, at in zip(arrays, places, strict=True)
            if not any(edit.start < array.at < edit.end for edit in edits)
        ]
        template = applied(parts.template, edits)
        if self._elements.setdefault(parts.template, template) is template:
            self._eraser.counted(edits)
        return Cut(template, tuple(left)).join()

    def _element(self, element: bytes) -> bytes:
        known = self._elements.get(element)
        if known is None:
            self._eraser.learn(element)
            edits = self._eraser.counted(self._named(element) or self._eraser.json(element))
            known = self._elements[element] = applied(element, edits)
            self._contents.check(known, "an element of a request")
        return known

    def _across(self, array: Array) -> bool:
        """Whether a value that is to go stands across two elements. Each two neighbours are looked at once."""
        found = False
        for before, after in pairwise(array.elements):
            if (id(before), id(after)) not in self._neighbours:  # they stay: `_elements` holds them
                joint = before[-JOINT:] + array.between[1] + after[:JOINT]
                found = found or self._rules.residue(joint) is not None
                if not found:
                    self._neighbours.add((id(before), id(after)))
        return found

    def _named(self, text: bytes) -> list[Edit]:
        """The whole text, where a rule takes the content that it stands in."""
        label = self._named_contents.get(hashlib.sha256(text).digest())
        return [] if label is None else [Edit(0, len(text), encode_json(marker(label)), label)]


def with_facts(data: dict[str, bytes], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """A row's members with the facts that its new body gives, in the places of the old ones."""
    kept = {
        name: encode_json(facts[name]) if name in facts else value
        for name, value in data.items()
        if name in facts or not (name in _FACTS or name.startswith("gen_ai."))
    }
    return kept | {name: encode_json(value) for name, value in facts.items() if name not in kept}


def with_length(data: dict[str, bytes], size: int) -> dict[str, bytes]:
    """A row's members with a `Content-Length` that says how long its body is now."""
    if "headers" not in data or b"ontent-" not in data["headers"].lower():
        return data
    headers = msgspec.json.decode(data["headers"])
    told = [[n, str(size) if n.lower() == "content-length" else v] for n, v in headers] if _pairs(headers) else headers
    return data | {"headers": encode_json(told)}


def _pairs(headers: Any) -> bool:
    return isinstance(headers, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in headers)


def tier_of(form: Mapping[str, Any]) -> str:
    """The tier that a request's body belongs to."""
    return str(form.get("tier") or layout.ORDINARY)


def _context_contents(recording: Recording, eraser: Eraser) -> dict[bytes, str]:
    """The texts of requests that stand in contents which a rule names: {SHA-256: label}."""
    found: dict[bytes, str] = {}
    if not eraser.rules.contents:
        return found
    for event in recording.events():
        if event.name == "decision/request" and "body" in event.data:
            with suppress(Damaged):
                form = recording.loaded(event.data["body"])
                reference = event.data["body"].get("$blob")
                whole = eraser.rules.content(reference["name"]) if reference is not None else None
                for held in (form.get("template"), *(array["add"] for array in form.get("arrays", ()))):
                    found |= _texts_of(recording, eraser, held, whole)
    return found


def _texts_of(recording: Recording, eraser: Eraser, held: Any, whole: str | None) -> dict[bytes, str]:
    """The new texts of a part of a request, if a rule names the content that holds them, or (`whole`) all parts."""
    reference = held.get("$blob") if isinstance(held, dict) else None
    label = whole or (eraser.rules.content(reference["name"]) if reference is not None else None)
    if label is None:
        return {}
    loaded = recording.loaded(held) if reference is not None and reference["type"] == JSON else held
    texts = loaded if isinstance(loaded, list) else [loaded]
    own = [text for text in texts if not (isinstance(text, dict) and "$e" in text)]
    return {hashlib.sha256(recording.content(text)).digest(): label for text in own}
