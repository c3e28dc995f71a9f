"""Keeping the table in the documentation, between two markers."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from benchmarks.measure import Result
from benchmarks.table import table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explain" / "benchmarks.md"
BEGIN, END = "<!-- the table begins: `make bench BENCH=--write` -->", "<!-- the table ends -->"
EXPLAINED = "## What is missed, and why"


def machine() -> str:
    """What it was measured on, in words."""
    load = os.getloadavg()[0]
    return (
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}; "
        f"medians of rounds in turns; load {load:.1f} at the end."
    )


def write(results: list[Result]) -> list[str]:
    """Put the results of all rows into the page. Returns the names of the missed ones that it does not explain."""
    text = with_table(PAGE.read_text(encoding="utf-8"), f"{machine()}\n\n{table(results)}")
    PAGE.write_text(text, encoding="utf-8")
    explained = text.partition(EXPLAINED)[2]
    return [result.row.name for result in results if result.met is False and f"`{result.row.name}`" not in explained]


def with_table(text: str, new: str) -> str:
    """The page with `new` between its markers."""
    pattern = re.compile(re.escape(BEGIN) + r"\n.*?" + re.escape(END), re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"benchmarks: {PAGE.name} has no markers for the table")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{new}\n\n{END}", text)
