"""What tests put into records: any value that the rules carry, and equality that sees every silent change."""

from __future__ import annotations

import math
import struct
from typing import Any

from hypothesis import strategies as st

ODD_TEXTS = [
    "",
    "\0",
    "\ud800",
    "a\udfffb",
    "\u2028\u2029",
    "\r\n",
    "\x7f",
    "é" * 3,
    "\U0001f600",
    "$",
    "$$int",
    "\\u0041",
]
ODD_NUMBERS = [0, -0.0, 0.0, 1, 1.0, True, 2**53, -(2**53), 2**63, 2**64, -(2**64), 2**80, 1e308, 5e-324]
ODD_NUMBERS += [math.nan, math.inf, -math.inf]
ODD_KEYS = ["$", "$int", "$$b64", "$tuple", "$items", "\ud800", "", "a\0b", "$blob"]

texts = st.text(st.characters()) | st.sampled_from(ODD_TEXTS)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | texts | st.sampled_from(ODD_NUMBERS)
keys = texts | st.sampled_from(ODD_KEYS)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Equal in value and in type, all down: 1 is not 1.0 nor True, 0.0 is not -0.0, NaN is NaN; at any depth."""
    work = [(left, right)]
    while work:
        a, b = work.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, float):
            if struct.pack(">d", a) != struct.pack(">d", b) and not (math.isnan(a) and math.isnan(b)):
                return False
        elif isinstance(a, dict):
            if list(a) != list(b):
                return False
            work.extend(zip(a.values(), b.values(), strict=True))
        elif isinstance(a, list | tuple):
            if len(a) != len(b):
                return False
            work.extend(zip(a, b, strict=True))
        elif a != b:
            return False
    return True
