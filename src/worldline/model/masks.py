"""Masks: which values of a crossing are left out when it is compared with another. Pure.

    $.metadata.trace_id                          a value in the body of a model's request, left out whole
    $.messages[*].content=~\\d{4}-\\d\\d-\\d\\d       of the texts there only what the pattern finds
    tool:search $.now                            an argument of the tools of that name (a pattern as file names have)
    decision $.text=~ORD-\\d+                     a part of a step (`decision`, `action`, `observation`), for a diff

A place is a JSON path: `.name` or `["any name"]`, `[3]`, `[*]` for each element, `.*` for each member. What is left out
is the value, never that it is there: whether a place exists, how long a list is and every other value still count.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from worldline.errors import UsageError
from worldline.model import canon
from worldline.model.values import step as path_step

REQUEST, TOOL = "request", "tool"
PARTS = ("decision", "action", "observation")  # of a step
LONGEST = 2000  # characters of a mask
WAYS = "write $.messages[*].content, tool:NAME $.argument, or either with =~PATTERN behind it"
_WHERE = re.compile(rf"(?:tool:(?P<tool>\S+)|(?P<part>{'|'.join(PARTS)}))(?:\s+|\Z)")
_STEP = re.compile(r'\.(?P<name>[^.\[\]=\s"]+)|\[(?P<item>\*|[0-9]{1,9})\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]')
_MARK = "=~"
_Path = tuple[str | int, ...]
_Place = tuple[Any, str | int]  # a box, and the key of a value in it


class _Any:
    """A wildcard: every member of an object, or every element of a list."""


MEMBERS, ELEMENTS = _Any(), _Any()


@dataclass(frozen=True)
class Mask:
    """One mask. `where` is `request`, `tool` (those that `tool` names) or a part of a step.

    Without a `pattern` the value at `path` is left out whole, else what it finds in the texts there, however deep.
    `origin` says who declared it: `record`, `worldline.toml` or `given`.
    """

    text: str
    origin: str
    where: str
    tool: str
    path: tuple[str | int | _Any, ...]
    pattern: re.Pattern[str] | None

    def about(self, where: str, name: str) -> bool:
        """Whether it speaks of such a document: a `request`, the arguments of the `tool` of this name, a part."""
        return self.where == where and (where != TOOL or fnmatch.fnmatchcase(name, self.tool))

    @property
    def of_steps(self) -> bool:
        """Whether it is about a part of a step: nothing that crosses is one."""
        return self.where in PARTS


def parse(text: str, origin: str = "given") -> Mask:
    """The mask that a text says. Raises `UsageError` with what is wrong, and where in it."""
    if len(text) > LONGEST:
        _refuse(text[:40] + "…", f"it has {len(text):,} characters; a mask has at most {LONGEST:,}")
    where, tool, at = REQUEST, "", 0
    if match := _WHERE.match(text):
        where, tool, at = match["part"] or TOOL, match["tool"] or "", match.end()
    if text[at : at + 1] != "$":
        _refuse(text, f"at character {at}: a place begins with $")
    path: list[str | int | _Any] = []
    at += 1
    while match := _STEP.match(text, at):
        path.append(_step(text, match))
        at = match.end()
    if at == len(text):
        if not path:
            _refuse(text, "it would leave out everything there is; name a place: $.name")
        return Mask(text, origin, where, tool, tuple(path), None)
    if not text.startswith(_MARK, at):
        _refuse(text, f"at character {at}: no step of a path is {text[at:][:20]!r}")
    return Mask(text, origin, where, tool, tuple(path), _pattern(text, text[at + len(_MARK) :]))


def _step(text: str, match: re.Match[str]) -> str | int | _Any:
    if match["name"] is not None:
        return MEMBERS if match["name"] == "*" else match["name"]
    if match["item"] is not None:
        return ELEMENTS if match["item"] == "*" else int(match["item"])
    try:
        return str(json.loads(match["quoted"]))
    except ValueError:
        _refuse(text, f"{match['quoted']} is no JSON text")


def _pattern(text: str, said: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(said)
    except (re.error, RecursionError, OverflowError) as error:
        _refuse(text, f"its pattern {said!r} is no regular expression: {error}")
    if pattern.fullmatch(""):
        _refuse(text, f"its pattern {said!r} finds nothing everywhere; to leave the value out whole, drop {_MARK}")
    return pattern


def _refuse(text: str, why: str) -> NoReturn:
    raise UsageError(f"no mask: {text!r}: {why}; {WAYS}", mask=text)


def place(path: Iterable[str | int | _Any]) -> str:
    """A path as masks say it."""
    words = {MEMBERS: ".*", ELEMENTS: "[*]"}
    return "$" + "".join(
        words[part] if isinstance(part, _Any) else f"[{part}]" if isinstance(part, int) else path_step(part)
        for part in path
    )


@dataclass(frozen=True, eq=False)
class Left:
    """What masks leave of a value: two are equal where the values differ at most in what is left out.

    `pieces` are the texts around, and the number of the mask that stands between them; of a value that is left out
    whole there is only that number.
    """

    pieces: tuple[str | int, ...]
    value: Any  # as it was, for those who quote it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Left) and self.pieces == other.pieces

    def __hash__(self) -> int:
        return hash(self.pieces)


def as_it_was(value: Any) -> Any:
    """A value with all that was left out of it put back; it is changed in place."""
    if isinstance(value, Left):
        return as_it_was(value.value)
    if isinstance(value, dict | list):
        for _, holder, key in [*_lefts({"$": value})]:
            holder[key] = as_it_was(holder[key])
    return value


@dataclass(frozen=True)
class Applied:
    """A document with `Left` in the places of what masks left out of it; `met` counts values by the mask's number."""

    document: Any
    met: Counter[int]

    def canonical(self) -> bytes:
        """One byte string for all documents that are equal under the masks. The document is used up by it."""
        box = {"$": self.document}
        left = [(path, holder, key) for path, holder, key in _lefts(box)]
        told = sorted(canon.canonical([list(path), list(holder[key].pieces)]) for path, holder, key in left)
        for _, holder, key in left:
            holder[key] = None  # which null is a value of its own is said by the list of those that are not
        return canon.canonical(box["$"]) + b"\0" + b"\0".join(told)


