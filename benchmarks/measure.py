"""Contests: pieces of work measured in turns, so that a machine whose speed drifts does not decide a ratio.

Each piece of work does one turn and gives its figure per operation: seconds (of CPU or of the wall), bytes or a count.
A row takes the medians over all rounds; what it compares was measured in the same rounds.
"""

from __future__ import annotations

import pstats
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import util
from typing import NamedTuple

Work = Callable[[], float]
"""One turn. Returns its figure per operation: seconds, bytes or a count."""

Clock = Callable[[], float]
CPU: Clock = time.process_time
WALL: Clock = time.perf_counter
SCALES = {"us": 1e6, "ms/MB": 1e9, "ms": 1e3, "s": 1.0, "MB": 1e-6, "": 1.0, "/s": 1.0}
"""Units of the two figures that a row compares, by what a second or a byte is multiplied with."""


class Row(NamedTuple):
    """One line of the table: `ours` against the sum of `peers`, both names of works of its contest.

    `figure` says what is compared with the `limit`: `ratio` (ours to peers), `speed` (peers to ours: how many times as
    fast we are), `more` (ours less peers, in `unit`), `own` (ours alone, in `unit`) or `rate` (operations a second).
    """

    name: str
    what: str
    ours: str
    peers: tuple[str, ...] = ()
    peer: str = ""
    figure: str = "ratio"
    unit: str = "us"
    limit: float | None = None
    at_least: bool = False
    disk: bool = False  # then the spread of the disk is said, too


class Contest(NamedTuple):
    """`prepare` makes the works, in a directory of its own; it is told whether a quick look is enough.

    Works in `seldom` take part in so many rounds only.
    """

    prepare: Callable[[bool], AbstractContextManager[Mapping[str, Work]]]
    rows: tuple[Row, ...]
    rounds: int = 9
    quick_rounds: int = 1
    profile: Callable[[], pstats.Stats] | None = None  # of our side, where that is another process
    seldom: Mapping[str, int] = {}


class Result(NamedTuple):
    """What a row came to. `ours` and `peers` are in the row's unit; `spread` is the middle half of the peer's turns
    relative to its median (of ours where there is no peer). `missing` names what was not there to measure against.
    """

    row: Row
    ours: float | None = None
    peers: float | None = None
    figure: float | None = None
    spread: float | None = None
    missing: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none, or nothing was measured."""
        if self.row.limit is None or self.figure is None:
            return None
        return self.figure >= self.row.limit if self.row.at_least else self.figure <= self.row.limit


def installed(package: str) -> bool:
    """Whether it can be imported here."""
    try:
        return util.find_spec(package) is not None
    except ModuleNotFoundError:  # a package around it
        return False


def timed(clock: Clock, operations: int, work: Callable[[], object]) -> float:
    """The seconds of `clock` that one of `operations` takes."""
    began = clock()
    work()
    return (clock() - began) / operations


def hold(contest: Contest, rows: list[Row], quick: bool, tell: Callable[[str], None]) -> list[Result]:
    """Run what these rows of a contest need, in turns, after one turn to warm up."""
    with contest.prepare(quick) as works:
        wanted = {name for row in rows for name in (row.ours, *row.peers)}
        taking_part = {name: work for name, work in works.items() if name in wanted}
        rounds = contest.quick_rounds if quick else contest.rounds
        turns: dict[str, list[float]] = {name: [] for name in taking_part}
        for number in range(rounds + (rounds > 1)):
            tell(f"round {number + 1}")
            for name, work in taking_part.items():
                if number < contest.seldom.get(name, rounds) + (rounds > 1):
                    turns[name].append(work())
        return [_result(row, {name: figures[rounds > 1 :] for name, figures in turns.items()}) for row in rows]


def _result(row: Row, turns: Mapping[str, list[float]]) -> Result:
    missing = [name for name in (row.ours, *row.peers) if name not in turns]
    if missing:
        return Result(row, missing=", ".join(missing))
    ours = statistics.median(turns[row.ours])
    peers = sum(statistics.median(turns[name]) for name in row.peers)
    scale = SCALES[row.unit]
    figure = {
        "ratio": lambda: ours / peers,
        "speed": lambda: peers / ours,
        "more": lambda: (ours - peers) * scale,
        "own": lambda: ours * scale,
        "rate": lambda: 1 / ours,
    }[row.figure]()
    measured_against = turns[row.peers[0] if row.peers else row.ours]
    return Result(row, ours * scale, peers * scale if row.peers else None, figure, _spread(measured_against))


def _spread(figures: list[float]) -> float | None:
    if len(figures) < 4 or not statistics.median(figures):
        return None
    low, middle, high = statistics.quantiles(figures, n=4)
    return (high - low) / middle
