"""The verifier of the agent in `bulbs.py`: it judges what was recorded, and believes nobody's word."""

from __future__ import annotations

import json

import worldline as wl

ROOM = "kitchen"
SOCKET = "E14"
BULBS = frozenset({"Pine"})
"""The bulbs that have that socket."""


def score(run: wl.Run) -> float:
    """1 when the last thing done was to put a fitting bulb into the kitchen's lamp, else 0."""
    calls = [call for step in run.steps for call in step.calls]
    if not calls or calls[-1].name != "put":
        return 0.0
    done = json.loads(calls[-1].arguments)
    return 1.0 if done["room"] == ROOM and done["bulb"] in BULBS else 0.0
