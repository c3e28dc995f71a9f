"""How far a test goes that could go on for ever: a short form in `make test`, the long one in `make soak`.

    def test_kills(soak: Soak) -> None:
        for seed in soak.rounds():                     # 0 alone, or 0, 1, 2 ... until this test's time is over
            ...
        for place in places if soak.long else places[::20]:   # all of them, or a spread
            ...

`make soak` sets WORLDLINE_SOAK and runs the tests that ask for the fixture `soak`, and no others; each may go on for
its share of WORLDLINE_SOAK_SECONDS (3600). What a round does follows from its number alone, so a failure can be had
again: the number is in the captured output.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

LONG = bool(os.environ.get("WORLDLINE_SOAK"))
SECONDS = float(os.environ.get("WORLDLINE_SOAK_SECONDS", "3600"))


class Soak:
    """`long` says which form to run; `seconds` is the share of one test, and 0 in the short form."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    @property
    def long(self) -> bool:
        """Whether this is the long form."""
        return self.seconds > 0

    def rounds(self) -> Iterator[int]:
        """Numbers of rounds from 0: one in the short form, as many as there is time for in the long one."""
        end = time.monotonic() + self.seconds
        number = 0
        while number == 0 or time.monotonic() < end:
            print(f"round {number}")
            yield number
            number += 1


def share(tests: int) -> Soak:
    """What each of `tests` long tests gets, where the workers of one run take them in turn."""
    workers = min(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), max(tests, 1))
    return Soak(SECONDS * workers / max(tests, 1)) if LONG else Soak()
