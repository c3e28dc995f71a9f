"""Measure and print one table: `make bench`, or `python -m benchmarks` in an environment that has the peers.

--only PATTERN   the rows whose name the pattern (`boundary*`) matches; may be repeated
--quick          a look at whether everything runs; the figures mean little
--json           the results as JSON, one object a line
--write          put the table into docs/explain/benchmarks.md
--profile ROW    where our side of a row spends its time
--list           the names of the rows
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch

from benchmarks import page, profile
from benchmarks.contests import CONTESTS
from benchmarks.measure import Contest, Result, Row, hold
from benchmarks.table import figure, table


def main(arguments: list[str]) -> int:
    """Do what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", metavar="PATTERN", help="rows by name, `boundary*` for instance")
    parser.add_argument("--quick", action="store_true", help="see that everything runs; the figures mean little")
    parser.add_argument("--json", action="store_true", help="print the results as JSON, one object a line")
    parser.add_argument("--write", action="store_true", help=f"put the table into {page.PAGE.name}")
    parser.add_argument("--profile", metavar="ROW", help="where our side of a row spends its time")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    said = parser.parse_args(arguments)
    chosen = chosen_rows(said.only or ([said.profile] if said.profile else ["*"]))
    if said.write and (said.only or said.quick):
        parser.error("the page takes whole measurements: leave --only and --quick out")
    if not chosen:
        print(f"benchmarks: no row is named so; there are: {', '.join(names())}", file=sys.stderr)
        return 64
    if said.list:
        print("\n".join(row.name for _, rows in chosen for row in rows))
        return 0
    with scratch():
        if said.profile:
            for contest, rows in chosen:
                profile.show(contest, rows[0])
            return 0
        results = measure(chosen, said.quick)
    if said.json:
        for result in results:
            print(
                json.dumps(
                    {"name": result.row.name, "met": result.met, **result._asdict(), "row": result.row._asdict()}
                )
            )
    elif not said.write:
        print(page.machine() + "\n\n" + table(results))
    if said.write and (unexplained := page.write(results)):
        print(
            f"benchmarks: {page.PAGE.name} does not say why these are missed: {', '.join(unexplained)}", file=sys.stderr
        )
        return 1
    return 0


def names() -> list[str]:
    """The names of all rows."""
    return [row.name for contest in CONTESTS for row in contest.rows]


def chosen_rows(patterns: list[str]) -> list[tuple[Contest, list[Row]]]:
    """The rows whose names match, by contest."""
    found = [
        (contest, [row for row in contest.rows if any(fnmatch(row.name, pattern) for pattern in patterns)])
        for contest in CONTESTS
    ]
    return [(contest, rows) for contest, rows in found if rows]


def measure(chosen: list[tuple[Contest, list[Row]]], quick: bool) -> list[Result]:
    """Hold the contests one after the other; progress goes to stderr."""
    results = []
    for contest, rows in chosen:
        label = ", ".join(row.name for row in rows)
        found = hold(contest, rows, quick, lambda said, label=label: _tell(f"{label}: {said}"))
        results += found
        _tell("")
        for result in found:
            print(f"{result.row.name}: {figure(result) or 'no ' + result.missing}", file=sys.stderr)
    return results


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


@contextmanager
def scratch() -> Iterator[None]:
    """A temporary directory on the file system of the working directory, as the working directory."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=here) as place:
        os.chdir(place)
        try:
            yield
        finally:
            os.chdir(here)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
