"""Values that differ between any two runs and mean nothing by that: ids, dates, times taken.

Pure. Two values are volatile together when they are of the same such form, or stand under the same such name. They are
named as what they are, and are no difference by themselves. The panel has the same rules
(`viewer/src/core/volatile.ts`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

SAFE = 10**21  # from here on a script writes a number with an exponent
SMALL = 1e-6  # and below here


class Rule(NamedTuple):
    """`form` is how a text looks; `key` the last name of the place it stands in (`request_id` of `meta.request_id`)."""

    name: str
    form: re.Pattern[str] | None = None
    key: re.Pattern[str] | None = None


def _form(name: str, pattern: str, flags: int = 0) -> Rule:
    return Rule(name, form=re.compile(pattern, re.ASCII | flags))


def _key(name: str, pattern: str) -> Rule:
    return Rule(name, key=re.compile(pattern, re.ASCII))


RULES: tuple[Rule, ...] = (
    _form("UUID", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE),
    _key("id", r"id|uuid|guid|nonce|etag|cursor|token|.*[_-](id|uuid|nonce|token)|.*[a-z]Id"),
    _form("id", r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b|\b[a-z]{2,12}[_-][0-9A-Za-z]{16,}\b"),
    _form("digest", r"\b[0-9a-f]{32,}\b", re.IGNORECASE),
    _form("date", r"\b\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"),
    _key(
        "date",
        r"date|time|timestamp|ts|created|updated|expires|modified|.*_(at|time|date|timestamp)|.*[a-z]At",
    ),
    _form("time", r"\b1[5-9]\d{8}(\d{3}|\d{6}|\d{9})?\b"),
    _key("taken", r"ms|elapsed|duration|latency|took|.*_(ms|ns|us|seconds|elapsed|duration)"),
)


def settled(text: str, met: list[Rule] | None = None) -> str:
    """The text with every volatile part replaced by its rule's name. `met` collects the rules that applied."""
    for rule in RULES:
        if rule.form is not None:
            text, count = rule.form.subn(f"‹{rule.name}›", text)  # noqa: RUF001 - quotation marks that hardly any text has
            if count and met is not None:
                met.append(rule)
    return text


def volatile_by(path: Sequence[str | int], left: Any, right: Any) -> str | None:
    """The name of the rule by which two different values may be taken as the same; None where they really differ."""
    if not (_is_scalar(left) and _is_scalar(right)):
        return None
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    named = next((rule for rule in RULES if rule.key is not None and rule.key.fullmatch(key)), None)
    if named is not None:
        return named.name
    if _is_number(left) and _is_number(right):
        left, right = number_text(left), number_text(right)
    if not (isinstance(left, str) and isinstance(right, str)):
        return None
    met: list[Rule] = []
    return met[0].name if settled(left, met) == settled(right, met) and met else None


def number_text(value: float) -> str:
    """A number as a script writes it: `64` for 64.0."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < SAFE):
        return str(int(value))
    text = repr(value)
    digits, e, exponent = text.partition("e-")
    if e and abs(value) >= SMALL:
        return f"{value:.{int(exponent) + len(digits.partition('.')[2])}f}"
    return re.sub(r"e([+-])0+", r"e\1", text)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
