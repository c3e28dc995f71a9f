"""A worker on a line whose model throws a die at one job, and the store in which a run of it that failed stands."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import worldline as wl
from tests.attribution.agents import worker
from tests.cli.terminal import environment, worldline
from worldline.testing.provider import Ask, Provider, Reply, Say

AGENT = "tests.attribution.agents.worker:work"
COMMAND = (sys.executable, str(Path(worker.__file__)))
CULPRIT = 1
CHANCE = 0.25  # of bad work there


def foreman(ask: Ask) -> Reply:
    """Good work at every job but one; at that one a die, thrown with the request's seed. Without a seed it is bad."""
    job = sum(message["role"] == "user" for message in ask.messages) - 1
    seed = ask.body.get("seed")
    chance = 0.0 if seed is None else hashlib.sha256(f"{seed}/{job}".encode()).digest()[0] / 256
    return Say(f"bad work at {job}" if job == CULPRIT and chance < CHANCE else f"good work at {job}")


def recorded(store: Path, provider: Provider) -> wl.Run:
    """A run of the worker that failed."""
    ended = worldline("record", "--out", store, "--task", "a line of jobs", "--", *COMMAND, env=environment(provider))
    assert ended.code == 1, ended.err
    return wl.open("latest", store)
