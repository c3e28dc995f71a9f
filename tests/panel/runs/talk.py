"""Agents without a browser: their tools are functions over the order desk's data, their model the provider's script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import worldline as wl
from tests.panel.runs.desk import ORDERS, STOCK, total
from tests.panel.runs.minds import Turn, client, play, provided, work
from worldline.testing.provider import Script


def read_order(order: str) -> dict[str, Any]:
    """An order with its total."""
    return {"order": order, **ORDERS[order], "total": total(order)}


def find_orders(customer: int) -> list[str]:
    """The numbers of a customer's orders."""
    return [number for number, found in ORDERS.items() if found["customer"] == customer]


def count_stock(item: str) -> int:
    """How many are left."""
    return STOCK[item]


def draft_mail(customer: int, text: str) -> str:
    """A mail as it would go out."""
    return f"To: c{customer}@mail.example\n\n{text}"


def pay_back(order: str, cents: int) -> dict[str, Any]:
    """Pays, behind the gate. Over the limit somebody is asked, who says no."""
    wl.permission("requested", "refund.pay", id=f"refund-{order}", order=order, cents=cents)
    if cents > 5000:
        wl.permission("escalated", "refund.pay", id=f"refund-{order}", to="operator")
        wl.permission(
            "denied", "refund.pay", id=f"refund-{order}", policy="money-over-50", by="operator", reason="one lamp only"
        )
        return {"denied": "money-over-50", "receipt": None}
    wl.permission("auto_approved", "refund.pay", id=f"refund-{order}", policy="money-over-50", by="policy v3")
    return {"paid": cents, "receipt": f"r-{order}"}


def send_receipt(receipt: str | None) -> str:
    """Sends what `pay_back` gave. Raises `ValueError` without one."""
    if receipt is None:
        raise ValueError("there is no receipt to send: nothing was paid")
    return f"sent {receipt}"


TOOLS: dict[str, Callable[..., Any]] = {
    "orders.read": wl.tool(name="orders.read", effect="pure")(read_order),
    "orders.find": wl.tool(name="orders.find", effect="pure")(find_orders),
    "stock.count": wl.tool(name="stock.count", effect="pure")(count_stock),
    "mail.draft": wl.tool(name="mail.draft", effect="pure")(draft_mail),
    "refund.pay": wl.tool(name="refund.pay", effect="side_effecting")(pay_back),
    "receipt.send": wl.tool(name="receipt.send", effect="side_effecting")(send_receipt),
}


def converse(openai: Any, task: str, tools: dict[str, Callable[..., Any]] | None = None, stream: bool = True) -> str:
    """One agent's work on a task, in whatever run and lane this is."""
    messages = [{"role": "system", "content": "You work for a lamp shop."}, {"role": "user", "content": task}]
    return work(openai, messages, tools or TOOLS, stream=stream)


def record(
    store: Path,
    task: str,
    script: Script | Sequence[Turn],
    *,
    tools: dict[str, Callable[..., Any]] | None = None,
    agent: str = "support-agent",
    then: Callable[[], None] = lambda: None,
    **options: Any,
) -> Path:
    """Record one agent on one task; an error of a tool is the run's outcome. Returns the run."""
    played = script if callable(script) else play(script)
    about = {"name": agent, "version": "1"}
    with (
        suppress(ValueError, LookupError),
        provided(played),
        wl.record(store, task=task, agent=about, **options) as run,
    ):
        converse(client(), task, tools)
        then()
    assert run.path is not None
    return run.path
