"""Re-driving in process: served tool calls against running the same trivial tools; and listing a thousand runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import worldline as wl
from benchmarks.measure import Row, ratio
from worldline.store.catalog import entries

STEPS = 500
RUNS = 1_000


@wl.tool(effect="pure")
def double(x: int) -> int:
    """A tool that costs nothing, so that the door's cost shows."""
    return x * 2


def agent() -> None:
    """Cross the door STEPS times."""
    for number in range(STEPS):
        double(number)


def rows() -> list[Row]:
    """All rows of this file."""
    return [redrive(), listing(), importing()]


def redrive() -> Row:
    """A served crossing, set-up and verification of the record included."""
    with tempfile.TemporaryDirectory(dir=".") as place:
        with wl.record(place):
            agent()
        run = wl.open("latest", place)
        return ratio(
            "re-drive a tool call in process",
            lambda: run.replay(agent),
            agent,
            per=STEPS,
            peer_name="the call itself",
            rounds=5,
        )


def listing() -> Row:
    """List a store of 1,000 runs, against reading one small file of each."""
    with tempfile.TemporaryDirectory(dir=".") as place:
        for number in range(20):
            with wl.record(place, task=f"task {number}"):
                double(number)
        first = sorted(Path(place).iterdir())[0]
        for number in range(RUNS - 20):  # hard-linked copies of a real run under other ids
            _clone(first, Path(place) / f"run_{number:026d}")
        results = [next(run.glob("*.json")) for run in sorted(Path(place).iterdir())]
        return ratio(
            "list 1,000 runs",
            lambda: entries(Path(place)),
            lambda: [path.read_bytes() for path in results],
            per=1,
            peer_name="read one file of each",
            target="20 ms",
            unit="ms",
            cpu=False,
        )


def _clone(source: Path, target: Path) -> None:
    for folder, _, files in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in files:
            os.link(Path(folder) / name, place / name)


def importing() -> Row:
    """`import worldline` in a fresh interpreter."""

    def run(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    return ratio(
        "import worldline (a fresh interpreter)",
        lambda: run("import worldline"),
        lambda: run("pass"),
        per=1,
        peer_name="an empty program",
        target="+60 ms",
        unit="ms",
        cpu=False,
    )
