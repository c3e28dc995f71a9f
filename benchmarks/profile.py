"""Where our side of a row spends its time: a few turns of it under cProfile."""

from __future__ import annotations

import cProfile
import pstats

from benchmarks.measure import Contest, Row

TURNS = 3
LINES = 18


def show(contest: Contest, row: Row) -> None:
    """Print the functions of `row` that take most, by their own time."""
    stats = contest.profile() if contest.profile is not None else _profiled(contest, row)
    print(f"{row.name}: {row.what}")
    stats.strip_dirs().sort_stats("tottime").print_stats(LINES)


def _profiled(contest: Contest, row: Row) -> pstats.Stats:
    with contest.prepare(False) as works:
        work = works[row.ours]
        work()
        profiler = cProfile.Profile()
        for _ in range(TURNS if contest.rounds < 50 else contest.rounds):
            profiler.runcall(work)
    return pstats.Stats(profiler)
