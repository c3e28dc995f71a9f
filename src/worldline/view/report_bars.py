"""The picture of shares: a row for each, with its dot, how far the truth may be from it, and the line to pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from worldline.view.report_page import text

Tone = Literal["good", "bad", "open", "plain"]


class Bar(NamedTuple):
    """One row: a value, and from where to where it may truly lie.

    `told` stands behind it, so that nothing is said by colour or place alone.
    """

    name: str
    value: float
    reach: Sequence[float]
    told: str
    tone: Tone = "plain"


def bars(rows: Sequence[Bar], *, low: float = 0.0, high: float = 1.0, line: float | None = None) -> str:
    """The rows over one scale from `low` to `high`; `line` is what is to be passed. Text is text, and wraps."""
    if not rows:
        return ""
    marks = [low + (high - low) * part / 4 for part in range(5)]
    return (
        '<div class="bars">'
        + "".join(_row(row, low, high, line) for row in rows)
        + '<span></span><span class="scale" aria-hidden="true">'
        + "".join(f"<i>{_signed(mark, low)}</i>" for mark in marks)
        + "</span><span></span></div>"
    )


def _row(row: Bar, low: float, high: float, line: float | None) -> str:
    def place(value: float) -> float:
        return 100 * (min(max(value, low), high) - low) / (high - low)

    start, end = map(place, row.reach)
    goal = "" if line is None else f'<i class="goal" style="left:{place(line):.2f}%"></i>'
    return (
        f'<span class="name">{text(row.name)}</span><span class="track {row.tone}" aria-hidden="true">{goal}'
        f'<i class="reach" style="left:{start:.2f}%;width:{end - start:.2f}%"></i>'
        f'<i class="mark" style="left:{place(row.value):.2f}%"></i></span><span class="told">{text(row.told)}</span>'
    )


def _signed(value: float, low: float) -> str:
    return f"{value:+.0%}".replace("-", "−") if low < 0 and value else f"{value:.0%}"


def table(heads: Iterable[tuple[str, bool]], rows: Iterable[Iterable[object]]) -> str:
    """A table as text: each column with its title, and whether it is of numbers. A cell of words may wrap."""
    columns = list(heads)
    top = "".join(
        f'<th class="n">{text(name)}</th>' if number else f"<th>{text(name)}</th>" for name, number in columns
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="n">{text(cell)}</td>' if number else f'<td class="words">{text(cell)}</td>'
            for cell, (_, number) in zip(row, columns, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide" tabindex="0" role="region" aria-label="Table"><table><tr>{top}</tr>{body}</table></div>'
