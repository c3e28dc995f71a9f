"""What the fields of a row may hold: those that readers rely on, by the row's kind.

A chain that holds says what was written after what, not that it makes sense: whoever can hash can chain anything.
A row whose known fields hold something else is left out by those who read, and named; after this check no reader has
to fear a number where a text belongs. Null stands for what is not there. What is not named here may hold anything. Any
field may stand in a content (`$blob`) instead, where its row had no room for it: what was loaded is checked again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from worldline.model.events import Event
from worldline.model.holds import LARGEST, is_counts, is_hash, is_size, is_text, is_texts
from worldline.model.manifest import READABLE, TIERS

_DIGITS = re.compile(r"[0-9]{1,19}")
VERSION = 1  # of rows
_Holds = Callable[[Any], bool]


def problem(event: Event) -> str | None:
    """What no reader can make sense of in a row's fields, in words, or None."""
    name, raw = event.name, event.raw
    if name == "meta/header" and event.data.get("format") not in READABLE:
        return None  # of a newer version: whoever opens it says so
    wrong = unfit(name, event.data)
    # One byte is found much sooner than several.
    if wrong is None and b"$" in raw and b'"$blob"' in raw and not _references_hold(event.data):
        wrong = "$blob"
    if wrong is None:
        return None  # a newer row whose fields can be read as this version's is read as such
    newer = f" of version {event.v:,}" if event.v > VERSION else ""
    return f"{name}{newer} has {wrong!r:.60} of another kind than it can be"


def present(event: Event) -> Event:
    """The row without the nulls that stand for absent fields, so that what a reader finds there holds what it can."""
    if None not in event.data.values() or event.name not in _FIELDS:
        return event
    null = {
        field for field, holds in _FIELDS[event.name].items() if event.data.get(field, "") is None and not holds(None)
    }
    data = {field: value for field, value in event.data.items() if field not in null}
    return msgspec.structs.replace(event, data=data) if null else event


def unfit(name: str, data: Mapping[str, Any]) -> str | None:
    """The first field of a row's data that holds what it cannot, or None. `name` is the row's: `decision/response`."""
    known = _FIELDS.get(name)
    if known is None:
        return None
    for field, value in data.items():  # mostly far fewer than those that are known
        if field in known and (value is None or not known[field](value)):
            break
    else:
        if name not in _REQUIRED:
            return None
    return _first_unfit(name, data)


def _first_unfit(name: str, data: Mapping[str, Any]) -> str | None:
    for field, holds in _FIELDS[name].items():
        value = data.get(field)
        absent = value is None and (field not in data or field not in _REQUIRED.get(name, ()))
        if not (absent or holds(value) or is_reference(value)):
            return field
    return next((field for field in _REQUIRED.get(name, ()) if field not in data), None)


def unfit_result(result: Mapping[str, Any]) -> str | None:
    """The same of `result.json` and `progress.json`."""
    return next((field for field, holds in _RESULT.items() if field in result and not holds(result[field])), None)


def is_reference(value: Any) -> bool:
    """Whether a value stands for a content: `{"$blob": {name, size, type, tier}}`."""
    if not (isinstance(value, dict) and isinstance(value.get("$blob"), dict)):
        return False
    said = value["$blob"]
    return is_hash(said.get("name")) and is_size(said.get("size")) and is_text(said.get("type")) and _tier(said)


def _tier(said: dict[str, Any]) -> bool:
    return is_text(tier := said.get("tier", TIERS[0])) and tier in TIERS


def _references_hold(value: Any) -> bool:
    if isinstance(value, dict):
        return is_reference(value) if "$blob" in value else all(map(_references_hold, value.values()))
    return all(map(_references_hold, value)) if isinstance(value, list) else True


def _optional(holds: _Holds) -> _Holds:
    """What `holds` says, or null."""
    return lambda value: value is None or holds(value)


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _moment(value: Any) -> bool:
    return isinstance(value, str) and _DIGITS.fullmatch(value) is not None


def _number(value: Any) -> bool:
    """Seconds, or Unix seconds, that can be shown as a time: up to the year 3000."""
    return type(value) in (int, float) and 0 <= value < 32_503_680_000


def _task(value: Any) -> bool:
    return isinstance(value, dict) and "text" in value and _optional(is_text)(value["text"])


