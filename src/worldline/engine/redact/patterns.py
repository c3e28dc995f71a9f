"""Patterns of people's own, searched in texts that somebody else wrote: none may take for ever.

A pattern that a backtracking search could explode on is refused. One that begins with a repeat is tried once for each
run of what it repeats, not from each of its places. Longer texts are searched in stretches that overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from worldline.errors import UsageError

STRETCH, OVERLAP = 256 << 10, 64 << 10  # characters: of longer texts stretches are searched, which overlap by so much
LONGEST_PATTERN = 500
_LEADING = re.compile(
    r"(?P<flags>\(\?[aimsx]+\))?(?P<one>\[\^?\]?(?:[^\]\\]|\\.)*\]|\\[wWdDsS]|\.|[A-Za-z0-9_-])(?:[+*]|\{[0-9]*,\})"
)
_QUANTIFIER = re.compile(r"(?:(?P<plain>[*+?])|\{(?P<least>[0-9]*)(?P<comma>,?)(?P<most>[0-9]*)\})[?+]?")
_BACK = re.compile(r"\\[1-9]|\(\?P=|\(\?\(")
_OPENING = re.compile(r"\(\?(?:P<\w+>|[a-zA-Z-]*[:)]|<?[=!]|>)?")
ENDLESS = 1 << 30
MOST_WAYS, MOST_ENDLESS = 10_000, 6  # in how many ways a pattern may be read, and its repeats without end


class Search(NamedTuple):
    """A pattern, the same one that skips places where it cannot begin, and the label of its rule."""

    pattern: re.Pattern[str]
    skipping: re.Pattern[str]
    label: str

    @classmethod
    def of(cls, text: str, label: str) -> Search:
        """The search of a rule. Raises `UsageError` for a pattern that is none or that is refused."""
        pattern = _pattern(text)
        return cls(pattern, _skipping(text, pattern), label)

    def found(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the pattern matches, left to right: in characters, from and to."""
        at, done = 0, 0
        while True:
            end, place = min(len(text), at + STRETCH), max(at, done)
            while found := self.pattern.match(text, place, end) or self.skipping.search(text, place, end):
                if end < len(text) and found.start() >= end - OVERLAP:
                    break  # the next stretch has all of it
                place = max(found.end(), found.start() + 1)
                if found.end() > found.start():
                    yield found.span()
                    done = found.end()
            if end == len(text):
                return
            at = end - OVERLAP


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern, compiled. Raises `UsageError` for one that could take for ever on a text that somebody else wrote."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"text: not a pattern: {error}") from None
    if why := _refused(text, pattern):
        raise UsageError(f"text: this pattern is refused: {why}")
    return pattern


class _Group:
    """An open group of a pattern: in how many ways it can be read, and how many repeats without end it has."""

    def __init__(self, ways: int = 1, endless: int = 0) -> None:
        self.ways = ways
        self.endless = endless

    def takes(self, other: _Group) -> None:
        """What another one inside it can do."""
        self.ways, self.endless = self.ways * other.ways, self.endless + other.endless

    def repeated(self, least: int, most: int) -> _Group:
        """What repeating it can do, beside what it can do once."""
        if most == ENDLESS:
            return _Group(MOST_WAYS + 1 if self.ways > 1 or self.endless else 1, 1)
        if self.endless and most > 1:
            return _Group(MOST_WAYS + 1)
        return _Group((most - least + 1) * self.ways ** min(most - 1, 20))


def _refused(text: str, pattern: re.Pattern[str]) -> str | None:
    """Why a pattern could take for ever on some text, None where it cannot.

    What makes a backtracking search explode is a repeat over what can itself be read in several ways.
    """
    if len(text) > LONGEST_PATTERN:
        return f"it is longer than {LONGEST_PATTERN} characters"
    if pattern.match(""):
        return "it finds nothing at all, everywhere"
    if pattern.flags & re.VERBOSE:
        return "it is in the verbose form"
    groups, last, at = [_Group()], _Group(), 0
    while at < len(text):
        here, quantifier = text[at], _QUANTIFIER.match(text, at)
        if _BACK.match(text, at):
            return "it refers back to a group"
        if here == "(":
            opening = _OPENING.match(text, at)
            at, last = (opening.end() if opening else at + 1), _Group()
            if text[at - 1] != ")":
                groups.append(_Group())
        elif here == ")" and len(groups) > 1:
            last, at = groups.pop(), at + 1
            groups[-1].takes(last)
        elif here == "|":
            groups[-1].ways, last, at = groups[-1].ways + 1, _Group(), at + 1
        elif quantifier:
            groups[-1].takes(last.repeated(*_counts(quantifier)))
            last, at = _Group(), quantifier.end()
        else:
            at = _behind_class(text, at) if here == "[" else at + (2 if here == "\\" else 1)
            last = _Group()
        if groups[-1].ways > MOST_WAYS:
            return "it repeats what repeats, or what can be read in several ways"
    if groups[0].endless > MOST_ENDLESS:
        return f"it has more than {MOST_ENDLESS} repeats without end"
    return None


def _behind_class(text: str, at: int) -> int:
    """The place behind a character class that begins at `at`."""
    at += 2 if text[at + 1 : at + 2] == "^" else 1
    at += text[at : at + 1] == "]"
    while at < len(text) and text[at] != "]":
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _counts(quantifier: re.Match[str]) -> tuple[int, int]:
    """How often at least and at most; what has no end is `ENDLESS`."""
    if quantifier["plain"]:
        return {"*": (0, ENDLESS), "+": (1, ENDLESS), "?": (0, 1)}[quantifier["plain"]]
    least = int(quantifier["least"] or 0)
    most = int(quantifier["most"]) if quantifier["most"] else ENDLESS if quantifier["comma"] else least
    return least, most


def _skipping(text: str, pattern: re.Pattern[str]) -> re.Pattern[str]:
    """A pattern that begins with an open repeat, but not inside a run of what it repeats.

    Where such a pattern finds nothing from the beginning of a run, it finds nothing from its midst, and trying each
    place there would take the square of its length.
    """
    begin = _LEADING.match(text)
    if begin is None or "|" in text:
        return pattern
    flags, repeated = begin["flags"] or "", begin["one"]
    return re.compile(f"{flags}(?<!{repeated}){text[len(flags) :]}")
