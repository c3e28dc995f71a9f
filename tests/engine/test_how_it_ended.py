"""A replay is the same run only if it ends the same, well or not; a run in which nothing crossed proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import worldline as wl


@wl.tool(effect="pure")
def look(x: int) -> int:
    """A tool, so that something crosses."""
    return x


def well() -> None:
    look(1)


def badly() -> None:
    look(1)
    raise RuntimeError("broken after the last call")


def recorded(agent: Callable[[], None], store: Path) -> wl.Run:
    try:
        with wl.record(store):
            agent()
    except RuntimeError:
        pass
    return wl.open("latest", store)


@pytest.mark.parametrize(
    ("first", "again", "verdict"),
    [
        (well, well, "equivalent"),
        (badly, badly, "equivalent"),
        (well, badly, "diverged"),
        (badly, well, "diverged"),
    ],
)
def test_the_same_calls_and_another_end_is_no_equivalence(
    first: Callable[[], None], again: Callable[[], None], verdict: str, tmp_path: Path
) -> None:
    report = recorded(first, tmp_path).replay(again)
    assert report.verdict == verdict
    if verdict == "diverged":
        assert report.divergence is not None and report.divergence.kind == "outcome"
        ends = (0, 1) if first is well else (1, 0)
        assert (report.divergence.recorded, report.divergence.actual) == tuple(f"it ended with {end}" for end in ends)


def test_where_nothing_crossed_there_is_nothing_to_compare(tmp_path: Path) -> None:
    report = recorded(lambda: None, tmp_path).replay(well)
    assert (report.verdict, report.equivalent) == ("ineligible", False)
    assert "nothing crossed the recording" in report.reasons[0]
