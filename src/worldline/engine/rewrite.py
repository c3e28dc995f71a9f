"""The rows of a recording without what rules take out of them: each in its place, its digests those of the new bytes.

Requests are rebuilt, redacted element by element and stored as chains anew; a call whose inputs changed gets the key of
the new ones. What could only be a digest of bytes that are gone is dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine import clock
from worldline.engine.erase import Eraser
from worldline.engine.exchanges import CONTENTS
from worldline.engine.facts import request_facts, response_facts
from worldline.engine.jsontext import Edit, applied, moved
from worldline.engine.keeping import INLINE, JSON
from worldline.engine.recontent import Contents
from worldline.engine.recut import Body, Part, digest, encoding_of, opened, withheld
from worldline.engine.rules import UNREADABLE, marker
from worldline.errors import Damaged
from worldline.model import canon
from worldline.model.chain import Array, ContextReader, Cut, cut
from worldline.model.events import Event, encode_json
from worldline.model.manifest import FORMAT
from worldline.store import layout
from worldline.store.blobs import stream_blob
from worldline.store.recording import Recording

ABOUT = frozenset({"session", "task", "agent", "environment", "origin"})  # of the header: what people and machines said
BODY = frozenset({"body", "pieces"})  # of an answer
OURS = frozenset({"inputs", "headers", "tool_uses", "results", "unrecordable", "gen_ai.response.finish_reasons"})
FAILURE = frozenset({"type", "message", "args", "attributes", "group", "exceptions"})
FIXED = frozenset({"seq", "t", "dt", "sync", "kind", "src", "v", "call", "key", "mode", "effect"}) | {
    "parent_id",
    "action_id",
}
JOINT = 4096  # bytes at the end of one element and the beginning of the next that are looked at together
SMALL = 512  # bytes that a field has at least that is worth a content of its own
_raw = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FACTS = ("tool_uses", "said_error", "results", "server_held")


class Rewriter:
    """Rewrites the rows of one recording, fed in order, for the attempt directory that they will stand in.

    `parts` and `bodies` are what `recut` planned for answers.
    """

    def __init__(
        self,
        recording: Recording,
        attempt: Path,
        contents: Contents,
        parts: dict[int, Part],
        bodies: dict[int, Body],
    ) -> None:
        self._attempt = attempt
        self._recording = recording
        self._contents = contents
        self._eraser = contents.eraser
        self._rules = contents.eraser.rules
        self._keep = contents.keep
        self._parts, self._bodies = parts, bodies
        self._reader = ContextReader(recording.content, recording.loaded, recording.tier_key)
        self._elements: dict[bytes, bytes] = {}
        self._neighbours: set[tuple[int, int]] = set()
        self._requested: tuple[bytes, bytes] = (b"", b"")  # the latest request's body, before and after
        self._names: dict[str, str] = {}  # call -> the name of what was called, as recorded
        self._results: set[str] = set()
        self._lost = "withheld"  # what became of the latest part of a request that is not here
        self._named_contents = _context_contents(recording, contents.eraser)

    def row(self, event: Event) -> dict[str, bytes]:
        """The fields of the new row, encoded, in order; `sync` is that of the old one."""
        fields = {name: bytes(value) for name, value in _raw.decode(event.raw).items() if name != "h"}
        members = {name: bytes(value) for name, value in _raw.decode(fields["data"]).items()}
        data, key = self._data(event, members), event.keys.get("key")
        changed = data != members
        for name in [name for name in fields if name not in FIXED and name != "data"]:
            fields[name] = self._contents.own(fields[name], fields=False)
        if key is not None:
            fields["key"] = encode_json(self._key(event, members, data, fields["lane"], key))
        if changed and data.get("arguments") != members.get("arguments"):
            fields.pop("idempotency_key", None)  # made of the arguments, nobody knows how
        while changed and sum(map(len, data.values())) > INLINE:
            name = max(data, key=lambda one: len(data[one]))
            if len(data[name]) < SMALL:
                break  # so many fields that none of them is the large one
            data[name] = encode_json(self._keep.blob(data[name], JSON))
        fields["data"] = b"{" + b",".join(encode_json(n) + b":" + text for n, text in data.items()) + b"}"
        self._contents.check(b"".join((fields["lane"], fields["data"])), f"row {event.seq}")
        return fields

    def _data(self, event: Event, members: dict[str, bytes]) -> dict[str, bytes]:
        match event.name:
            case "meta/header":
                return self._header(event)
            case "decision/request":
                return self._request(event, members)
            case "action/tool_call" | "observation/tool_result":
                self._names[str(event.call)] = str(event.data.get("name"))
                if (label := self._rules.tool(event.data.get("name"))) is not None:
                    members = self._tool(event, members, label)
        whole = event.seq in self._parts
        new = {n: value if whole and n in BODY else self._member(n, value) for n, value in members.items()}
        return self._answer(event, new) if whole else new

    def _member(self, name: str, value: bytes) -> bytes:
        if name in BODY:  # looked into as a whole, and nothing of it goes; its contents only move
            reference = msgspec.json.decode(value)
            is_content = isinstance(reference, dict) and "$blob" in reference
            return self._contents.reference(reference["$blob"], None) if is_content else value
        if name == "error":
            return self._contents.own(value, spared=FAILURE)
        content = name in CONTENTS or (name not in OURS and value[:1] in (b"{", b"["))
        return self._contents.own(value, fields=content, content=content)

    def _header(self, event: Event) -> dict[str, bytes]:
        data = {name: encode_json(value) for name, value in event.data.items()}
        for name in ABOUT & data.keys():
            data[name] = self._contents.own(data[name], fields=False)
        # With the source's nonce, whoever guesses what is gone could build the source again and compare its seal.
        return {**data, "format": encode_json(FORMAT), "nonce": encode_json(clock.nonce())}

    def _tool(self, event: Event, members: dict[str, bytes], label: str) -> dict[str, bytes]:
        """A tool's row without what the tool was given, gave back, and failed with."""
        new = dict(members)
        for name in ("arguments", "result"):
            if name in new:
                new[name] = self._eraser.taken_from(label, new[name])
        if "error" in new:
            try:
                kind = str(self._recording.loaded(event.data["error"])["type"])
            except (Damaged, LookupError, TypeError):
                kind = "Exception"
            failure = {"type": kind, "message": marker(label), "args": None}
            self._eraser.counts[label] += encode_json(failure) != new["error"]
            new["error"] = encode_json(failure)
        return new

    def _answer(self, event: Event, data: dict[str, bytes]) -> dict[str, bytes]:
        """A row of an answer whose body changed: its part of it, and in the last row what follows from the whole."""
        part, whole = self._parts[event.seq], self._bodies.get(event.seq)
        if part.named:
            data["body"] = encode_json(part.lost or self._keep.text(part.body, part.tier))
        if "pieces" in data:
            data["pieces"] = encode_json(part.pieces)
        self._contents.check(part.body, f"row {event.seq}")
        if whole is None:
            return data
        self._contents.check(whole.data, f"the answer of row {event.seq}")
        size = len(whole.data) + event.data.get("body_lost", 0)
        totals: dict[str, Any] = {"body_size": size, "body_pieces": whole.pieces}
        if whole.whole and "body_sha256" in data:
            totals["body_sha256"] = digest(whole.data)
        else:
            data.pop("body_sha256", None)
        if whole.decoded is not None:
            totals["decoded"] = whole.decoded
        said = {**event.data, **totals}
        plain = opened(whole.data, encoding_of(msgspec.structs.replace(event, data=said), whole.data))[0] or b""
        facts = response_facts(self._names.get(str(event.call), ""), said, plain)
        if "said_error" not in data:
            facts.pop("said_error", None)
        data = _with_facts(data | {name: encode_json(value) for name, value in totals.items()}, facts)
        return _with_length(data, len(whole.data))

    def _request(self, event: Event, members: dict[str, bytes]) -> dict[str, bytes]:
        name = self._names[str(event.call)] = str(event.data.get("name"))
        data = {n: self._member(n, value) for n, value in members.items() if n != "body"}
        if "body" not in members:
            return data
        try:
            form = self._recording.loaded(event.data["body"])
        except Damaged as error:
            self._lost = str(error.facts.get("state"))
            return data | {"body": encode_json(withheld(event.data["body"]["$blob"], error))}
        if "context_hash" not in form:  # withheld when it was recorded: nothing but a commitment
            self._results.update(event.data.get("results", ()))
            return data | {"body": members["body"]}
        try:
            body = self._reader.rebuild(str(event.call), form)
        except Damaged as error:
            self._lost = str(error.facts.get("state"))
            return data | {"body": encode_json(withheld(form, error))}
        except ValueError:  # it builds on what is not here
            return data | {"body": encode_json({"$withheld": {"size": form["size"], "state": self._lost}})}
        new = self._erased(event, body)
        if new != body:
            data = _with_length(_with_facts(data, request_facts(name, new, self._results)), len(new))
        self._results.update(self._recording.loaded(event.data.get("results", [])))
        self._requested = (body, new)
        return data | {"body": encode_json(self._keep.body(str(event.call), new, _tier(form)))}

    def _erased(self, event: Event, body: bytes) -> bytes:
        """A request's body without what goes."""
        plain, _ = opened(body, encoding_of(event, body))
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

    def _key(self, event: Event, before: Mapping[str, bytes], data: Mapping[str, bytes], lane: bytes, key: str) -> str:
        """The key of a call: that of its new inputs; where they are not here, one that says nothing of them."""
        kind, inputs, body, tier = event.kind, _of_lane(lane), None, layout.ORDINARY
        same = data.get("name") == before.get("name")
        if kind == "decision":
            inputs, form = data.get("inputs", b"{}"), msgspec.json.decode(data.get("body", b"{}"))
            same = same and inputs == before.get("inputs", b"{}")
            if "$withheld" not in form and "body" in data:
                tier, (old, body) = _tier(form), self._requested
                same = same and old == body
        elif kind == "action":
            inputs = data.get("arguments", b"{}")
            form = msgspec.json.decode(inputs)
            same = same and inputs == before.get("arguments", b"{}")
            if isinstance(form, dict) and "$blob" in form:
                tier, inputs = form["$blob"]["tier"], b"".join(stream_blob(self._attempt, form["$blob"]))
        elif event.name != "observation/sample" or key != _sampled(event.data.get("name"), encode_json(event.lane)):
            # Of what it was made nobody knows.
            return canon.op_key(kind, "", str(event.call).encode())
        else:
            form, same = None, same and lane == encode_json(event.lane)
        if isinstance(form, dict) and "$withheld" in form:
            return key if "hmac" in form["$withheld"] else canon.op_key(kind, "", str(event.call).encode())
        if same and tier == layout.ORDINARY:
            return key
        hashed = hashlib.sha256(canon.canonical(canon.parse(inputs)))
        if body is not None:
            with suppress(ValueError):  # no JSON: the bytes themselves
                body = canon.canonical(canon.parse(body))
            hashed.update(b"\x00" + body)
        name = str(msgspec.json.decode(data["name"])) if "name" in data else ""
        return self._keep.key(canon.op_key(kind, name, hashed.digest()), tier)


