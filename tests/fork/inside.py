"""Agents of this process for forks: tools alone, each turn a step, so that hundreds of branches cost little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import worldline as wl
from worldline.engine.spec import RecordingSpec

FIRED: list[str] = []


@wl.tool(effect="pure")
def look(number: int) -> str:
    return f"{number}: {wl.uuid()}"


@wl.tool(idempotency_key=lambda to: f"mail:{to}")
def mail(to: str) -> str:
    FIRED.append(to)
    return f"mailed {to}"


class Walker:
    """Looks `turns` times, a step each; `saw` is what it saw last time it ran."""

    def __init__(self, turns: int, words: str = "") -> None:
        self.turns = turns
        self.words = words
        self.saw: list[str] = []
        self.drawn: list[float] = []

    def __call__(self) -> None:
        self.saw, self.drawn = [], []
        with wl.record("runs", task="walk") as run:
            chance = run.rng()
            for number in range(self.turns):
                with run.step(f"turn {number}"):
                    self.saw.append(look(number) + self.words)
                    self.drawn.append(chance.random())
            run.outcome("succeeded")


def recorded(agent: Any, spec: RecordingSpec | None = None, **more: Any) -> wl.Run:
    """Record an agent that opens its own run in `runs`."""
    agent()
    return wl.open("latest", "runs")


def opened(path: str | Path) -> wl.Run:
    return wl.open(str(path), "runs")
