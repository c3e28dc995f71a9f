"""Measure the panel against its budgets, on runs of 100,000 and 1,000,000 rows: `make bench-panel`.

--write   put the table into docs/explain/benchmarks.md
--quick   only the smaller run

The runs are made by the real recorder and packer when they are not there, which takes minutes, and kept in the
temporary directory.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import os
import platform
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser

from benchmarks import page as document
from benchmarks import panel_page as panel
from benchmarks.events import place
from tests.panel.runs.big import NEEDLE
from tests.panel.runs.chromium import chromium
from tests.panel.runs.kept import kept

ROOT = Path(__file__).resolve().parent.parent
VIEWER = ROOT / "src" / "worldline" / "view" / "viewer.html"
BEGIN, END = "<!-- the panel's table begins: `make bench-panel BENCH=--write` -->", "<!-- the panel's table ends -->"
MOVES, SEEKS, ROUNDS = 160, 40, 3


class Budget(NamedTuple):
    """One line: what was measured, its figure, the most it may be (None: nothing is promised), and the unit."""

    what: str
    figure: float
    limit: float | None
    unit: str

    def line(self) -> str:
        """The line in Markdown."""
        digits = 0 if self.unit == "" or self.figure >= 100 else 1
        limit = "" if self.limit is None else f"≤ {self.limit:,g} {self.unit}".rstrip()
        said = "" if self.limit is None else "met" if self.figure <= self.limit else "**missed**"
        return f"| {self.what} | {self.figure:,.{digits}f} {self.unit}".rstrip() + f" | {limit} | {said} |"


def app_size(page: Path = VIEWER) -> int:
    """What the first screen needs of the page, gzipped: its main part, and all that is no part (styles, the start)."""
    text = page.read_text("utf-8")
    [main] = re.findall(r'data-lazy="main">([^<]*)<', text)
    rest = re.sub(r'<script type="text/plain" data-lazy="[^"]+">[^<]*</script>', "", text)
    return sum(len(gzip.compress(part, 9)) for part in (zlib.decompress(base64.b64decode(main), -15), rest.encode()))


def told(lines: list[Budget]) -> list[Budget]:
    """These lines, said as soon as they are known: what fails later loses none of them."""
    print(*(one.line() for one in lines), sep="\n", file=sys.stderr, flush=True)
    return lines


def of_the_smaller(browser: Browser, bundle: Path) -> list[Budget]:
    """Everything that the panel promises of 100,000 rows."""
    firsts = []
    for last in (False,) * (ROUNDS - 1) + (True,):
        print("100,000 rows: a round", file=sys.stderr, flush=True)
        with panel.viewing(bundle) as url, panel.opened(browser, url) as (page, first):
            firsts.append(first)
            if not last:
                continue
            nodes, heap = panel.held(page)
            print("100,000 rows: scrub, seek, search", file=sys.stderr, flush=True)
            scrub, strokes = panel.scrubbed(page, MOVES)
            seek = panel.sought(page, SEEKS)
            early, late = panel.found(page, "refund"), panel.found(page, NEEDLE)
    first = sorted(firsts, key=lambda one: one.ms)[len(firsts) // 2]
    served = [
        Budget("bytes before the first screen, http", first.bytes / 1e6, 2.5, "MB"),
        Budget("requests before it", first.requests, 20, ""),
        Budget("first screen, http", first.ms, 800, "ms"),
        Budget("all 100,000 rows read", first.read_ms, None, "ms"),
        Budget("elements in the document", nodes, 2000, ""),
        Budget("JavaScript heap of the page", heap / 1e6, 40, "MB"),
        Budget("scrub: input to frame, p95", scrub, 33, "ms"),
        Budget("strokes on the timeline while scrubbing", strokes, 0, ""),
        Budget("seek to the full picture, p95", seek, 150, "ms"),
        Budget("search: first hit of a common word", early, 50, "ms"),
        Budget("search: a word that first comes after 37,000 rows", late, None, "ms"),
        Budget("what the first screen needs of the page, gzipped", app_size() / 1e3, 80, "kB"),
    ]
    told(served)
    alone = [Budget("first screen, one-file page", one_file(browser, bundle), 1000, "ms")]
    return served[:3] + told(alone) + served[3:]


def one_file(browser: Browser, bundle: Path) -> float:
    """The bundle as a page of one file, opened from the disk: its first screen, the median of the rounds."""
    print("100,000 rows: a page of one file", file=sys.stderr, flush=True)
    with place() as folder:
        target = folder / "run.html"
        command = [
            sys.executable,
            "-m",
            "worldline",
            "export",
            str(bundle),
            "--to",
            "html",
            "--full",
            "-o",
            str(target),
        ]
        subprocess.run(command, check=True, capture_output=True)
        took = []
        for _ in range(ROUNDS):
            with panel.opened(browser, target.as_uri()) as (_, first):
                took.append(first.ms)
    return sorted(took)[len(took) // 2]


def of_the_larger(browser: Browser, bundle: Path) -> list[Budget]:
    """That 1,000,000 rows open, and how they can be gone through."""
    print("1,000,000 rows", file=sys.stderr, flush=True)
    with panel.viewing(bundle) as url, panel.opened(browser, url) as (page, first):
        nodes, heap = panel.held(page)
        scrub, _ = panel.scrubbed(page, MOVES)
        return told(
            [
                Budget("1M rows: first screen, http", first.ms, None, "ms"),
                Budget("1M rows: all of them read", first.read_ms, None, "ms"),
                Budget("1M rows: elements in the document", nodes, 2000, ""),
                Budget("1M rows: JavaScript heap of the page", heap / 1e6, None, "MB"),
                Budget("1M rows: scrub, input to frame, p95", scrub, None, "ms"),
            ]
        )


def table(budgets: list[Budget]) -> str:
    """All lines as Markdown."""
    return "\n".join(["| measure | here | budget | |", "|---|--:|--:|---|", *(budget.line() for budget in budgets)])


def main() -> int:
    """Measure, and print the table or write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"put the table into {document.PAGE.name}")
    parser.add_argument("--quick", action="store_true", help="only the smaller run")
    said = parser.parse_args()
    small = kept("big-100k")
    large = None if said.quick else kept("big-1m")
    with chromium() as browser:
        budgets = of_the_smaller(browser, small)
        budgets += of_the_larger(browser, large) if large else []
        version = browser.version.partition(".")[0]
    load = os.getloadavg()[0]
    machine = (
        f"Chromium {version} without a GPU, {os.cpu_count()} cores, {platform.system()}; load {load:.1f} at the end."
    )
    text = f"{machine}\n\n{table(budgets)}"
    if not said.write:
        print(text)
        return 0
    document.put(text, BEGIN, END)
    return 0


if __name__ == "__main__":
    os.chdir(tempfile.gettempdir())
    sys.exit(main())
