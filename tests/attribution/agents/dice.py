"""Three steps that ask no model: all chance is the run's own generator, drawn from in each step."""

from __future__ import annotations

import sys

import worldline as wl


def throw() -> None:
    bad = False
    for name in ("read", "plan", "act"):
        with wl.step(name):
            luck = wl.rng().random()
            bad = bad or (name == "plan" and luck < 0.5)
            wl.uuid()
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    throw()
