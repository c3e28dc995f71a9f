"""The chart of a report: how likely success still was before each step, with bands, as SVG that needs no script."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 820, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 18, 40
MOST_LABELS = 12


def chart(curve: Sequence[Mapping[str, Any]], steps: int, certified: Sequence[Mapping[str, Any]]) -> str:
    """The curve. A point at step i says how often it went well when everything before i is kept as it was."""
    if not curve:
        return ""
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(_spoken(curve, certified))}">',
        *_grid(),
        *(_lost(drop, curve, steps) for drop in certified),
        _band(curve, steps),
        *(_whisker(point, steps) for point in curve),
        f'<polyline class="line" points="{" ".join(_at(p["at"], p["v"], steps) for p in curve)}"/>',
        *(_dot(point, steps) for point in curve),
        *_labels(curve, steps, {drop["step"] for drop in certified}),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


def _x(at: int, steps: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * at / max(1, steps)


def _y(value: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value)


def _at(at: int, value: float, steps: int) -> str:
    return f"{_x(at, steps):.1f},{_y(value):.1f}"


def _grid() -> list[str]:
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        lines.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    lines.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" text-anchor="end">steps kept as they were</text>')
    return lines


def _band(curve: Sequence[Mapping[str, Any]], steps: int) -> str:
    upper = [_at(point["at"], point["high"], steps) for point in curve]
    lower = [_at(point["at"], point["low"], steps) for point in reversed(curve)]
    return f'<polygon class="band" points="{" ".join([*upper, *lower])}"/>' if len(curve) > 1 else ""


def _whisker(point: Mapping[str, Any], steps: int) -> str:
    x = _x(point["at"], steps)
    return f'<line class="whisker" x1="{x:.1f}" y1="{_y(point["low"]):.1f}" x2="{x:.1f}" y2="{_y(point["high"]):.1f}"/>'


def _dot(point: Mapping[str, Any], steps: int) -> str:
    told = f"before step {point['at']}: {point['successes']} of {point['n']} went well"
    return (
        f'<circle class="dot" cx="{_x(point["at"], steps):.1f}" cy="{_y(point["v"]):.1f}" r="4">'
        f"<title>{html.escape(told)}</title></circle>"
    )


def _lost(drop: Mapping[str, Any], curve: Sequence[Mapping[str, Any]], steps: int) -> str:
    """The step that cost it: a stripe from its beginning to its end."""
    left, right = _x(drop["step"], steps), _x(drop["step"] + 1, steps)
    return (
        f'<rect class="lost" x="{left:.1f}" y="{TOP}" width="{right - left:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>'
        f'<text class="here" x="{(left + right) / 2:.1f}" y="{TOP - 5}" text-anchor="middle">step {drop["step"]}</text>'
    )


def _labels(curve: Sequence[Mapping[str, Any]], steps: int, marked: set[int]) -> list[str]:
    """Numbers below the points, as many as have room; those at a culprit first."""
    order = sorted(curve, key=lambda point: (point["at"] not in marked and point["at"] - 1 not in marked, point["at"]))
    taken: list[float] = []
    labels: list[str] = []
    for point in order:
        x = _x(point["at"], steps)
        if len(labels) < MOST_LABELS and all(abs(x - other) > 26 for other in taken):
            taken.append(x)
            labels.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{point["at"]}</text>')
    return labels


def _spoken(curve: Sequence[Mapping[str, Any]], certified: Sequence[Mapping[str, Any]]) -> str:
    said = "; ".join(f"{point['v']:.0%} before step {point['at']}" for point in curve)
    culprits = ", ".join(str(drop["step"]) for drop in certified)
    return f"Chance of success: {said}" + (f". Certified drops at step {culprits}" if culprits else "")
