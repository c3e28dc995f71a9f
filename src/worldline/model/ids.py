"""Ids: a lower-case prefix and 26 characters that sort by time, safe as names on case-blind disks.

The 26 characters are 128 bits in Crockford's base 32 (48 bits of Unix milliseconds, 80 random bits), the layout of
ULID (github.com/ulid/spec). `engine.clock` makes them; this module only spells and reads them.
"""

from __future__ import annotations

import re

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
PATTERN = re.compile(r"(?P<prefix>[a-z]+)_(?P<body>[0-7][0-9a-hjkmnp-tv-z]{25})")


def spell(prefix: str, milliseconds: int, randomness: int) -> str:
    """The id of `prefix` for a time (Unix ms, under 2**48) and 80 random bits."""
    number = (milliseconds << 80) | randomness
    return prefix + "_" + "".join(ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def behind(identifier: str, earlier: str) -> str:
    """`identifier` where it sorts behind `earlier` (an id of the same prefix), else with the millisecond after its."""
    if identifier > earlier:
        return identifier
    prefix, fresh, before = identifier.partition("_")[0], _number(identifier), _number(earlier)
    return spell(prefix, (before >> 80) + 1, fresh & ((1 << 80) - 1))


def _number(identifier: str) -> int:
    number = 0
    for character in identifier.partition("_")[2]:
        number = number << 5 | ALPHABET.index(character)
    return number


def is_id(text: str, prefix: str) -> bool:
    """Whether `text` is an id with this prefix."""
    match = PATTERN.fullmatch(text)
    return match is not None and match["prefix"] == prefix


def short(identifier: str) -> str:
    """The last four characters, which people say and type; the random end, so it differs from run to run."""
    return identifier[-4:]


def slug(text: str, fallback: str) -> str:
    """A file name of `[a-z0-9-]`, at most 40 characters, from the leading words of `text`."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    return name or fallback
