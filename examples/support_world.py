"""The world of `support_agent.py`: a lamp shop in one JSON file, and a script for the models that the agent asks.

`python examples/support_world.py DIR` sets the shop in DIR back to its first day. The script is played by
`python -m worldline.testing.provider --script examples.support_world:script`.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

from worldline.testing.provider import Ask, Fail, Reply, Say, ToolCall

FIRST_DAY: dict[str, Any] = {
    "orders": {
        "812": {
            "customer": "C-77",
            "lines": [
                {"line": 1, "item": "Desk lamp, brass", "cents": 4900, "state": "delivered"},
                {"line": 2, "item": "Desk lamp, brass", "cents": 4900, "state": "delivered, shade broken"},
            ],
            "total_cents": 9800,
        }
    },
    "customers": {
        "C-77": {
            "mail": "c77@lamps.example",
            "since": 2019,
            "last_message": "One of the two lamps came with a broken shade. The other one is lovely, danke schön!",
        }
    },
    "refunds": [],
    "mails": [],
}


class Shop:
    """The shop's books in `DIR/shop.json`; opened on first use."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "shop.json"

    def moved(self, directory: Path) -> None:
        """The books are in another directory from now on."""
        self._file = directory / "shop.json"

    def order(self, number: int) -> dict[str, Any]:
        """The order, or an error for a number nobody knows."""
        found: dict[str, Any] = self._books()["orders"].get(str(number), {"error": f"no order {number}"})
        return found

    def customer_of(self, number: int) -> dict[str, Any]:
        """Who placed the order, with their last message."""
        books = self._books()
        if str(number) not in books["orders"]:
            return {"error": f"no order {number}"}
        name = books["orders"][str(number)]["customer"]
        return {"customer": name, **books["customers"][name]}

    def refund(self, order: int, cents: int, reason: str) -> dict[str, Any]:
        """Pays back; there is no way to take it back."""
        books = self._books()
        books["refunds"].append({"order": order, "cents": cents, "reason": reason})
        self._write(books)
        return {"refund": len(books["refunds"]), "order": order, "cents": cents}

    def send_mail(self, to: str, subject: str, body: str) -> dict[str, Any]:
        """Puts a mail into the outbox."""
        books = self._books()
        books["mails"].append({"to": to, "subject": subject, "body": body})
        self._write(books)
        return {"mail": len(books["mails"]), "to": to}

    def audit(self, order: int) -> dict[str, Any]:
        """Whether exactly the broken items of the order were paid back, and the customer told."""
        books = self._books()
        due = sum(line["cents"] for line in books["orders"][str(order)]["lines"] if "broken" in line["state"])
        paid = sum(refund["cents"] for refund in books["refunds"] if refund["order"] == order)
        told = any(f"#{order}" in mail["subject"] for mail in books["mails"])
        return {"passed": paid == due and told, "due_cents": due, "paid_cents": paid, "customer_told": told}

    def reset(self) -> None:
        """Back to the first day."""
        self._write(FIRST_DAY)

    def _books(self) -> dict[str, Any]:
        if not self._file.exists():
            self.reset()
        books: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
        return books

    def _write(self, books: dict[str, Any]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(books, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# ----------------------------------------------------------------------------------------------------- the models' part


DECISIONS = itertools.count()


def script(ask: Ask) -> Reply:
    """What both models say, by what they were told: another course of events gets another answer."""
    return opinion_or_draft(ask) if ask.api == "anthropic.messages" else clerk(ask)


def clerk(ask: Ask) -> Reply:
    """The main model: look things up, assess, act, report."""
    task = next(message["content"] for message in ask.messages if message["role"] == "user")
    order = int(re.findall(r"\d+", task)[0])
    called = {call["function"]["name"] for message in ask.messages for call in message.get("tool_calls") or ()}
    if "lookup_order" not in called:
        look_up = [ToolCall("lookup_order", {"order": order}), ToolCall("lookup_customer", {"order": order})]
        return Say(f"I look up order {order} and its customer.", look_up)
    if "second opinion" not in ask.last_user.lower():
        if ask.attempt == 0:
            return Fail(429, headers={"retry-after": "1", "retry-after-ms": "20"})
        return Say(f"A lamp of order {order} arrived broken and the customer wrote to us. I propose a refund.")
    if "refund" not in called:
        cents = 4900 if is_careful(ask) else 9800
        reason = "one of two lamps broken" if cents == 4900 else f"customer complained about order {order}"
        return Say("I pay back now.", [ToolCall("refund", {"order": order, "cents": cents, "reason": reason})])
    done = " ".join(text for _, text in ask.tool_results)
    paid = re.findall(r'"cents": ?(\d+)', done)
    return Say(f"Order {order}: {euros(int(paid[0]))} paid back." if paid else f"Order {order}: {done}")


def is_careful(ask: Ask) -> bool:
    """The small model overlooks two times out of three, the first time included, that only one lamp is broken.

    Chance is the request's `seed`, or a count of such decisions.
    """
    if "mini" not in ask.model:
        return True
    seed = ask.body.get("seed")
    return int(next(DECISIONS) if seed is None else seed) % 3 == 2


def opinion_or_draft(ask: Ask) -> Reply:
    """The other model: a second opinion, or the mail to the customer."""
    if "second opinion" in ask.last_user.lower():
        return Say("Only line 2 came broken, line 1 is fine. I would pay back €49.00, not the whole order.")
    amount = re.findall(r"€[\d.]+", ask.last_user)
    back = f"We have sent {amount[0]} back to you." if amount else "We are looking into it."
    return Say(f"Hello,\n\nwe are sorry about the broken lamp. {back}\n\nViele Grüße\nYour lamp shop")


def euros(cents: int) -> str:
    return f"€{cents // 100}.{cents % 100:02d}"


if __name__ == "__main__":
    Shop(Path(sys.argv[1] if len(sys.argv) > 1 else "shop")).reset()
