"""Two runs of one task to compare: the second reads the rules first (a step inserted) and asks for less (an argument
changed), and so it gets through where the first is stuck on a disabled button."""

from __future__ import annotations

from pathlib import Path

from tests.panel.runs import gui
from tests.panel.runs.chromium import chromium
from tests.panel.runs.minds import Turn, bundled

TASK = "Refund the broken lamp of order 10-4471."
BEFORE = [
    Turn("I open the order.", "browser.goto", {"path": "/orders/10-4471"}),
    Turn("I choose the lamps.", "browser.select", {"text": "Desk lamp, brass"}, ("combobox", "Item")),
]
RULES = Turn("I read the rules once more.", "orders.read", {"order": "10-4471"})
REASON = Turn("And the reason.", "browser.fill", {"text": "shade broken"}, ("textbox", "Reason"))
PRESS = Turn("I issue it.", "browser.click", {}, ("button", "Issue refund"))
FAILED = [*BEFORE, Turn("The amount.", "browser.fill", {"text": "64.00"}, ("textbox", "Amount")), REASON, PRESS]
RESCUED = [
    *BEFORE,
    RULES,
    Turn("The amount.", "browser.fill", {"text": "32.00"}, ("textbox", "Amount")),
    REASON,
    PRESS,
    Turn("One lamp is paid back."),
]


def make(folder: Path) -> list[Path]:
    """`pair-failed.skn` and `pair-rescued.skn`."""
    wanted = {folder / "pair-failed.skn": FAILED, folder / "pair-rescued.skn": RESCUED}
    if not all(path.exists() for path in wanted):
        with chromium() as browser:
            for target, turns in wanted.items():
                if not target.exists():
                    bundled(gui.record(folder / "runs", browser, turns, rrweb=False, task=TASK), target)
    return list(wanted)
