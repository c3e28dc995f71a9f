"""The worker, changed since it was recorded: it has another first word for its model."""

from __future__ import annotations

from tests.attribution.agents.worker import ask


def work() -> None:
    ask([{"role": "system", "content": "You work somewhere else."}, {"role": "user", "content": "job 0"}])
