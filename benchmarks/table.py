"""The table as Markdown."""

from __future__ import annotations

from benchmarks.measure import Result, Row

HEAD = ("| row | measure | here | peer | result | target | | peer is |", "|---|---|--:|--:|--:|--:|---|---|")


def table(results: list[Result]) -> str:
    """The results as Markdown, a line each."""
    return "\n".join([*HEAD, *map(_line, results)])


def _line(result: Result) -> str:
    row = result.row
    if result.figure is None:
        return (
            f"| `{row.name}` | {row.what} | | | not measured | {target(row)} | | {row.peer}: no {result.missing} here |"
        )
    here = _figure(result.ours, row.unit) if row.figure != "rate" else ""
    peers = _figure(result.peers, row.unit)
    peer = row.peer
    if row.disk and result.spread is not None:
        peer += f" (the middle half of the flushes within {result.spread:.0%})"
    said = {None: "", True: "met", False: "**missed**"}[result.met]
    return f"| `{row.name}` | {row.what} | {here} | {peers} | {figure(result)} | {target(row)} | {said} | {peer} |"


def figure(result: Result) -> str:
    """What a row came to, with its unit."""
    row, value = result.row, result.figure
    if value is None:
        return ""
    if row.figure in ("ratio", "speed"):
        return f"{value:.2f}x"
    if row.figure == "rate":
        return f"{value:,.0f} /s"
    return ("+" if row.figure == "more" and value >= 0 else "") + _figure(value, row.unit)


def target(row: Row) -> str:
    """The target, with its unit; empty where there is none."""
    if row.limit is None:
        return ""
    sign, unit = "≥" if row.at_least else "≤", "x" if row.figure in ("ratio", "speed") else f" {row.unit}"
    plus = "+" if row.figure == "more" else ""
    return f"{sign} {plus}{row.limit:,g}{' /s' if row.figure == 'rate' else unit}".rstrip()


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if not unit or value >= 1000 else 2 if value < 10 else 1
    return f"{value:,.{digits}f} {unit}".rstrip()
