"""The order desk: a small shop's back office on loopback, for agents that work in a browser.

Pages of orders, customers, stock and policies, with a script and a style sheet of their own; an API that refuses
refunds over $50, fails once where stock is asked for, and logs what it does to the console as web pages do.
"""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

ORDERS: dict[str, dict[str, Any]] = {
    f"10-{number}": {
        "customer": customer,
        "placed": f"2026-03-{day:02d}",
        "state": state,
        "lines": lines,
    }
    for number, customer, day, state, lines in (
        (4468, 71, 2, "shipped", [(1, "Desk lamp, brass", 4900)]),
        (4469, 88, 3, "shipped", [(3, "Bulb, warm white", 450)]),
        (4470, 64, 3, "returned", [(1, "Floor lamp, oak", 12900)]),
        (4471, 88, 4, "shipped", [(2, "Desk lamp, brass", 3200), (1, "Shade, linen", 1850)]),
        (4472, 90, 5, "packed", [(4, "Bulb, warm white", 450), (1, "Shade, linen", 1850)]),
        (4473, 71, 5, "packed", [(1, "Pendant, glass", 8900)]),
        (4474, 59, 6, "new", [(2, "Cable, textile, 3 m", 1200)]),
        (4475, 88, 7, "new", [(1, "Dimmer", 2600)]),
    )
}
STOCK = {"Desk lamp, brass": 14, "Shade, linen": 3, "Bulb, warm white": 220, "Floor lamp, oak": 0, "Dimmer": 9}
LIMIT = 5000
HERE = Path(__file__).parent
LOGO = (
    '<svg viewBox="0 0 24 24" fill="none" stroke="#fff" stroke-width="2" aria-hidden="true">'
    '<path d="M6 10 L12 3 L18 10 Z M12 10 V20 M7 20 H17"/></svg>'
)


class Desk:
    """The desk as a server. `refunds` are those it has paid; `requests` every path it was asked for."""

    def __init__(self) -> None:
        self.refunds: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.stock_asked = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, str, str]:
        """Status, media type and text of the answer to one request."""
        url = urlsplit(target)
        parts = [part for part in url.path.split("/") if part]
        self.requests.append(f"{method} {target}")
        if parts[:1] == ["api"]:
            status, said = self._api(method, parts[1:], parse_qs(url.query), body)
            return status, "application/json", json.dumps(said)
        if parts[:1] == ["static"]:
            media = {"desk.css": "text/css", "desk.js": "text/javascript"}.get(parts[-1])
            text = (HERE / parts[-1]).read_text("utf-8") if media else "no such file"
            return (200 if media else 404), media or "text/plain", text
        page = PAGES.get(parts[0] if parts else "orders")
        made = page(parts[1:]) if page else None
        if made is None:
            return 404, "text/html", document("orders", "Not found", "<h1>Not found</h1><p>There is no such page.</p>")
        return 200, "text/html", made

    def _api(self, method: str, parts: list[str], query: dict[str, list[str]], body: bytes) -> tuple[int, Any]:
        if parts == ["orders"]:
            word = query.get("q", [""])[0].lower()
            return 200, [number for number in ORDERS if word in number or word in str(ORDERS[number]).lower()]
        if parts[:1] == ["orders"] and parts[1] in ORDERS:
            return 200, {"order": parts[1], **ORDERS[parts[1]], "total": total(parts[1])}
        if parts == ["stock"]:
            self.stock_asked += 1
            return (503, {"error": "stock is being counted"}) if self.stock_asked == 1 else (200, STOCK)
        if parts == ["refunds"] and method == "POST":
            asked = json.loads(body)
            if asked["cents"] > LIMIT:
                return 403, {"error": "Refunds over $50 need approval", "policy": "money-over-50"}
            self.refunds.append(asked)
            return 200, {"refund": len(self.refunds), **asked}
        return 404, {"error": "no such resource"}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        desk = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                self._answer()

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                status, media, text = desk.answer(self.command, self.path, body)
                data = text.encode()
                self.send_response(status)
                self.send_header("content-type", f"{media}; charset=utf-8")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """What was asked is in `requests`."""

        return Handler


# --------------------------------------------------------------------------------------------------------------- pages


def dollars(cents: int) -> str:
    """Cents as a price."""
    return f"${cents / 100:.2f}"


def total(number: str) -> int:
    """What an order costs, in cents."""
    return sum(quantity * cents for quantity, _, cents in ORDERS[number]["lines"])


