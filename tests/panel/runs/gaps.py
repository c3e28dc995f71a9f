"""A run with long silences: hours between its steps, on a clock that is set forward while nothing happens.

Every row is written by the real recorder; only what its clock reads is moved, as if the machine had waited.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.panel.runs.minds import Turn, bundled, play
from tests.panel.runs.talk import TOOLS, record
from worldline.engine import clock

SILENCES = {3: 40.0, 6: 11 * 3600.0, 9: 7.5}  # seconds before the tool of this turn ends
TURNS = [
    *[Turn(f"Order {n}.", "orders.read", {"order": f"10-{n}"}) for n in range(4468, 4476)],
    Turn("All orders of 88.", "orders.find", {"customer": 88}),
    Turn("Lamps?", "stock.count", {"item": "Desk lamp, brass"}),
    Turn("I pay.", "refund.pay", {"order": "10-4471", "cents": 9900}),
    Turn("The receipt.", "receipt.send", {"receipt": None}),
]


class Waiting:
    """The clocks of this process, and how far they were set forward."""

    def __init__(self) -> None:
        self.ns = 0
        self._wall, self._monotonic = clock.wall_ns, clock.monotonic_ns

    def wall_ns(self) -> int:
        """Unix time."""
        return self._wall() + self.ns

    def monotonic_ns(self) -> int:
        """The clock that never steps."""
        return self._monotonic() + self.ns

    def wait(self, seconds: float) -> None:
        """As if that long had passed."""
        self.ns += round(seconds * 1e9)


@contextmanager
def waiting() -> Iterator[Waiting]:
    """A recorder in this process that believes it waited."""
    hands = Waiting()
    with mock.patch.multiple(clock, wall_ns=hands.wall_ns, monotonic_ns=hands.monotonic_ns):
        yield hands


def slowly(hands: Waiting) -> dict[str, Any]:
    """The desk's tools, each followed by the silence of its turn."""
    count = iter(range(len(TURNS)))

    def slow(tool: Any) -> Any:
        def called(**arguments: Any) -> Any:
            result = tool(**arguments)
            hands.wait(SILENCES.get(next(count), 0.4))
            return result

        return called

    return {name: slow(tool) for name, tool in TOOLS.items()}


def make(folder: Path) -> list[Path]:
    """`gaps.skn`: 12 steps over 11 hours."""
    target = folder / "gaps.skn"
    if not target.exists():
        with waiting() as hands:
            bundled(record(folder / "runs", "Go through the orders.", play(TURNS), tools=slowly(hands)), target)
    return [target]
