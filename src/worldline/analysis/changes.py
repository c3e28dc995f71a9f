"""What differs between two values, by JSON path. Pure.

Texts that hold JSON are compared as what they hold. Where two values differ by an id, a date or a time taken alone, the
change names the rule (`volatile`), and counts for nothing; so where a mask left out all that differs (`mask`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import msgspec

from worldline.model.masks import Left, as_it_was
from worldline.model.values import step as path_step
from worldline.model.volatile import volatile_by

MASK = "mask"  # the rule by which what a mask leaves out does not count
MOST_CHANGES = 200  # of one comparison
MOST_PARSED = 2_000_000  # characters of a text that is looked into
MOST_SHOWN = 2000  # characters of a value that a change carries
BEFORE = 200  # of them before the first that differs
DEEPEST = 100  # levels of a value that a change carries as one


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One place that differs: `changed`, or `added` or `removed` from left to right.

    `volatile` names the rule by which it does not count. Of long values only the part from character `at` on is here.
    """

    path: str
    kind: str
    left: Any = None
    right: Any = None
    volatile: str | None = None
    at: int | None = None


def changes(left: Any, right: Any) -> tuple[list[Change], int]:
    """The changes from `left` to `right`, those that count first, and how many more there are than are kept."""
    counting: list[Change] = []
    volatile: list[Change] = []
    more = 0
    for change in _each(left, right):
        kept = counting if change.volatile is None else volatile
        if len(kept) < MOST_CHANGES:
            kept.append(change)
        else:
            more += 1
    found = counting + volatile
    return found[:MOST_CHANGES], more + max(0, len(found) - MOST_CHANGES)


def _each(left: Any, right: Any) -> Iterator[Change]:
    work: list[tuple[tuple[str | int, ...], Any, Any]] = [((), left, right)]
    while work:  # no recursion: JSON nests as deep as its author likes
        path, a, b = work.pop()
        if isinstance(a, Left) and a == b:
            a, b = as_it_was(a), as_it_was(b)
            if not _same(a, b):
                yield msgspec.structs.replace(_change(path, a, b), volatile=MASK)
            continue
        a, b = (as_it_was(each) if isinstance(each, Left) else each for each in (a, b))
        if isinstance(a, str) and isinstance(b, str) and a != b:
            held = unpacked(a), unpacked(b)
            a, b = held if isinstance(held[0], dict | list) and type(held[0]) is type(held[1]) else (a, b)
        if isinstance(a, dict) and isinstance(b, dict):
            inner = [((*path, key), a.get(key, _ABSENT), b.get(key, _ABSENT)) for key in {**a, **b}]
        elif isinstance(a, list) and isinstance(b, list):
            inner = [((*path, i), _item(a, i), _item(b, i)) for i in range(max(len(a), len(b)))]
        else:
            inner = []
            a, b = as_it_was(a), as_it_was(b)
            if not _same(a, b):
                yield _change(path, a, b)
        work.extend(reversed(inner))


class _Absent:
    """Stands for a place that one side does not have."""


_ABSENT = _Absent()


def _item(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else _ABSENT


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict | list) != isinstance(b, dict | list) or isinstance(a, bool) != isinstance(b, bool):
        return False
    return bool(a == b)


def _change(path: tuple[str | int, ...], a: Any, b: Any) -> Change:
    where = "$" + "".join(f"[{part}]" if isinstance(part, int) else path_step(part) for part in path)
    if a is _ABSENT:
        right, cut = _short(b)
        return Change(path=where, kind="added", right=right, at=cut)
    if b is _ABSENT:
        left, cut = _short(a)
        return Change(path=where, kind="removed", left=left, at=cut)
    rule = volatile_by(path, a, b)
    if isinstance(a, str) and isinstance(b, str):
        if max(len(a), len(b)) <= MOST_SHOWN:
            return Change(path=where, kind="changed", left=a, right=b, volatile=rule)
        at = max(0, alike(a, b) - BEFORE)
        window = slice(at, at + MOST_SHOWN)
        return Change(path=where, kind="changed", left=a[window], right=b[window], volatile=rule, at=at)
    (left, cut), (right, other) = _short(a), _short(b)
    return Change(path=where, kind="changed", left=left, right=right, volatile=rule, at=cut if other is None else other)


def alike(a: str, b: str) -> int:
    """How many characters two texts have in common before they part."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _short(value: Any) -> tuple[Any, int | None]:
    """A value, or the beginning of it as text and where that begins."""
    if not isinstance(value, str | dict | list):
        return value, None
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return f"(nested deeper than {DEEPEST})", None
    if len(text) > MOST_SHOWN:
        return text[:MOST_SHOWN], 0
    return (text if _depth(text) > DEEPEST else value), None


def _depth(text: str) -> int:
    """How deep JSON nests at most."""
    return max(accumulate((mark in "[{") - (mark in "]}") for mark in text), default=0)


def unpacked(text: str) -> Any:
    """The value that a text holds as JSON, where it holds a box."""
    if len(text) > MOST_PARSED or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text