def _agent(value: Any) -> bool:
    return isinstance(value, dict) and is_texts(value.get("command", []))


def _secrets(value: Any) -> bool:
    return isinstance(value, dict) and is_texts(value.get("labels", [])) and is_size(value.get("shapes", 0))


def _headers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and is_texts(pair) for pair in value
    )


def _pieces(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(piece, list) and len(piece) == 2 and all(map(is_size, piece)) for piece in value
    )


def _carried(value: Any) -> bool:
    """A text as rows carry one: itself, or an object that stands for it."""
    return isinstance(value, str | dict)


def _failure(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and is_text(value.get("type"))
        and "\0" not in value["type"]
        and is_text(value.get("message"))
        and isinstance(value.get("args", []), list | None)
        and isinstance(value.get("attributes", {}), dict)
        and is_text(value.get("group", ""))
        and isinstance(value.get("exceptions", []), list)
        and all(map(_failure, value.get("exceptions", [])))
    )


def _lost(value: Any) -> bool:
    return isinstance(value, dict) and is_text(value.get("type")) and is_text(value.get("path"))


def _body(value: Any) -> bool:
    """A request: withheld, or its template and arrays (`model.chain`)."""
    if not isinstance(value, dict) or "$withheld" in value:
        return isinstance(value, dict)
    arrays = value.get("arrays")
    return (
        is_hash(value.get("context_hash"))
        and is_size(value.get("size"))
        and is_element(value.get("template"))
        and isinstance(arrays, list)
        and all(map(_array, arrays))
    )


def _array(value: Any) -> bool:
    if not (isinstance(value, dict) and "base" in value and is_text(value.get("name")) and is_size(value.get("at"))):
        return False
    base, add, between = value.get("base"), value.get("add"), value.get("between", ["", ",", ""])
    return (
        (base is None or (isinstance(base, list) and len(base) == 2 and is_hash(base[0]) and is_size(base[1])))
        and (is_reference(add) or (isinstance(add, list) and all(map(is_element, add))))
        and is_texts(between)
        and len(between) == 3
        and all(map(str.isascii, between))
    )


def is_element(value: Any) -> bool:
    """Whether a value is a text of a request, or `{"$e": [call, array, index]}`: where it stands already."""
    if isinstance(value, dict) and "$e" in value:
        place = value["$e"]
        return (
            isinstance(place, list) and len(place) == 3 and is_text(place[0]) and all(type(n) is int for n in place[1:])
        )
    return _carried(value)


_ENDED: dict[str, _Holds] = {
    "status": is_size,
    "headers": _headers,
    "complete": _flag,
    "why": is_text,
    "closed_by": is_text,
    "body": _carried,
    "pieces": _pieces,
    "elapsed_ns": is_size,
    "error": _failure,
    "unrecordable": _lost,
}
_FIELDS: dict[str, dict[str, _Holds]] = {
    "meta/header": {
        "format": is_text,
        "session": _optional(is_text),
        "run": is_text,
        "attempt": is_text,
        "nonce": is_text,
        "t0_wall": _moment,
        "platform": _mapping,
        "capture": is_text,
        "task": _task,
        "agent": _agent,
        "parent": _optional(_mapping),
        "secrets": _secrets,
        "masks": is_texts,
        "fail_open": _flag,
    },
    "meta/end": {"disposition": is_text, "reason": _optional(is_text)},
    "marker/step": {"phase": is_text},
    "decision/request": {"body": _body, "results": is_texts},
    "decision/chunk": {"body": _carried, "pieces": _pieces},
    "decision/response": _ENDED,
    "observation/tool_result": _ENDED,
}
_REQUIRED = {
    "meta/header": ("run", "attempt", "session", "t0_wall", "capture", "task", "agent"),
    "meta/end": ("disposition",),
}
_RESULT: dict[str, _Holds] = {
    "session": _optional(is_text),
    "run": is_text,
    "attempt": is_text,
    "task": _optional(is_text),
    "outcome": _optional(is_text),
    "exit": _optional(lambda value: type(value) is int and abs(value) <= LARGEST),
    "signal": _optional(is_text),
    "started": _optional(_number),
    "seconds": _optional(_number),
    "steps": _optional(is_size),
    "tokens": is_counts,
}