class Masks:
    """Several masks at once. Those that leave values out whole come first, the outermost before those inside."""

    def __init__(self, masks: Iterable[Mask] = ()) -> None:
        self.all = tuple({mask.text: mask for mask in reversed([*masks])}.values())[::-1]
        order = range(len(self.all))
        self._order = sorted(order, key=lambda n: (self.all[n].pattern is not None, self._depth(n), n))

    def _depth(self, number: int) -> int:
        mask = self.all[number]
        return len(mask.path) if mask.pattern is None else 0

    def __bool__(self) -> bool:
        return bool(self.all)

    def speak_of(self, where: str, name: str = "") -> bool:
        """Whether any of them is about such a document."""
        return any(mask.about(where, name) for mask in self.all)

    def applied(self, where: str, name: str, document: Any) -> Applied:
        """The document without what they leave out; it is changed in place."""
        box, met = {"$": document}, Counter[int]()
        for number in self._order:
            mask = self.all[number]
            if not mask.about(where, name):
                continue
            for holder, key in _places(box, mask.path):
                if mask.pattern is not None:
                    met[number] += _cut_out(holder, key, mask.pattern, number)
                elif not isinstance(holder[key], Left):
                    holder[key] = Left((number,), holder[key])
                    met[number] += 1
        return Applied(box["$"], met)


def _places(box: dict[str, Any], path: tuple[str | int | _Any, ...]) -> list[_Place]:
    """The values at a path, each by the box that holds it."""
    found: list[_Place] = [(box, "$")]
    for step in path:
        inner: list[_Place] = []
        for holder, key in found:
            value = holder[key]
            if isinstance(value, dict):
                if step is MEMBERS:
                    inner += [(value, name) for name in value]
                elif isinstance(step, str) and step in value:
                    inner.append((value, step))
            elif isinstance(value, list):
                if step is ELEMENTS:
                    inner += [(value, index) for index in range(len(value))]
                elif isinstance(step, int) and step < len(value):
                    inner.append((value, step))
        found = inner
    return found


def _cut_out(holder: Any, key: str | int, pattern: re.Pattern[str], number: int) -> int:
    """Leave out what a pattern finds in the texts of a value; in how many of them it found something."""
    met, work = 0, [(holder, key)]
    while work:  # no recursion: JSON nests as deep as its author likes
        holder, key = work.pop()
        value = holder[key]
        if isinstance(value, dict):
            work += [(value, name) for name in value]
        elif isinstance(value, list):
            work += [(value, index) for index in range(len(value))]
        elif isinstance(value, str | Left):
            before = value.pieces if isinstance(value, Left) else (value,)
            pieces = tuple(each for piece in before for each in _split(piece, pattern, number))
            if len(pieces) > len(before):
                holder[key] = Left(pieces, value.value if isinstance(value, Left) else value)
                met += 1
    return met


def _split(piece: str | int, pattern: re.Pattern[str], number: int) -> Iterator[str | int]:
    """The texts around what a pattern finds in one, with the mask's number between them."""
    at = 0
    if isinstance(piece, str):
        for match in pattern.finditer(piece):
            if match.end() > match.start():
                yield piece[at : match.start()]
                yield number
                at = match.end()
        yield piece[at:]
    else:
        yield piece


def _lefts(box: dict[str, Any]) -> Iterator[tuple[_Path, Any, Any]]:
    """Where something was left out: the path, the box, the key in it."""
    work: list[tuple[_Path, Any]] = [((), box)]
    while work:
        path, holder = work.pop()
        keys: Iterable[Any] = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            value = holder[key]
            if isinstance(value, Left):
                yield (*path, key), holder, key
            elif isinstance(value, dict | list):
                work.append(((*path, key), value))
