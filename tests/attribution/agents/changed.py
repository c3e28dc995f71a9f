"""The worker, changed since it was recorded: it has another first word for its model, and stops, or goes on."""

from __future__ import annotations

from tests.attribution.agents import worker
from tests.attribution.agents.worker import ask


def work() -> None:
    ask([{"role": "system", "content": "You work somewhere else."}, {"role": "user", "content": "job 0"}])


def reworded() -> None:
    worker.work("You work somewhere else.")
