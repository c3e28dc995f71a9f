"""What a JSON value can be asked: whether it is a text, a hash, a size that can be, and lists and tables of such.

For what was read from files that anybody may have made: nothing in them is of a type before it was asked.
"""

from __future__ import annotations

import re
from typing import Any

LARGEST = (1 << 63) - 1  # of sizes, counts and times
_HASH = re.compile(r"[0-9a-f]{64}")


def is_text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def is_hash(value: Any) -> bool:
    """Whether a value is a SHA-256 in lower-case hex."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def is_size(value: Any) -> bool:
    """Whether a value is a size, a count or a time that can be: an integer from 0 to 2^63 - 1."""
    return type(value) is int and 0 <= value <= LARGEST


def is_counts(value: Any) -> bool:
    """Whether a value maps names to counts."""
    return isinstance(value, dict) and all(map(is_size, value.values()))


def is_texts(value: Any) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(value, list) and all(map(is_text, value))
