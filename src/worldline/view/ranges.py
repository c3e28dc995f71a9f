"""Which bytes of a body a request asks for: `Range` and `If-Range` as RFC 9110 has them (14.1, 14.2, 13.1.5).

One range of bytes is answered with that part. What is no such range, or several at once, is answered with the whole
body, as the rule allows; one that holds no byte of the body with 416.
"""

from __future__ import annotations

import re

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.I)


class Unsatisfiable(Exception):
    """The range holds no byte of the body."""


def wanted(header: str | None, size: int, *, if_range: str | None = None, etag: str | None = None) -> range | None:
    """The offsets that `header` asks for, of a body of `size` bytes; None for all of it.

    `if_range` takes the range back where it names another body than the one with `etag`; a body without one is never
    the same. Raises `Unsatisfiable`.
    """
    match = _RANGE.fullmatch(header.strip()) if header is not None else None
    if match is None or match.groups() == ("", "") or (if_range is not None and (if_range.strip() != etag)):
        return None
    first, last = match.groups()
    if first and last and int(first) > int(last):
        return None  # no range at all, and so to be ignored
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if begin >= end:
        raise Unsatisfiable
    return range(begin, end)
