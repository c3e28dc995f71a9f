"""Measure the substrates: `make bench-substrates`.

--write   put the tables into docs/explain/benchmarks.md
--only PATTERN   the rows whose name the pattern (`overlay*`) matches
--quick   a look at whether everything runs, with 1,000 files; the figures mean little
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from fnmatch import fnmatch

from benchmarks import page
from benchmarks.measure import hold
from benchmarks.substrates import cadence
from benchmarks.substrates.works import CONTESTS
from benchmarks.table import table

BEGIN = "<!-- the substrates' tables begin: `make bench-substrates BENCH=--write` -->"
END = "<!-- the substrates' tables end -->"


def tell(what: str) -> None:
    """How far it is, on stderr."""
    print(what, file=sys.stderr, flush=True)


def main() -> int:
    """Measure, and print the tables or write them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.substrates", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--write", action="store_true", help=f"put the tables into {page.PAGE.name}")
    parser.add_argument("--quick", action="store_true", help="1,000 files and one round; the figures mean little")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="rows by name, `overlay*` for instance")
    said = parser.parse_args()
    if said.write and (said.quick or said.only != "*"):
        parser.error("the page takes whole measurements: leave --only and --quick out")
    results = []
    for contest in CONTESTS:
        name, rows = contest.prepare.__name__, [row for row in contest.rows if fnmatch(row.name, said.only)]
        if rows:
            results += hold(contest, rows, said.quick, lambda what, name=name: tell(f"{name}: {what}"))
    tell("cadence")
    curve = cadence.curve(said.quick)
    text = f"{page.machine()}\n\n{table(results)}\n\n{cadence.table(curve)}"
    if not said.write:
        print(text)
        return 0
    page.put(text, BEGIN, END)
    return 0


if __name__ == "__main__":
    os.chdir(tempfile.gettempdir())
    sys.exit(main())
