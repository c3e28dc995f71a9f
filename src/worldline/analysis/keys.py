"""The key of a step: what it did, and what tells that from its neighbours. Equal keys make two steps of two runs one.

A step is known by its lane, its name (a marker's, else that of its first call) and the telling part of what it asked,
ids and dates aside. What an answer said differs between any two runs; that it was an answer is what the step did. The
panel makes the same keys of the same bytes (`viewer/src/core/alignment.ts`, `telling.ts`), so it follows how a script
counts, sorts and prints.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from worldline.engine.steps import Step
from worldline.model import values
from worldline.model.volatile import number_text, settled

# Arguments that say what a call is about, the most telling first.
FIRST = (
    *("name", "text", "url", "path", "file", "file_path", "filename", "command", "cmd", "query", "q"),
    *("pattern", "selector", "ref", "id", "title", "key", "value", "city", "item", "sku"),
)
QUOTED = 2  # of them so many are shown as quotations
MOST = 120  # characters of a telling part
ENOUGH = 60
LINE = 4000  # characters in which a first line is looked for
TEXT, ITEMS, FIELDS, DEEP = 300, 12, 16, 6  # of a value inside
SPACE = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
INDICES = 2**32 - 1


def keys_of(step: Step) -> tuple[str, str]:
    """The whole key of a step, and that of its action alone."""
    name, detail = name_of(step)
    action = f"{step.lane}\0{name}"
    return (action if name.startswith("(") else f"{action}\0{settled(detail)}"), action


def name_of(step: Step) -> tuple[str, str]:
    """What a step did, in a word, and what tells it from its neighbours."""
    if step.calls:
        first = step.calls[0]
        told = telling(_parsed(first.arguments))
        return (step.name, f"{first.name} {told}".strip(SPACE)) if step.name else (first.name, told)
    word, said = _answered(step)
    return step.name or word, first_line(said)


def _answered(step: Step) -> tuple[str, str]:
    if step.error is not None:
        return "(no answer)", step.error
    if step.lost is not None:
        return "(answer not here)", step.lost
    return ("(answer)", step.text) if step.seconds is not None else ("", "")


def telling(form: Any) -> str:
    """The arguments of a call that tell it from its neighbours: `"Orders"`, `17 lamp`."""
    value = _plain(form)
    if not isinstance(value, dict):
        return "" if value is None else _in_line(value)[:MOST]
    line = ""
    for key in sorted(_names(value), key=_rank):
        inner = value[key]
        if inner is None or inner == "":
            continue
        said = _in_line(inner)
        said = f'"{said}"' if isinstance(inner, str) and _rank(key) < QUOTED else said
        if line and len(line) + len(said) > MOST:
            break
        line += f" {said}" if line else said
        if len(line) > ENOUGH:
            break
    return line[:MOST]


def first_line(text: str) -> str:
    """The first line of a text that says something."""
    trimmed = text[:LINE].lstrip(SPACE)
    end = min((at for mark in "\r\n" if (at := trimmed.find(mark)) >= 0), default=len(trimmed))
    return trimmed[:end].rstrip(SPACE)


def _rank(key: str) -> int:
    return FIRST.index(key) if key in FIRST else len(FIRST)


def _names(value: dict[str, Any]) -> list[str]:
    """The names of an object in a script's order: those that are indices first, by number."""
    indices = [key for key in value if key.isascii() and key.isdigit() and str(int(key)) == key and int(key) < INDICES]
    return sorted(indices, key=int) + [key for key in value if key not in indices] if indices else list(value)


def _in_line(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, str):
        return first_line(value)
    if isinstance(value, dict) and isinstance(value.get("$blob"), dict):
        return f"{value['$blob'].get('size')} bytes"
    if isinstance(value, dict) and isinstance(value.get("$withheld"), dict):
        return ""
    return _json(value, 0)


def _json(value: Any, depth: int) -> str:
    """A value as JSON, its far parts cut off."""
    if isinstance(value, str):
        return json.dumps(value[:TEXT], ensure_ascii=False)
    if depth > DEEP or value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ",".join(_json(item, depth + 1) for item in value[:ITEMS]) + "]"
    if isinstance(value, dict):
        names = _names(value)[:FIELDS]
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_json(value[k], depth + 1)}" for k in names) + "}"
    return number_text(value)


def _plain(form: Any) -> Any:
    """A value as the record writes it, as people read it."""
    try:
        return _readable(values.restore(form))
    except ValueError:  # a content that is elsewhere, or a form of a later version: kept as it is
        return form


def _readable(value: Any) -> Any:
    """What JSON cannot say, as text."""
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if isinstance(value, int) and abs(value) > values.SAFE_INTEGER:
        return str(value)
    return value


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text
