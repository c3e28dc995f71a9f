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
    text = put(f"{machine()}\n\n{table(results)}", BEGIN, END)
    explained = text.partition(EXPLAINED)[2]
    return [result.row.name for result in results if result.met is False and f"`{result.row.name}`" not in explained]


def put(new: str, begin: str, end: str) -> str:
    """Put `new` between these markers of the page. Returns the page."""
    text = with_table(PAGE.read_text(encoding="utf-8"), new, begin, end)
    PAGE.write_text(text, encoding="utf-8")
    return text


def with_table(text: str, new: str, begin: str = BEGIN, end: str = END) -> str:
    """The page with `new` between two markers."""
    pattern = re.compile(re.escape(begin) + r"\n.*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"benchmarks: {PAGE.name} has no markers for the table: {begin}")
    return pattern.sub(lambda _: f"{begin}\n\n{new}\n\n{end}", text)
