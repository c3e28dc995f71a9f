"""A denial that leads to the failure two steps later: nothing was paid, so there is no receipt to send."""

from __future__ import annotations

from pathlib import Path

from tests.panel.runs.minds import Turn, bundled
from tests.panel.runs.talk import record

TURNS = [
    Turn("I look the order up.", "orders.read", {"order": "10-4471"}),
    Turn("Are lamps in stock?", "stock.count", {"item": "Desk lamp, brass"}),
    Turn("I pay the whole order back.", "refund.pay", {"order": "10-4471", "cents": 8250}),
    Turn("I tell the customer.", "mail.draft", {"customer": 88, "text": "We have sent $82.50 back to you."}),
    Turn("Now the receipt.", "receipt.send", {"receipt": None}),
]


def make(folder: Path) -> list[Path]:
    """`denied.skn`: denied at step 2, failed at step 4."""
    target = folder / "denied.skn"
    if not target.exists():
        bundled(record(folder / "runs", "Refund order 10-4471.", TURNS), target)
    return [target]
