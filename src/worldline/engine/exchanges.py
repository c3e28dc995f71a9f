"""Exchanges: the crossings of a record, each folded from its rows. One is started, may be given up, and is finished.

The fold needs one row after the other and keeps nothing itself: whoever reads a log whole keeps every exchange (the
cassette), whoever only passes through lets go of those that ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from worldline.model.events import Event

FINISHING = frozenset({"decision/response", "observation/tool_result", "observation/sample"})
CONTENTS = frozenset({"arguments", "result", "value", "facts", "body", "pieces"})  # read when they are asked for


class Exchange(msgspec.Struct):
    """One crossing of the record. `finished` is the seq of its finished row, None where its end is unknown."""

    call: str
    kind: str
    name: str
    key: str
    lane: str
    started: int
    parent: str | None
    start_data: dict[str, Any]
    start_t: int
    finished: int | None = None
    end_t: int | None = None
    data: dict[str, Any] = {}
    chunks: list[dict[str, Any]] = []
    instant: bool = False  # a sample: one row is both start and finish
    given_up: str | None = None  # why nobody waited for its end
    given_up_t: int | None = None
    effect: str | None = None
    idempotency_key: str | None = None
    mode: str = "live"

    @property
    def end(self) -> float:
        """Its place in the finishing order; an unknown one never finished."""
        return float("inf") if self.finished is None else self.finished


def unsettled(exchanges: list[Exchange]) -> list[Exchange]:
    """Those that had started when a record broke off and of which no later one with the same key tells the end."""
    open_by_key: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        if exchange.finished is None and exchange.given_up is None:
            open_by_key.setdefault(exchange.key, []).append(exchange)
        elif exchange.finished is not None and exchange.key in open_by_key and open_by_key[exchange.key]:
            open_by_key[exchange.key].pop()
    return [exchange for found in open_by_key.values() for exchange in found]


def fold(event: Event, by_call: dict[str, Exchange], opened: Callable[[Event], dict[str, Any]]) -> Exchange | None:
    """Fold one row: the exchange that it began (then in `by_call`), went on with or ended; None for any other row.

    `opened` gives a row's data, what it had no room for read from its contents.
    """
    keys = event.keys
    call = keys.get("call")
    if call is None:
        return None
    name = event.name
    if "key" in keys:
        instant = name == "observation/sample"
        by_call[call] = Exchange(
            call=call,
            kind=event.kind,
            name=str(event.data.get("name")),
            key=keys["key"],
            lane=event.lane,
            started=event.seq,
            parent=keys.get("parent_id"),
            effect=keys.get("effect"),
            idempotency_key=keys.get("idempotency_key"),
            mode=keys.get("mode", "live"),
            start_data=opened(event),
            start_t=event.t,
            chunks=[],
            instant=instant,
        )
        if not instant:
            return by_call[call]
    exchange = by_call.get(call)
    if exchange is None:  # its started row is damaged
        return None
    if name == "decision/chunk":
        exchange.chunks.append(event.data)
    elif name == "meta/unknown":
        exchange.given_up, exchange.given_up_t = str(event.data.get("why")), event.t
    elif name in FINISHING:
        exchange.finished, exchange.end_t, exchange.data = event.seq, event.t, opened(event)
    return exchange
