"""Going on from what was recorded: re-driving an agent in process, seeking a row, listing a store, starting up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import worldline as wl
from benchmarks.events import place, unsynced
from benchmarks.measure import CPU, WALL, Contest, Row, Work, timed
from worldline.store.catalog import entries
from worldline.store.listed import CATALOG


@wl.tool(effect="pure")
def double(x: int) -> int:
    """A tool that costs nothing, so that the door's cost shows."""
    return x * 2


@contextmanager
def _redrive(quick: bool) -> Iterator[dict[str, Work]]:
    steps = 200 if quick else 10_000

    def agent() -> None:
        for number in range(steps):
            double(number)

    with place() as folder:
        with unsynced(), wl.record(folder):
            agent()
        run = wl.open("latest", folder)

        def again(agent: Callable[[], None] = agent) -> None:
            assert run.replay(agent).equivalent

        def served() -> float:
            spent: list[float] = []
            again(lambda: spent.append(timed(WALL, steps, agent)))
            return spent[0]

        yield {
            "redrive": lambda: timed(WALL, steps, again),
            "redrive-cpu": lambda: timed(CPU, steps, again),
            "served": served,
        }


@contextmanager
def _listing(quick: bool) -> Iterator[dict[str, Work]]:
    runs = 20 if quick else 1_000
    with place() as folder:
        with unsynced():
            for number in range(runs):
                with wl.record(folder, task=f"task {number}"):
                    double(number)
        results = [next(run.glob("*.json")) for run in sorted(Path(folder).glob("run_*"))]
        assert len(results) == runs == len(entries(folder))

        def first() -> None:
            (folder / CATALOG).unlink(missing_ok=True)
            entries(folder)

        yield {
            "first": lambda: timed(WALL, 1, first),
            "list": lambda: timed(WALL, 1, lambda: entries(folder)),
            "read": lambda: timed(WALL, 1, lambda: [path.read_bytes() for path in results]),
        }


@contextmanager
def _importing(quick: bool) -> Iterator[dict[str, Work]]:
    def fresh(code: str) -> Work:
        return lambda: timed(WALL, 1, lambda: subprocess.run([sys.executable, "-c", code], check=True))

    yield {
        "import": fresh("import worldline"),
        "record": fresh("import worldline; worldline.record"),
        "pass": fresh(""),
    }


FRESH = "an empty program in a fresh interpreter"
CONTESTS = (
    Contest(
        _redrive,
        (
            Row(
                "redrive",
                "re-drive tool calls in process, the record verified",
                "redrive",
                figure="rate",
                limit=50_000,
                at_least=True,
            ),
            Row("redrive-cpu", "the same, CPU a step", "redrive-cpu", figure="own"),
            Row("redrive-served", "of that the served calls, without opening and verifying", "served", figure="rate"),
        ),
        rounds=5,
    ),
    Contest(
        _listing,
        (
            Row("list", "list 1,000 runs", "list", ("read",), "read one file of each", "own", "ms", limit=20),
            Row("list-first", "the same for the first time", "first", ("read",), "read one file of each", "own", "ms"),
        ),
    ),
    Contest(
        _importing,
        (
            Row("import", "`import worldline`", "import", ("pass",), FRESH, "more", "ms"),
            Row("import-record", "the same, and what `record` needs", "record", ("pass",), FRESH, "more", "ms"),
        ),
        rounds=15,
    ),
)
