"""What is visibly wrong in a record is looked at first, with the step before it; nothing is left without weight."""

from __future__ import annotations

import pytest

from worldline.analysis.attribution.prior import prior
from worldline.engine.steps import Step, ToolCall
from worldline.errors import UsageError


def step(index: int, *calls: ToolCall, error: str | None = None, attempts: int = 1) -> Step:
    return Step(index, index * 4, "main", float(index), calls=list(calls), error=error, attempts=attempts)


def call(result: str | None = None, error: str | None = None) -> ToolCall:
    return ToolCall("c", "bash", "{}", "recorded", result=result, error=error)


def test_failures_and_the_step_before_them_weigh_more_than_others() -> None:
    run = [
        step(0, call("all good, 0 errors")),
        step(1, call("done")),
        step(2, call("Traceback (most recent call last):\n  File 'a.py'\nKeyError: 'x'")),
        step(3, call("done"), attempts=3),
        step(4, call(error="TimeoutError: 30 s")),
        step(5, call("FileNotFoundError: no such file")),
        step(6, error="the answer broke off"),
    ]
    weights = prior(run)
    assert weights[0] == 1.0 and weights[1] == weights[2] == 5.0 and weights[3] == 6.0
    assert weights[4] == weights[5] == 9.0 and weights[6] == 5.0
    assert prior([]) == []


def test_entropies_add_to_it_and_have_to_be_of_the_same_steps() -> None:
    run = [step(0), step(1), step(2)]
    assert prior(run, [0.0, 2.0, 1.0]) == [1.0, 3.0, 2.0]
    assert prior(run, [0.0, 0.0, 0.0]) == [1.0, 1.0, 1.0]
    with pytest.raises(UsageError):
        prior(run, [1.0])
