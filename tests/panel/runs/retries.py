"""Retries and loops: a provider that refuses twice, a tool that fails and is called again, one called over and over."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import worldline as wl
from tests.panel.runs.minds import Turn, bundled, play
from tests.panel.runs.talk import TOOLS, record
from worldline.testing.provider import Ask, Fail, Reply

TURNS = [
    Turn("I look the order up.", "orders.read", {"order": "10-4473"}),
    Turn("I ask the carrier.", "carrier.track", {"parcel": "P-1"}),
    Turn("It is not there; again.", "carrier.track", {"parcel": "P-1"}),
    Turn("Once more.", "carrier.track", {"parcel": "P-1"}),
    *[Turn("Is it there now?", "parcel.poll", {"parcel": "P-1"})] * 9,
    Turn("It has arrived."),
]


def script(ask: Ask) -> Reply:
    """The turns, but the second request is refused twice before it is answered."""
    spoken = sum(message["role"] == "assistant" for message in ask.messages)
    if spoken == 1 and ask.attempt < 2:
        return Fail(429 if ask.attempt == 0 else 503, headers={"retry-after-ms": "1"})
    return played(ask)  # type: ignore[return-value]


played = play(TURNS)


def tools() -> dict[str, Any]:
    """The desk's tools, and a carrier's that answer late. They report failures as results, so the agent goes on."""
    tracked, polled = itertools.count(1), itertools.count(1)

    @wl.tool(name="carrier.lookup", effect="pure")
    def lookup(parcel: str) -> str:
        if next(tracked) < 3:
            raise ConnectionError("the carrier does not answer")
        return f"{parcel} is on its way"

    def track(parcel: str) -> str:
        try:
            return str(lookup(parcel))
        except ConnectionError as error:
            return f"error: {error}"

    @wl.tool(name="parcel.poll", effect="pure")
    def poll(parcel: str) -> str:
        return "arrived" if next(polled) >= 9 else "on its way"

    return {**TOOLS, "carrier.track": track, "parcel.poll": poll}


def make(folder: Path) -> list[Path]:
    """`retries.skn`."""
    target = folder / "retries.skn"
    if not target.exists():
        bundled(record(folder / "runs", "Where is order 10-4473?", script, tools=tools()), target)
    return [target]