def _of_lane(lane: bytes) -> bytes:
    """What a sample of clock or chance is asked with."""
    return b'{"lane":' + lane + b"}"


def _sampled(name: object, lane: bytes) -> str:
    """The key of a sample of clock or chance."""
    hashed = hashlib.sha256(canon.canonical(canon.parse(_of_lane(lane))))
    return canon.op_key("observation", str(name), hashed.digest())


def _with_length(data: dict[str, bytes], size: int) -> dict[str, bytes]:
    """A row's members with a `Content-Length` that says how long its body is now."""
    if "headers" not in data or b"ontent-" not in data["headers"].lower():
        return data
    headers = msgspec.json.decode(data["headers"])
    told = [[n, str(size) if n.lower() == "content-length" else v] for n, v in headers] if _pairs(headers) else headers
    return data | {"headers": encode_json(told)}


def _pairs(headers: Any) -> bool:
    return isinstance(headers, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in headers)


def _tier(form: Mapping[str, Any]) -> str:
    return str(form.get("tier") or layout.ORDINARY)


def _with_facts(data: dict[str, bytes], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """A row's members with the facts that its new body gives, in the places of the old ones."""
    kept = {
        name: encode_json(facts[name]) if name in facts else value
        for name, value in data.items()
        if name in facts or not (name in _FACTS or name.startswith("gen_ai."))
    }
    return kept | {name: encode_json(value) for name, value in facts.items() if name not in kept}


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
