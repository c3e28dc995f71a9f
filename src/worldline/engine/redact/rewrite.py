"""The rows of a recording without what rules take out of them: each in its place, its digests those of the new bytes.

A call whose inputs changed gets the key of the new ones. What could only be a digest of bytes that are gone is dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine import clock
from worldline.engine.exchanges import CONTENTS
from worldline.engine.facts import response_facts
from worldline.engine.keeping import INLINE
from worldline.engine.redact.recontent import Contents
from worldline.engine.redact.recut import ROWS, Body, Part, digest, encoding_of, headers_of, opened
from worldline.engine.redact.requests import Requests, tier_of, with_facts, with_length
from worldline.engine.redact.rules import marker
from worldline.errors import Damaged
from worldline.model import canon, fields
from worldline.model.events import Event, encode_json
from worldline.model.manifest import FORMAT
from worldline.store import layout
from worldline.store.blobs import stream_blob
from worldline.store.recording import JSON, Recording

ABOUT = frozenset({"session", "task", "agent", "environment", "origin"})  # of the header: what people and machines said
BODY = frozenset({"body", "pieces"})  # of an answer
OURS = frozenset({"inputs", "headers", "tool_uses", "results", "unrecordable", "gen_ai.response.finish_reasons"})
FIXED = frozenset({"seq", "t", "dt", "sync", "kind", "src", "v", "call", "key", "mode", "effect"}) | {
    "parent_id",
    "action_id",
}
SMALL = 512  # bytes that a field has at least that is worth a content of its own
_raw = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raws = msgspec.json.Decoder(list[msgspec.Raw])


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
        self._requests = Requests(recording, contents)
        self._names: dict[str, str] = {}  # call -> the name of what was called, as recorded

    def row(self, event: Event) -> dict[str, bytes]:
        """The fields of the new row, encoded, in order; `sync` is that of the old one."""
        row = {name: bytes(value) for name, value in _raw.decode(event.raw).items() if name != "h"}
        members = {name: bytes(value) for name, value in _raw.decode(row["data"]).items()}
        data, key = self._data(event, members), event.keys.get("key")
        changed = data != members
        for name in [name for name in row if name not in FIXED and name != "data"]:
            row[name] = self._contents.own(row[name], fields=False)
        if key is not None:
            row["key"] = encode_json(self._key(event, members, data, row["lane"], key))
        if changed and data.get("arguments") != members.get("arguments"):
            row.pop("idempotency_key", None)  # made of the arguments, nobody knows how
        while changed and sum(map(len, data.values())) > INLINE:
            name = max(data, key=lambda one: len(data[one]))
            if len(data[name]) < SMALL:
                break  # so many fields that none of them is the large one
            data[name] = encode_json(self._keep.blob(data[name], JSON))
        while changed and (wrong := fields.unfit(event.name, msgspec.json.decode(_object(data.items())))) in data:
            data.pop(str(wrong))  # a marker, or what is not here any more, where readers rely on something else
        row["data"] = _object(data.items())
        self._contents.check(b"".join((row["lane"], row["data"])), f"row {event.seq}")
        return row

    def _data(self, event: Event, members: dict[str, bytes]) -> dict[str, bytes]:
        match event.name:
            case "meta/header":
                return self._header(event)
            case "decision/request":
                self._names[str(event.call)] = str(event.data.get("name"))
                new = {n: self._member(n, value) for n, value in members.items() if n != "body"}
                return self._requests.row(event, new) if "body" in members else new
            case "action/tool_call" | "observation/tool_result":
                self._names[str(event.call)] = str(event.data.get("name"))
                if (label := self._rules.tool(event.data.get("name"))) is not None:
                    members = self._tool(event, members, label)
        answer = event.name in ROWS and event.call is not None
        new = {n: value if answer and n in BODY else self._member(n, value) for n, value in members.items()}
        if event.seq in self._parts:
            return self._answer(event, new)
        # Looked into as a whole, and nothing of it goes: its contents only move.
        return new | {name: self._same(new[name]) for name in BODY & new.keys() if answer}

    def _same(self, value: bytes) -> bytes:
        reference = msgspec.json.decode(value)
        is_content = isinstance(reference, dict) and "$blob" in reference
        return self._contents.reference(reference["$blob"], None) if is_content else value

    def _member(self, name: str, value: bytes) -> bytes:
        if name == "error" and value[:1] == b"{":  # how a run ended is said in words
            return self._failure(value)
        content = name in CONTENTS or (name not in OURS and value[:1] in (b"{", b"["))
        return self._contents.own(value, fields=content, content=content)

    def _failure(self, value: bytes) -> bytes:
        """A failure as rows describe it: what its members hold is somebody's, their names are ours."""
        members = {name: bytes(raw) for name, raw in _raw.decode(value).items()}
        if "$blob" in members:
            reference = msgspec.json.decode(members["$blob"])
            label = self._rules.content(reference["name"])
            try:
                data = b"" if label else self._recording.blob(reference)
            except Damaged as lost:
                return encode_json({"type": "Unavailable", "message": f"[{lost.facts.get('state')}]", "args": None})
            if label:
                self._eraser.counts[label] += 1
                return encode_json({"type": "Unavailable", "message": marker(label), "args": None})
            new = self._failure(data)
            return encode_json(self._keep.blob(new, JSON, reference["tier"], new != data))
        parts = []
        for name, raw in members.items():
            if name == "exceptions":
                inner = [self._failure(bytes(one)) for one in _raws.decode(raw)]
                parts.append((name, b"[" + b",".join(inner) + b"]"))
            else:
                parts.append((name, self._contents.own(raw, content=True)))
        return _object(parts)

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
        said = {**event.data, **totals, "headers": headers_of(self._recording, event)}
        plain = opened(whole.data, encoding_of(said, whole.data))[0] or b""
        facts = response_facts(self._names.get(str(event.call), ""), said, plain)
        if "said_error" not in data:
            facts.pop("said_error", None)
        data = with_facts(data | {name: encode_json(value) for name, value in totals.items()}, facts)
        return with_length(data, len(whole.data))

    def _key(self, event: Event, before: Mapping[str, bytes], data: Mapping[str, bytes], lane: bytes, key: str) -> str:
        """The key of a call: that of its new inputs; where they are not here, one that says nothing of them."""
        kind, inputs, body, tier = event.kind, _of_lane(lane), None, layout.ORDINARY
        same = data.get("name") == before.get("name")
        if kind == "decision":
            inputs, form = data.get("inputs", b"{}"), msgspec.json.decode(data.get("body", b"{}"))
            same = same and inputs == before.get("inputs", b"{}")
            if "$withheld" not in form and "body" in data:
                tier, (old, body) = tier_of(form), self._requests.latest
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


def _object(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A JSON object of encoded members."""
    return b"{" + b",".join(encode_json(name) + b":" + value for name, value in members) + b"}"
