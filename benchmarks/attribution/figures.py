"""The tables: the targets first, then every cell, then what others make of the same runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from benchmarks.attribution.families import BY_NAME, FLAT, HARDER, LENGTHS, PLANTED, RANDOM, SYSTEMATIC
from benchmarks.attribution.scoring import Cell

PEER = "seed N=50"
JUDGED = 100  # runs from which on a cell alone is held against its limits; fewer say nothing about 95 in 100
LEAST_EXACT, LEAST_COVERAGE, MOST_FALSE, LEAST_SYSTEMATIC = 0.88, 0.93, 0.05, 0.97


class Target(NamedTuple):
    """One promise: its figure, and whether that has to be at least or at most the limit. None: not measured."""

    what: str
    figure: float | None
    limit: float
    at_least: bool
    peer: float | None = None
    digits: int = 3

    @property
    def met(self) -> bool | None:
        """Whether it is kept."""
        if self.figure is None:
            return None
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    def line(self) -> str:
        """The line in Markdown."""
        said = {None: "", True: "met", False: "**missed**"}[self.met]
        sign = "≥" if self.at_least else "≤"
        here, limit, peer = (number(value, self.digits) for value in (self.figure, self.limit, self.peer))
        return f"| {self.what} | {here} | {sign} {limit} | {said} | {peer} |"


def number(value: float | None, digits: int = 3) -> str:
    """A figure: shares without the leading zero, counts with commas."""
    if value is None:
        return ""
    return f"{value:.{digits}f}" if digits else f"{value:,.0f}"


def targets(cells: list[Cell]) -> list[Target]:
    """All promises."""
    ours = [cell for cell in cells if cell.method == "locate"]
    peers = [cell for cell in cells if cell.method == PEER]
    found: list[Target] = []
    for length, most in ((50, 380), (200, 500)):
        mine, theirs = _of(ours, PLANTED, length), _of(peers, PLANTED, length)
        what = f"T={length}, {len(mine)} planted families"
        found.append(Target(f"{what}: exact, mean", mean(_exact(mine)), 0.97, True, mean(_exact(theirs))))
        if length == 50:
            found.append(
                Target(f"{what}: exact, the worst", least(_exact(mine)), LEAST_EXACT, True, least(_exact(theirs)))
            )
        rollouts = [[cell.rollouts for cell in group] for group in (mine, theirs)]
        found.append(Target(f"{what}: rollouts, mean", mean(rollouts[0]), most, False, mean(rollouts[1]), 0))
    mine, theirs = _of(ours, RANDOM), _of(peers, RANDOM)
    found.append(Target("random family, T=80: exact", mean(_exact(mine)), 0.90, True, mean(_exact(theirs))))
    false = [mean(cell.false for cell in group) for group in (mine, theirs)]
    found.append(Target("random family, T=80: false claims", false[0], 0.01, False, false[1]))
    flat = [[cell.false for cell in _of(group, FLAT)] for group in (ours, peers)]
    found.append(
        Target("false claims on a flat agent, the worst cell", most_of(flat[0]), MOST_FALSE, False, most_of(flat[1]))
    )
    faulty = [cell for cell in ours if BY_NAME[cell.family].group != FLAT and cell.intervals >= JUDGED / 2]
    coverage = [cell.coverage for cell in faulty if cell.coverage is not None]
    found.append(Target("interval coverage, the worst cell", least(coverage), LEAST_COVERAGE, True))
    found.append(Target("interval coverage, mean", mean(coverage), 0.95, True))
    planted = [cell for cell in ours if BY_NAME[cell.family].group in (PLANTED, HARDER)]
    found.append(Target("`decisive` is right, all families with a planted fault", _precision(planted), 0.995, True))
    found.append(Target("`decisive` is right, random", _precision(mine), 0.97, True))
    detected = [cell.share("systematic") for cell in _of(ours, SYSTEMATIC)]
    found.append(Target("`systematic` detected, the worst cell", least(detected), LEAST_SYSTEMATIC, True))
    return found


def _of(cells: list[Cell], group: str, length: int | None = None) -> list[Cell]:
    return [cell for cell in cells if BY_NAME[cell.family].group == group and length in (None, cell.length)]


def _exact(cells: Iterable[Cell]) -> list[float]:
    return [cell.exact for cell in cells]


def _precision(cells: list[Cell]) -> float | None:
    called = sum(cell.decisive for cell in cells)
    return sum(cell.decisive_right for cell in cells) / called if called else None


def mean(values: Iterable[float]) -> float | None:
    """Their mean, None of none."""
    found = list(values)
    return sum(found) / len(found) if found else None


def _of_some(choose: Callable[[list[float]], float], values: Iterable[float]) -> float | None:
    found = list(values)
    return choose(found) if found else None


def least(values: Iterable[float]) -> float | None:
    """The smallest, None of none."""
    return _of_some(min, values)


def most_of(values: Iterable[float]) -> float | None:
    """The largest, None of none."""
    return _of_some(max, values)


def missed(cell: Cell) -> str:
    """Which limits for one cell it does not keep."""
    group = BY_NAME[cell.family].group
    faults: list[str] = []
    if cell.runs < JUDGED:
        return ""
    if group in (PLANTED, HARDER) and cell.exact < LEAST_EXACT:
        faults.append("exact")
    if group == FLAT and cell.false > MOST_FALSE:
        faults.append("false claims")
    if group != FLAT and cell.coverage is not None and cell.coverage < LEAST_COVERAGE:
        faults.append("coverage")
    if group == SYSTEMATIC and cell.share("systematic") < LEAST_SYSTEMATIC:
        faults.append("not detected")
    return "**" + ", ".join(faults) + "**" if faults else ""


def target_table(cells: list[Cell]) -> str:
    """The promises, kept and not."""
    head = ["| target | here | limit | | seed's rule, N=50 |", "|---|--:|--:|---|--:|"]
    return "\n".join(head + [target.line() for target in targets(cells)])


def cell_table(cells: list[Cell]) -> str:
    """Every cell of ours."""
    columns = "exact | ±1 | false claims | coverage | all intervals | decisive | right of these | rollouts | missed"
    head = [f"| family | T | runs | {columns} |", "|---|--:|--:" + "|--:" * 8 + "|---|"]
    return "\n".join(head + [_line(cell) for cell in cells if cell.method == "locate"])


def _line(cell: Cell) -> str:
    group = BY_NAME[cell.family].group
    located = [number(cell.exact), number(cell.near)] if group not in (FLAT, SYSTEMATIC) else ["", ""]
    right = cell.decisive_right / cell.decisive if cell.decisive and group not in (FLAT, SYSTEMATIC) else None
    parts = [
        cell.family,
        str(cell.length),
        f"{cell.runs:,}",
        *located,
        number(cell.false),
        number(cell.coverage),
        number(cell.together),
        number(cell.share("decisive")),
        number(right),
        number(cell.rollouts, 0),
        missed(cell),
    ]
    return "| " + " | ".join(parts) + " |"


def peer_table(cells: list[Cell]) -> str:
    """What each rule makes of the planted families and of flat agents, by length."""
    columns = "exact | recovery and flaky verifier | false claims | on a flat agent | rollouts | steps executed"
    head = [f"| method | T | families × runs | {columns} |", "|---|--:|--:" + "|--:" * 6 + "|"]
    lines = []
    for method in dict.fromkeys(cell.method for cell in cells):
        for length in LENGTHS:
            mine = [cell for cell in cells if cell.method == method and cell.length == length]
            planted = _of(mine, PLANTED)
            if not planted:
                continue
            restless = [cell for cell in planted if cell.family.startswith(("recovery", "flaky"))]
            parts = [
                method,
                str(length),
                f"{len(planted)} × {min(cell.runs for cell in planted):,}",
                number(mean(_exact(planted))),
                number(mean(_exact(restless))),
                number(mean(cell.false for cell in planted)),
                number(most_of(cell.false for cell in _of(mine, FLAT))),
                number(mean(cell.rollouts for cell in planted), 0),
                number(mean(cell.steps for cell in planted), 0),
            ]
            lines.append("| " + " | ".join(parts) + " |")
    return "\n".join(head + lines)
