"""Sub-agents in lanes of their own, at the same time: a lead asks three, each with a model and tools, and sums up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import worldline as wl
from tests.panel.runs.minds import MODEL, Turn, bundled, client, play, provided
from tests.panel.runs.talk import converse
from worldline.testing.provider import Ask, Reply, Say

PARTS = {
    "orders": [
        Turn("Which orders?", "orders.find", {"customer": 88}),
        Turn("The lamp's.", "orders.read", {"order": "10-4471"}),
        Turn("One lamp of two is broken."),
    ],
    "stock": [
        Turn("Lamps?", "stock.count", {"item": "Desk lamp, brass"}),
        Turn("Shades?", "stock.count", {"item": "Shade, linen"}),
        Turn("There are enough of both."),
    ],
    "refunds": [
        Turn("I pay all of it.", "refund.pay", {"order": "10-4471", "cents": 8250}),
        Turn("Then only the lamp.", "refund.pay", {"order": "10-4471", "cents": 3200}),
        Turn("The lamp is paid back."),
    ],
}
SCRIPTS = {name: play(turns) for name, turns in PARTS.items()}


def script(ask: Ask) -> Reply:
    """Each agent's turns by what it was asked; the lead speaks alone."""
    first = next(str(m["content"]) for m in ask.messages if m["role"] == "user")
    part = next((name for name in PARTS if first.startswith(name)), None)
    return SCRIPTS[part](ask) if part else Say(f"On: {first[:40]}")  # type: ignore[return-value]


def lead(openai: Any, text: str) -> str:
    """The lead says one thing."""
    answer = openai.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": text}])
    return str(answer.choices[0].message.content)


def record(store: Path) -> Path:
    """Record the lead and its three. Returns the run."""
    with provided(script), wl.record(store, task="A broken lamp: who does what?", agent={"name": "team"}) as run:
        openai = client(wrapped=True)
        lead(openai, "Plan the work.")

        def part(name: str) -> str:
            with wl.lane(name):
                return converse(openai, f"{name}: your part of it", stream=False)

        with ThreadPoolExecutor(max_workers=3) as threads:
            found = list(threads.map(run.bind(part), PARTS))
        lead(openai, "Sum up: " + " ".join(found))
        wl.outcome("succeeded", reward=0.5)
    assert run.path is not None
    return run.path


def make(folder: Path) -> list[Path]:
    """`lanes.skn`."""
    target = folder / "lanes.skn"
    if not target.exists():
        bundled(record(folder / "runs"), target)
    return [target]
