"""Measure everything and print one table: `make bench`."""

from __future__ import annotations

import os
import platform
import tempfile

from benchmarks import replays, store, wire
from benchmarks.measure import table


def main() -> None:
    """Run all rows in a temporary directory of the working directory's file system."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory(dir=here) as place:
        os.chdir(place)
        try:
            rows = [*store.rows(), *wire.rows(), *replays.rows()]
        finally:
            os.chdir(here)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores; medians of runs in turns\n")
    print(table(rows))


if __name__ == "__main__":
    main()
