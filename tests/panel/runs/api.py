"""A run without anything to look at: model calls and functions, and it succeeds."""

from __future__ import annotations

from pathlib import Path

import worldline as wl
from tests.panel.runs.minds import Turn, bundled
from tests.panel.runs.talk import record

TURNS = [
    Turn("I look the order up.", "orders.read", {"order": "10-4472"}),
    Turn("What else did they order?", "orders.find", {"customer": 90}),
    Turn("Are the bulbs in stock?", "stock.count", {"item": "Bulb, warm white"}),
    Turn("Then I pay one bulb back.", "refund.pay", {"order": "10-4472", "cents": 450}),
    Turn("And send the receipt.", "receipt.send", {"receipt": "r-10-4472"}),
    Turn("One bulb is paid back, the receipt is on its way."),
]


def make(folder: Path) -> list[Path]:
    """`api.skn`."""
    target = folder / "api.skn"
    if not target.exists():
        then = lambda: wl.outcome("succeeded", reward=1.0, done=True)  # noqa: E731 - one word said at the end
        bundled(record(folder / "runs", "Refund a bulb of order 10-4472.", TURNS, then=then), target)
    return [target]
