"""How far a repair drifts from what the agent did: edit similarity over canonical JSON.

The distance is Levenshtein's over characters, by bit vectors as wide as the longer text (G. Myers, "A fast bit-vector
algorithm for approximate string matching", 1999, as H. Hyyroe put it for whole texts in 2003): a row of the table is
one integer, and what the texts begin and end with in common is left out. Two texts of 10 kB without anything in common
take some 50 ms, of 100 kB a few seconds.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from worldline.model.canon import canonical, parse


def edits(before: str, after: str) -> int:
    """The fewest insertions, deletions and replacements of characters between two texts."""
    if len(before) < len(after):
        before, after = after, before
    alike = _alike(before, after)
    before, after = before[alike:], after[alike:]
    alike = _alike(before[::-1], after[::-1])
    before, after = before[: len(before) - alike], after[: len(after) - alike]
    if not after:
        return len(before)
    places: dict[str, int] = defaultdict(int)
    for place, character in enumerate(before):
        places[character] |= 1 << place
    whole, last = (1 << len(before)) - 1, 1 << (len(before) - 1)
    rises, falls, distance = whole, 0, len(before)  # where the column rises and falls by one, going down
    for character in after:
        equal = places.get(character, 0)
        level = (((equal & rises) + rises) ^ rises) | equal | falls
        right, left = falls | ~(level | rises) & whole, level & rises
        distance += bool(right & last) - bool(left & last)
        right, left = (right << 1 | 1) & whole, (left << 1) & whole
        rises, falls = left | ~(level | right) & whole, level & right
    return distance


def _alike(before: str, after: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(before), len(after)))


def similarity(before: Any, after: Any) -> float:
    """1 for two JSON values that are the same, 0 for two with nothing in common: 1 - edits / length of the longer."""
    first, second = (canonical(value).decode() for value in (before, after))
    longest = max(len(first), len(second))
    return 1.0 if first == second else 1.0 - edits(first, second) / longest


def drift(before: str, after: str) -> float:
    """0 for an action left as it is, 1 for one with nothing in common. Both are JSON text, else they count as text."""
    return 1.0 - similarity(_value(before), _value(after))


def _value(text: str) -> Any:
    try:
        return parse(text.encode())
    except (ValueError, UnicodeEncodeError):
        return text
