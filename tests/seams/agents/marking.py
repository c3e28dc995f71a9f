"""An agent that records itself and says one word: `python marking.py STORE WORD`. It prints its recording's path."""

from __future__ import annotations

import sys

import worldline as wl


@wl.tool(effect="pure")
def mark(text: str) -> str:
    return f"seen {text}"


with wl.record(sys.argv[1], task="mark") as run:
    for _ in range(20):
        mark(sys.argv[2])
print(run.path)
