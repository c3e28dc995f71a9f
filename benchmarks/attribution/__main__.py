"""Find planted faults whose truth is known exactly, and say how often that went well: `make bench-attribution`.

--full         every cell, 1,000 runs each: an hour or two on two cores. Without it a look at everything, in minutes
--runs N       that many runs a cell of the full form
--only NAME    families by name (`recovery*`); may be repeated
--seed N       other places, runs and draws than the public ones (seed 1)
--jobs N       processes at a time
--write        put the tables into docs/explain/benchmarks.md
--json         print the cells as JSON, one object a line

A form that was broken off goes on where it was; what other code has measured is measured anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from benchmarks import page as document
from benchmarks.attribution import figures, packages, suite
from benchmarks.attribution.families import BY_NAME, SEED
from benchmarks.attribution.scoring import Cell, cells

BEGIN = '<!-- the attribution\'s tables begin: `make bench-attribution BENCH="--full --write"` -->'
END = "<!-- the attribution's tables end -->"
RUNS = 1000  # so that a cell whose intervals hold 95 in 100 hardly ever shows less than 93


def main(arguments: list[str]) -> int:
    """Do what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.attribution", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--full", action="store_true", help="every cell, 1,000 runs each")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"runs a cell of the full form ({RUNS})")
    parser.add_argument("--only", action="append", metavar="NAME", help="families by name, `recovery*` for instance")
    parser.add_argument("--method", action="append", metavar="NAME", help="methods by name, `seed*` for instance")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of places, runs and draws ({SEED} is the public one)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--journal", type=Path, help="where the scores are kept between forms")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {document.PAGE.name}")
    parser.add_argument("--json", action="store_true", help="print the cells as JSON, one object a line")
    said = parser.parse_args(arguments)
    if said.write and (not said.full or said.only or said.method):
        parser.error("the page takes whole measurements: say --full, and leave --only and --method out")
    plans = chosen(suite.full(said.runs) if said.full else suite.smoke(), said.only or ["*"], said.method or ["*"])
    if not plans:
        print(f"benchmarks: nothing is named so; there are: {', '.join(BY_NAME)}", file=sys.stderr)
        return 64
    found = cells(suite.scores(plans, seed=said.seed, jobs=said.jobs, journal=said.journal))
    if said.json:
        for cell in found:
            print(json.dumps(msgspec.to_builtins(cell)))
        return 0
    text = told(found, said.seed, said.full)
    if said.write:
        write(text)
    else:
        print(text)
    return 0


def chosen(plans: list[suite.Plan], families: list[str], methods: list[str]) -> list[suite.Plan]:
    """The plans with the families and methods whose names match, those of which something is left."""
    found = []
    for plan in plans:
        names = tuple(name for name in plan.families if any(fnmatch(name, pattern) for pattern in families))
        if names and any(fnmatch(plan.method, pattern) for pattern in methods):
            found.append(plan._replace(families=names))
    return found


def told(found: list[Cell], seed: int, full: bool) -> str:
    """The tables, and what they were measured with."""
    runs = sum(cell.runs for cell in found)
    form = "The full form" if full else "The smoke form: its figures mean little"
    machine = f"{form}; seed {seed}, {runs:,} answers; Python {platform.python_version()}, {platform.system()}."
    tables = [figures.target_table(found), "Every cell of `locate`:", figures.cell_table(found)]
    others = "The same runs, asked by others:"
    if packages.versions():
        others = f"The same runs, asked by others ({packages.versions()}):"
    if packages.missing():
        others += f"\n\nNot here: {', '.join(packages.missing())}."
    return "\n\n".join([machine, *tables, others, figures.peer_table(found)])


def write(text: str) -> None:
    """Put it between the markers of the page."""
    document.put(text, BEGIN, END)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # and the processes end, too
    sys.exit(main(sys.argv[1:]))
