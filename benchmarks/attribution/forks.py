"""The agents of the suite for real: recorded by worldline, forked, and attributed by the study that users run.

The same programs run, with their steps as recorded tool calls; the recorded run is the suite's own. So a fork can be
held against the exact truth, and a study against the answer from the suite's rollouts.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import worldline as wl
from benchmarks.attribution.chance import STRIDE, Keyed, key
from benchmarks.attribution.families import Case
from benchmarks.attribution.further import Paraphrases, Retries
from benchmarks.attribution.running import Agent


class Performance:
    """An agent as a function without arguments, which opens its own run in `store`. `told` are dice for recording.

    Each step samples an id and throws its dice by it: so the record has the chance of each step, and a fork its own.
    """

    def __init__(self, agent: Agent, store: Path, told: Keyed | None = None) -> None:
        self.agent = agent
        self.store = store
        self._told = told
        self._dice = told or Keyed(0)
        self._now: tuple[int, Hashable] = (0, agent.start)
        self._decide = wl.tool(name="decide", effect="pure")(self._decided)

    def __call__(self) -> None:
        """One execution."""
        with wl.record(self.store, task=type(self.agent).__name__) as run:
            state = self.agent.start
            for number in range(self.agent.length):
                with run.step(f"step {number}"):
                    self._shake(number)
                    self._now = (number, state)
                    state = self._decide(*self._asked(number, state))
            self._shake(self.agent.length)
            run.outcome("succeeded" if self.agent.passed(state, self._dice) else "failed")

    def _decided(self, *asked: Any) -> Hashable:
        return self.agent.step(*self._now, self._dice)

    def _asked(self, number: int, state: Hashable) -> tuple[Any, ...]:
        """The words a step is called with, which are its key: a retry says the same again, a paraphrase all it said."""
        if isinstance(self.agent, Retries) and state in ("not asked", "no answer"):
            return ("the service",)
        return (state,) if isinstance(self.agent, Paraphrases) else (number, state)

    def _shake(self, number: int) -> None:
        own = Keyed(key(wl.uuid()))
        self._dice = self._told or own
        self._dice.place = number * STRIDE


def recorded(case: Case, store: Path) -> wl.Run:
    """The suite's own failing run of this case, recorded by worldline."""
    Performance(case.run.agent, store, Keyed(case.run.key))()
    run = wl.open("latest", store)
    if run.outcome != "failed" or len(run.steps) != case.run.length:
        raise AssertionError(f"{run.outcome} after {len(run.steps)} steps is another run than the suite's")
    return run


class Agreement(NamedTuple):
    """Of `forks` that hold the steps before `at`, so many succeeded; the exact chance is `value`."""

    at: int
    forks: int
    succeeded: int
    value: float


def forked(case: Case, run: wl.Run, store: Path, at: int, forks: int) -> Agreement:
    """Fork the recorded run for real."""
    agent = Performance(case.run.agent, store)
    report = run.fork(agent, at=f"step:{at}", n=forks, verifier="outcome")
    if report.pass_at_k is None or report.pass_at_k.n != forks:
        raise AssertionError(f"not every fork ended: {report.to_json()}")
    return Agreement(at, forks, report.pass_at_k.passed, case.truth.values[at])
