"""Masks that a difference suggests: where two values look volatile by their form, the mask that leaves that form out.

A date, a time, an id, a number that grows. Texts that differ in anything else suggest nothing: what the agent asks
otherwise is no noise. A proposal is never put in force by itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Any, NamedTuple

from worldline.errors import UsageError
from worldline.model import canon
from worldline.model.masks import Mask, parse
from worldline.model.volatile import RULES, volatile_by

MOST = 4  # masks that a divergence proposes
GROWS_FROM = 1_000_000  # a smaller number is more likely an amount than a counter
_DIGITS = re.compile(r"[1-9][0-9]{0,40}")
_GLOB, _LITERAL = re.compile(r"[*?[]"), r"[\g<0>]"
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"


class _Form(NamedTuple):
    """How a volatile part of a text looks, and patterns that name it, the narrowest first."""

    form: re.Pattern[str]
    patterns: tuple[str, ...]


def _written(form: re.Pattern[str]) -> str:
    return f"(?i){form.pattern}" if form.flags & re.IGNORECASE else form.pattern


_NARROW = {
    "UUID": (r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",),
    "date": (r"\d{4}-\d\d-\d\d", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"),
}
_MORE = (  # that two texts of a diff may well differ in for a reason, and two runs of one agent seldom do
    rf"\b(?:{_MONTHS})[a-z]* \d{{1,2}},? \d{{4}}\b|\b\d{{1,2}} (?:{_MONTHS})[a-z]* \d{{4}}\b",
    r"\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\b",
    r"\b(?=[a-f]*\d)[0-9a-f]{12,}\b",
)
_FORMS = (
    *(_Form(rule.form, (*_NARROW.get(rule.name, ()), _written(rule.form))) for rule in RULES if rule.form is not None),
    *(_Form(re.compile(pattern), (pattern,)) for pattern in _MORE),
)


def proposals(kind: str, name: str, path: str, recorded: Any, actual: Any) -> list[Mask]:
    """The masks that would leave out what differs at a place of a request, or of a tool's arguments; none where it
    is not volatile by its looks."""
    if kind not in ("decision", "action") or canon.MISSING in (recorded, actual):
        return []
    before = "" if kind == "decision" else f"tool:{_GLOB.sub(_LITERAL, name)} "
    try:
        whole = parse(before + path)
        named = volatile_by([part for part in whole.path if isinstance(part, str | int)], recorded, actual)
        if isinstance(recorded, str) and isinstance(actual, str) and (found := _patterns(recorded, actual)):
            return [parse(f"{before}{path}=~{pattern}") for pattern in found]
    except UsageError:  # a place that no mask can name: beside the body, or of a tool whose name holds a space
        return []
    return [whole] if named is not None or _grows(recorded, actual) else []


def proposed(kind: str, name: str, differences: Iterable[tuple[str, Any, Any]]) -> list[str]:
    """The same of all that differs in one call, as text, a few of them."""
    found = (mask.text for path, a, b in differences for mask in proposals(kind, name, path, a, b))
    return list(dict.fromkeys(found))[:MOST]


def options(masks: Iterable[str]) -> str:
    """Masks as words of a command line."""
    return " ".join(f"--mask {shlex.quote(mask)}" for mask in masks)


def _patterns(recorded: str, actual: str) -> list[str]:
    """What finds all that two texts differ in; nothing where they differ in more than has such a form."""
    found = []
    for form, patterns in _FORMS:
        parts = [[match[0] for match in form.finditer(text)] for text in (recorded, actual)]
        if parts[0] != parts[1]:
            all_parts = parts[0] + parts[1]
            found.append(next(p for p in patterns if all(re.fullmatch(p, part) for part in all_parts)))
        recorded, actual = form.sub("\0", recorded), form.sub("\0", actual)
    return found if recorded == actual else []


def _grows(recorded: Any, actual: Any) -> bool:
    if (
        isinstance(recorded, str)
        and isinstance(actual, str)
        and _DIGITS.fullmatch(recorded)
        and _DIGITS.fullmatch(actual)
    ):
        return len(recorded) <= len(actual) and GROWS_FROM <= int(recorded) < int(actual)
    return type(recorded) is int and type(actual) is int and GROWS_FROM <= recorded < actual
