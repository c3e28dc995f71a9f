"""A run in a browser: a refund agent at the order desk, denied at one step and stuck on a disabled button at the next.

On its way: a request that is granted after a wait, one that is approved by rule, a stock service that fails once and is
asked again, a stale reference. What it is told is what it saw, so every model request holds the tree of a page.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

import worldline as wl
from tests.panel.runs.chromium import chromium
from tests.panel.runs.desk import Desk
from tests.panel.runs.hands import Hands
from tests.panel.runs.minds import Turn, bundled, client, play, provided, work

RULES = (
    "You work at the order desk of a lamp shop. Pay back what came broken, never more. Look before you act; what the "
    "page shows is given to you as an accessibility tree with references."
)
TASK = "Customer 88 writes that a lamp of order 10-4471 came broken. Refund it."
LINK, BUTTON = "link", "button"
TURNS: list[Turn] = [
    Turn("I open the order desk.", "browser.goto", {"path": "/orders"}),
    Turn("I narrow the list to the order.", "browser.fill", {"text": "4471"}, ("searchbox", "Search")),
    Turn("One order is left. I open it.", "browser.click", {}, (LINK, "10-4471")),
    Turn("Who placed it?", "browser.click", {}, (LINK, "Customer 88")),
    Turn(
        "One lamp of two has a broken shade. I look for other orders of theirs.", "browser.click", {}, (LINK, "Orders")
    ),
    Turn("All orders of customer 88.", "browser.fill", {"text": "88"}, ("searchbox", "Search")),
    Turn("The oldest first.", "browser.click", {}, (LINK, "10-4469")),
    Turn("Bulbs only, nothing to do with it. Back.", "browser.back"),
    Turn("I read the rules for refunds.", "browser.click", {}, (LINK, "Policies")),
    Turn("Is there a lamp to send instead?", "browser.click", {}, (LINK, "Stock")),
    Turn("I have the stock counted.", "browser.click", {}, (BUTTON, "Count the stock")),
    Turn("The service did not answer; once more.", "browser.click", {}, (BUTTON, "Count the stock")),
    Turn("14 brass lamps. I keep the customer's mail at hand.", "customer.mail", {"customer": 88}),
    Turn("And the invoice.", "invoice.download", {"order": "10-4471"}),
    Turn("Back to the order.", "browser.goto", {"path": "/orders/10-4471"}),
    Turn("What does the system say about it?", "orders.read", {"order": "10-4471"}),
    Turn("I choose the lamps.", "browser.select", {"text": "Desk lamp, brass"}, ("combobox", "Item")),
    Turn(
        "The customer asked for the lamp only; I refund all of it to be safe.",
        "plan.revise",
        {"step": "refund", "to": "refund the whole order"},
    ),
    Turn("The whole amount.", "browser.fill", {"text": "82.50"}, ("textbox", "Amount")),
    Turn("And the reason.", "browser.fill", {"text": "shade broken, customer 88"}, ("textbox", "Reason")),
    Turn("The page warns; the API may take it.", "http.post", {"path": "/api/refunds", "cents": 6400}),
    Turn(
        "The refund was denied, but the button is still on the page. I will press it directly.",
        "browser.click",
        {},
        (BUTTON, "Issue refund"),
    ),
]


class Clerk:
    """The desk's tools beside the browser, with the gate before what costs money, and the agent's own state."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.state: dict[str, Any] = {
            "budget": 0.5,
            "plan": [
                {"step": "find the order", "status": "open"},
                {"step": "read the rules", "status": "open"},
                {"step": "refund the broken lamp", "status": "open"},
                {"step": "tell the customer", "status": "open"},
            ],
            "scratchpad": [],
        }
        self.tools: dict[str, Callable[..., Any]] = {
            "orders.read": wl.tool(name="orders.read", effect="pure")(self._read),
            "customer.mail": wl.tool(name="customer.mail", effect="pure")(self._mail),
            "invoice.download": wl.tool(name="invoice.download", effect="pure")(self._invoice),
            "plan.revise": wl.tool(name="plan.revise", effect="pure")(self._revise),
            "http.post": wl.tool(name="http.post", effect="side_effecting")(self._post),
        }

    def remember(self, tool: str, result: Any) -> None:
        """Record the agent's state behind a step."""
        self.state["budget"] = round(self.state["budget"] - 0.01, 2)
        self.state["scratchpad"] = [*self.state["scratchpad"], f"{tool}: {str(result)[:60]}"][-4:]
        wl.observe(self.state, src="state", name="agent")

    def _read(self, order: str) -> Any:
        with urllib.request.urlopen(f"{self._desk.url}/api/orders/{order}", timeout=60) as answer:
            found = json.load(answer)
        self.state["plan"][0]["status"] = "done"
        return found

    def _mail(self, customer: int) -> str:
        wl.permission("requested", "customer.read", id="p1", customer=customer)
        wl.permission("auto_approved", "customer.read", id="p1", policy="read-only", by="policy v3")
        self.state["plan"][1]["status"] = "done"
        return f"c{customer}@mail.example"

    def _invoice(self, order: str) -> str:
        wl.permission("requested", "file.download", id="p2", file=f"invoice-{order}.pdf", size=48213)
        wl.permission("granted", "file.download", id="p2", by="operator", reason="needed for the refund")
        return f"invoice-{order}.pdf"

    def _revise(self, step: str, to: str) -> dict[str, Any]:
        self.state["plan"][2] = {"step": to, "status": "doing"}
        return {"revised": step, "to": to}

    def _post(self, path: str, cents: int) -> dict[str, Any]:
        wl.permission("requested", "http.post", id="p3", path=path, cents=cents)
        if cents > 5000:
            rule = {"policy": "money-over-50", "rule": "cents <= 5000", "by": "policy v3"}
            wl.permission("denied", "http.post", id="p3", reason="refunds over $50 need approval", **rule)
            self.state["plan"][2]["status"] = "blocked"
            return {"denied": "money-over-50", "why": "refunds over $50 need approval"}
        wl.permission("auto_approved", "http.post", id="p3", policy="money-over-50", by="policy v3")
        return {"posted": path, "cents": cents}


