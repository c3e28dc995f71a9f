"""Measuring two ways of doing a thing in turns, so that a machine whose speed drifts does not decide the ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table. `ours` and `peers` are in the unit named; the ratio is the median over pairs of runs."""

    what: str
    unit: str
    ours: float
    peers: float
    ratio: float
    peer: str
    target: str


def ratio(
    what: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    per: int,
    peer_name: str,
    target: str = "",
    unit: str = "us",
    rounds: int = 9,
    cpu: bool = True,
) -> Row:
    """Run both in turns, `rounds` times after one warm-up. `per` is how many operations one run does.

    With `cpu` the process's own CPU time counts, else wall time.
    """
    now = time.process_time if cpu else time.perf_counter
    pairs = []
    for index in range(rounds + 1):
        spent = []
        for work in (ours, peer):
            began = now()
            work()
            spent.append(now() - began)
        if index:
            pairs.append((spent[0], spent[1]))
    scale = {"us": 1e6, "ms": 1e3}[unit] / per
    return Row(
        what,
        unit,
        statistics.median(a for a, _ in pairs) * scale,
        statistics.median(b for _, b in pairs) * scale,
        statistics.median(a / b for a, b in pairs),
        peer_name,
        target,
    )


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| measure | here | peer | ratio | target | peer is |", "|---|---|---|---|---|---|"]
    for row in rows:
        here, peer = f"{row.ours:,.1f} {row.unit}", f"{row.peers:,.1f} {row.unit}"
        lines.append(f"| {row.what} | {here} | {peer} | {row.ratio:.2f}x | {row.target} | {row.peer} |")
    return "\n".join(lines)
