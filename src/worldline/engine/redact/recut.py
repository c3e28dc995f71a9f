"""Bodies of answers, each redacted as the one text that it is, and cut again into the rows that it stands in.

What goes may begin in one row and end in another: what comes for it stands where it began, the rows keep the rest, and
every transfer border inside it moves behind it. A compressed body is looked into; where something goes from it, it is
kept decoded. One that nobody can look into goes whole.
"""

from __future__ import annotations

import codecs
import hashlib
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from worldline.engine.codings import DECODERS
from worldline.engine.redact.erase import Eraser
from worldline.engine.redact.jsontext import Edit, applied, merged, moved
from worldline.engine.redact.rules import UNREADABLE, marker
from worldline.errors import Damaged, Ineligible
from worldline.model import fields
from worldline.model.events import Event
from worldline.store import layout
from worldline.store.recording import Recording

ROWS = ("decision/chunk", "decision/response")


class Part(msgspec.Struct):
    """What one row holds of a body, before and after. `lost` stands where the content itself is not here."""

    seq: int
    body: bytes
    pieces: list[list[int]]
    tier: str
    lost: dict[str, Any] | None = None
    label: str | None = None  # of the rule that takes the content by its name
    named: bool = True  # whether the row has the field at all


class Body(NamedTuple):
    """A changed body whole: its bytes, its pieces, and the encoding that it was decoded from, if any."""

    data: bytes
    pieces: int
    decoded: str | None
    whole: bool


def recut(recording: Recording, eraser: Eraser) -> tuple[dict[int, Part], dict[int, Body]]:
    """The parts of all bodies that change, by the seq of their rows, and the bodies, by that of their last row."""
    parts: dict[int, Part] = {}
    bodies: dict[int, Body] = {}
    for rows, last in _bodies(recording, eraser):
        said = None if last is None else {**last.data, "headers": headers_of(recording, last)}
        changed = _changed(rows, said, eraser)
        if changed is not None:
            parts |= {part.seq: part for part in rows}
            if last is not None:
                bodies[last.seq] = changed
    return parts, bodies


def _bodies(recording: Recording, eraser: Eraser) -> Iterator[tuple[list[Part], Event | None]]:
    """Each call's parts and its finished row: None of one that never ended."""
    under_way: dict[str, list[Part]] = {}
    for event in recording.events():
        if event.name in ROWS and event.call is not None:
            rows = under_way.setdefault(event.call, [])
            rows.append(_part(recording, event, eraser))
            if event.name == "decision/response":
                for use in listed(recording, event, "tool_uses"):
                    if isinstance(use, dict):
                        eraser.called(use.get("id"), use.get("name"))
                yield under_way.pop(event.call), event
    for rows in under_way.values():
        yield rows, None


def _part(recording: Recording, event: Event, eraser: Eraser) -> Part:
    value = event.data.get("body")
    reference = value.get("$blob", {}) if isinstance(value, dict) else {}
    part = Part(event.seq, b"", [], reference.get("tier", layout.ORDINARY), named=value is not None)
    try:
        pieces = recording.loaded(event.data.get("pieces", []))
        if fields.unfit(event.name, {"pieces": pieces}):
            raise odd(event)
        part.pieces = [list(piece) for piece in pieces]
        part.body = recording.content(value) if value is not None else b""
    except Damaged as error:
        part.lost = withheld(reference, error.facts.get("state"))
    if isinstance(value, dict) and "$withheld" in value:
        part.lost = value
    if reference:
        part.label = eraser.rules.content(reference["name"])
    return part


def listed(recording: Recording, event: Event, name: str) -> list[Any]:
    """A list that a row says, loaded; an empty one where it is not here any more, or none."""
    try:
        found = recording.loaded(event.data.get(name, []))
    except Damaged:
        return []
    return found if isinstance(found, list) else []


def withheld(reference: Mapping[str, Any], state: object) -> dict[str, Any]:
    """What stands in a derived record for a content that its source does not have any more: no digest of it."""
    return {"$withheld": {"size": reference.get("size", 0), "state": str(state)}}