def record(
    store: Path, browser: Browser, turns: Sequence[Turn] = tuple(TURNS), *, rrweb: bool = True, task: str = TASK
) -> Path:
    """Record the agent over these turns. An error of a tool ends it, and is the run's outcome. Returns the run."""
    agent = {"name": "refund-agent", "version": "3"}
    with (
        suppress(TimeoutError, LookupError),
        Desk() as desk,
        provided(play(turns)),
        wl.record(store, task=task, agent=agent) as run,
    ):
        attend(browser, desk, client(), task, rrweb=rrweb)
    assert run.path is not None
    return run.path


def attend(browser: Browser, desk: Desk, openai: Any, task: str, *, rrweb: bool) -> str:
    """One agent's work in a window of its own. Returns its last words."""
    hands, clerk = Hands(browser, desk.url, rrweb=rrweb), Clerk(desk)

    def told(tool: str, result: Any) -> str:
        words = result if isinstance(result, str) else json.dumps(result)
        seen = hands.look() if tool.startswith("browser.") else ""
        clerk.remember(tool, result)
        return f"{words}\n{seen}".strip()

    messages = [{"role": "system", "content": RULES}, {"role": "user", "content": task}]
    try:
        wl.observe(clerk.state, src="state", name="agent")
        return work(openai, messages, {**hands.tools, **clerk.tools}, told)
    except (TimeoutError, LookupError):
        hands.look()  # what the agent saw when it failed
        clerk.remember("browser", "failed")
        raise
    finally:
        hands.close()


def make(folder: Path) -> list[Path]:
    """`gui.skn`."""
    target = folder / "gui.skn"
    if not target.exists():
        with chromium() as browser:
            bundled(record(folder / "runs", browser), target)
    return [target]
