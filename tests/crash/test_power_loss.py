"""Whatever a power loss leaves of a recording, reconciling finds everything that was promised, and nothing else.

The states are enumerated (`tests.crash.states`): in `make test` a sample with all the telling ones, in `make soak` all
of longer recordings. `STATES` says how many distinct ones `make test` looks at, at the least: over 10,000 together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.crash import scenes
from tests.crash.judge import judge
from tests.crash.judge_forgetting import judge_containment, judge_expiry
from tests.crash.scenes import Scene, after_kill, after_loss, record, recorded, settle
from tests.crash.states import Crashed, crashes, digest, sample
from tests.crash.trace import Trace
from tests.soak import Soak

STATES = {
    "rows and rotation": 4200,
    "contents of both tiers": 2900,
    "a second attempt": 900,
    "no hard links": 500,
    "reconciling behind a power loss": 700,
    "reconciling behind a kill": 560,
    "reconciling a partial one behind a kill": 40,
    "recording behind a kill": 120,
    "an expiry": 150,
    "a containment": 10,
}
PARTS = 32  # of the states of one long recording: what a round of the long form looks at
SCENES: dict[str, Callable[[int], Scene]] = {
    "rows and rotation": lambda calls: lambda trace: record(trace, calls + 1),
    "contents of both tiers": lambda calls: lambda trace: record(trace, calls, retention=scenes.RETENTION),
    "a second attempt": lambda calls: lambda trace: scenes.twice(trace, calls - 1),
    "no hard links": lambda calls: lambda trace: scenes.unlinked(trace, calls),
}
Judge = Callable[..., None]
KILLED: dict[str, tuple[Scene, Scene, slice, int]] = {  # what is killed, what follows, where, and how many states
    "reconciling behind a kill": (lambda trace: record(trace, 2), settle, slice(1, None, 2), 12),
    "reconciling a partial one behind a kill": (
        lambda trace: record(trace, 1, ends="partial"),
        settle,
        slice(-12, None),
        6,
    ),
    # Where directories are made.
    "recording behind a kill": (lambda trace: record(trace, 1), lambda trace: record(trace, 1), slice(1, 10, 2), 30),
}


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same recordings every time."""
    scenes.steady(monkeypatch)


def new(folder: Path) -> Path:
    """An empty directory of its own."""
    place = folder / f"{len(list(folder.iterdir()))}"
    place.mkdir()
    return place


def judged(
    chosen: Iterable[Crashed], trace: Trace, folder: Path, seen: set[bytes], judge: Judge = judge, every: int = 4
) -> None:
    """Judge the states, one of `every` few thoroughly."""
    place = new(folder)
    for number, crashed in enumerate(chosen):
        judge(crashed, trace, place, thorough=number % every == 0)
        seen.add(digest(crashed.state))


def test_the_states_are_ten_thousand() -> None:
    assert sum(STATES.values()) > 10_000


@pytest.mark.parametrize("name", SCENES)
def test_a_recording_that_loses_power(name: str, quick: Path, soak: Soak) -> None:
    seen: set[bytes] = set()
    for number in soak.rounds():
        calls, part = (2, 0) if not soak.long else (3 + number // PARTS, number % PARTS)
        trace = recorded(new(quick), SCENES[name](calls))
        found = crashes(trace)
        judged(found[part::PARTS] if soak.long else sample(found, STATES[name] + 20), trace, quick, seen)
    assert soak.long or len(seen) >= STATES[name]


def test_reconciling_that_loses_power(quick: Path, soak: Soak) -> None:
    """What it makes of a state that a power loss left is as safe as what it found."""
    seen: set[bytes] = set()
    for number in soak.rounds():
        trace = recorded(new(quick), SCENES["rows and rotation"](1 + number // PARTS))
        found = crashes(trace)
        for first in found[number % PARTS :: PARTS * 20] if soak.long else found[100::300]:
            again = after_loss(first, trace, new(quick))
            judged(crashes(again), again, quick, seen)
    assert soak.long or len(seen) >= STATES["reconciling behind a power loss"]


@pytest.mark.parametrize("name", KILLED)
def test_a_kill_and_then_a_power_loss(name: str, quick: Path, soak: Soak) -> None:
    """A killed program leaves what it did in memory; who comes behind it may not take that for durable."""
    seen: set[bytes] = set()
    killed, then, points, most = KILLED[name]
    for number in soak.rounds():
        trace = recorded(new(quick), killed)
        for count in range(len(trace.ops) + 1)[slice(None) if soak.long else points]:
            again = after_kill(trace, count, new(quick), then)
            found = crashes(again, since=count)
            judged(found[number % PARTS :: PARTS] if soak.long else sample(found, most), again, quick, seen)
    assert soak.long or len(seen) >= STATES[name]


def test_an_expiry_that_loses_power(quick: Path, soak: Soak) -> None:
    """What is gone has a record that was durable first, and the next expiry finishes."""
    place, seen = new(quick), set[bytes]()
    record(Trace(place), 3, retention=scenes.RETENTION)
    trace = recorded(place, scenes.forget)
    judged(crashes(trace), trace, quick, seen, judge_expiry)
    for count in range(1, len(trace.ops), 1 if soak.long else 4):
        again = after_kill(trace, count, new(quick), scenes.forget)
        found = crashes(again, since=count)
        judged(found if soak.long else sample(found, 6), again, quick, seen, judge_expiry)
    assert soak.long or len(seen) >= STATES["an expiry"]


def test_a_containment_that_loses_power(quick: Path, soak: Soak) -> None:
    """Once its record stands nobody opens the run, and the next containment finishes."""
    place, seen = new(quick), set[bytes]()
    record(Trace(place), 2, retention=scenes.RETENTION, answer=scenes.SECRET)
    record(Trace(place), 1, retention=scenes.RETENTION)
    trace = recorded(place, scenes.hide)
    judged(crashes(trace), trace, quick, seen, judge_containment)
    for count in range(1, len(trace.ops), 1 if soak.long else 3):
        again = after_kill(trace, count, new(quick), scenes.hide)
        judged(sample(crashes(again, since=count), 1), again, quick, seen, judge_containment, every=10)
    assert soak.long or len(seen) >= STATES["a containment"]