def _changed(rows: list[Part], last: Mapping[str, Any] | None, eraser: Eraser) -> Body | None:
    """Redact a body; its parts become what their rows will hold. None where nothing changes."""
    data = b"".join(part.body for part in rows)
    plain, encoding = opened(data, encoding_of(last, data))
    edits: list[Edit] = []
    if plain is not None:
        edits = eraser.body(plain)
    elif eraser.rules.look_inside and data:
        edits = [Edit(0, len(data), marker(UNREADABLE).encode("ascii"), UNREADABLE)]
    if plain is None or plain is data or not edits:  # nothing was decoded that would have to be kept so
        plain, edits = data, merged([*_taken(rows), *edits])
    lost = any(part.lost is not None and "hmac" not in part.lost["$withheld"] for part in rows)
    if not edits and not lost:
        return None
    eraser.counted(edits)
    for part in rows if lost else ():
        part.pieces = []  # where one ended in what is not here nobody can say
    whole = plain is data
    text = applied(plain, edits)
    if whole:
        _moved(rows, text, edits)
    else:
        _gathered(rows, text)
    return Body(text, sum(len(part.pieces) for part in rows), encoding if not whole else None, not lost)


def _taken(rows: list[Part]) -> Iterator[Edit]:
    """Parts that stand in contents which a rule names."""
    at = 0
    for part in rows:
        if part.label is not None:
            yield Edit(at, at + len(part.body), marker(part.label).encode("ascii"), part.label)
        at += len(part.body)


def _moved(rows: list[Part], text: bytes, edits: list[Edit]) -> None:
    """Give each row its share of the new text, and its pieces their new sizes."""
    ends, borders = [0], [0]
    for part in rows:
        ends.append(ends[-1] + len(part.body))
        for size, _ in part.pieces:
            borders.append(borders[-1] + size)
    ends, borders = moved(edits, ends), moved(edits, borders)
    at, waited = 0, 0
    for number, part in enumerate(rows):
        part.body = text[ends[number] : ends[number + 1]]
        kept = []
        for _, ns in part.pieces:
            size, at = borders[at + 1] - borders[at], at + 1
            waited += ns
            if size:  # of a piece that is wholly gone only its time is left
                kept.append([size, waited])
                waited = 0
        part.pieces = kept


def _gathered(rows: list[Part], text: bytes) -> None:
    """Put a new text into the last row that had some of the old, as one piece."""
    last = max((number for number, part in enumerate(rows) if part.body), default=len(rows) - 1)
    ns = sum(piece[1] for part in rows for piece in part.pieces)
    for number, part in enumerate(rows):
        part.body = text if number == last else b""
        part.pieces = [[len(text), ns]] if number == last else []


def headers_of(recording: Recording, event: Event) -> list[list[str]]:
    """The headers that a row says, loaded; none where they are not here any more."""
    try:
        headers = recording.loaded(event.data.get("headers", []))
    except Damaged:
        return []
    if fields.unfit("decision/response", {"headers": headers}):
        raise odd(event)
    return list(headers)


def odd(event: Event) -> Ineligible:
    """The error for a row whose contents hold what no recorder writes."""
    reason = f"row {event.seq} ({event.name}) names a content that is not what belongs there"
    return Ineligible(reason, reasons=[reason], seq=event.seq)


def encoding_of(row: Mapping[str, Any] | None, data: bytes) -> str:
    """How a body is compressed, as its row's data says; of a body that never ended, whether it is text."""
    if row is None:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(data)
        except UnicodeDecodeError:
            return "unknown"
        return "identity"
    if "decoded" in row:
        return "identity"
    return next((v.strip().lower() for n, v in row["headers"] if n.lower() == "content-encoding"), "identity")


def opened(data: bytes, encoding: str) -> tuple[bytes | None, str]:
    """A body decoded (itself where it is not compressed), None where nobody can; and its encoding."""
    if encoding in ("identity", ""):
        return data, encoding
    decode = DECODERS.get(encoding)
    try:
        return (decode(data) if decode is not None else None), encoding
    except (zlib.error, EOFError, OSError):
        return None, encoding


def digest(data: bytes) -> str:
    """The digest of a body as its row carries it."""
    return hashlib.sha256(data).hexdigest()