def document(page: str, title: str, body: str, order: str = "") -> str:
    """A page of the desk."""
    links = "".join(
        f'<a href="/{name}"{" aria-current=page" if name == page else ""}>{name.capitalize()}</a>'
        for name in ("orders", "customers", "stock", "policies")
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)} · Order desk</title>'
        f'<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/desk.css"></head>'
        f'<body data-page="{page}" data-order="{order}"><header>{LOGO}<b>Order desk</b><nav aria-label="Desk" '
        f'style="display:flex;gap:22px">{links}</nav></header><main>{body}</main>'
        f'<script src="/static/desk.js"></script></body></html>'
    )


def orders(parts: list[str]) -> str | None:
    """The list of orders, or one."""
    if parts:
        return order(parts[0]) if parts[0] in ORDERS else None
    rows = "".join(
        f'<tr data-order="{number}"><td><a href="/orders/{number}">{number}</a></td><td>Customer {o["customer"]}</td>'
        f'<td>{o["placed"]}</td><td><span class="state">{o["state"]}</span></td>'
        f'<td class="n">{dollars(total(number))}</td></tr>'
        for number, o in ORDERS.items()
    )
    return document(
        "orders",
        "Orders",
        '<h1>Orders</h1><div class="card"><label for="search">Search</label><input id="search" type="search">'
        f'<p id="count" role="status">{len(ORDERS)} orders</p><table aria-label="Orders"><thead><tr><th>Order</th>'
        f"<th>Customer</th><th>Placed</th><th>State</th><th>Total</th></tr></thead><tbody>{rows}</tbody></table></div>",
    )


def order(number: str) -> str:
    """One order, with the form for a refund."""
    found = ORDERS[number]
    rows = "".join(
        f'<tr><td>{quantity}</td><td>{item}</td><td class="n">{dollars(cents)}</td><td>{found["state"]}</td></tr>'
        for quantity, item, cents in found["lines"]
    )
    parts = "".join(
        f'<option value="{quantity * cents / 100:.2f}">{item}</option>' for quantity, item, cents in found["lines"]
    )
    return document(
        "orders",
        f"Order {number}",
        f'<h1>Order {number}</h1><div class="card"><p>Placed {found["placed"]} by '
        f'<a href="/customers/{found["customer"]}">Customer {found["customer"]}</a></p>'
        '<table aria-label="Items"><thead>'
        f"<tr><th>Qty</th><th>Item</th><th>Price</th><th>State</th></tr></thead><tbody>{rows}</tbody></table></div>"
        '<div class="card"><h2 style="margin:0">Refund</h2><label for="part">Item</label><select id="part">'
        f'<option value="{total(number) / 100:.2f}">Whole order</option>{parts}</select>'
        '<label for="amount">Amount</label><input id="amount" inputmode="decimal">'
        '<label for="reason">Reason</label><input id="reason">'
        '<div id="limit" class="alert" role="alert" hidden>Refunds over $50 need approval</div><div id="told"></div>'
        '<button id="refund" type="button">Issue refund</button><a href="/orders">Back to orders</a></div>',
        number,
    )


def customers(parts: list[str]) -> str | None:
    """All customers, or one with the last message."""
    names = sorted({o["customer"] for o in ORDERS.values()})
    if not parts:
        rows = "".join(
            f'<tr><td><a href="/customers/{n}">Customer {n}</a></td><td>c{n}@mail.example</td></tr>' for n in names
        )
        return document("customers", "Customers", f'<h1>Customers</h1><div class="card"><table>{rows}</table></div>')
    if parts[0] not in {str(name) for name in names}:
        return None
    return document(
        "customers",
        f"Customer {parts[0]}",
        f'<h1>Customer {parts[0]}</h1><div class="card"><p>c{parts[0]}@mail.example, since 2019</p></div>'
        '<div class="card"><h2 style="margin:0">Last message</h2><blockquote>One of the two lamps came with a broken '
        "shade. The other one is lovely, danke schön!</blockquote></div>",
    )


def stock(parts: list[str]) -> str | None:
    """What is in stock, asked for by the script."""
    return document(
        "stock",
        "Stock",
        '<h1>Stock</h1><div class="card"><button id="check-stock" class="plain">Count the stock</button>'
        '<div id="stock" style="margin-top:14px"></div></div>',
    )


def policies(parts: list[str]) -> str | None:
    """The rules."""
    return document(
        "policies",
        "Policies",
        '<h1>Policies</h1><div class="card"><ol><li>Pay back what came broken, never more.</li><li>Refunds over $50 '
        "need approval (money-over-50).</li><li>Ask the customer before you refund a whole order.</li></ol></div>",
    )


PAGES: dict[str, Callable[[list[str]], str | None]] = {
    "orders": orders,
    "customers": customers,
    "stock": stock,
    "policies": policies,
}
