"""What a search has found so far: certificates, segments that wait, and what ended it. Verdicts are made from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from worldline.analysis.attribution.asking import LocateOptions
from worldline.analysis.attribution.certify import Certificate
from worldline.analysis.attribution.ledger import Ledger

Segment = tuple[int, int]
"""Positions of a ledger: the loss between them is to be explained."""


@dataclass
class Findings:
    """Positions are those of the ledger. `narrowest` is the segment that the search stood at last."""

    ledger: Ledger
    options: LocateOptions
    method: str
    certificates: list[Certificate] = field(default_factory=list)
    pending: list[Segment] = field(default_factory=list)
    narrowest: Segment | None = None
    systematic: bool = False
    noisy: bool = False
    unreproducible: str = ""
    warnings: list[str] = field(default_factory=list)

    def certified(self) -> list[Certificate]:
        """Those whose interval excludes 0, largest drop first."""
        held = [one for one in self.certificates if one.holds]
        best: dict[int, Certificate] = {}
        for one in sorted(held, key=lambda one: -one.drop):
            best.setdefault(one.position, one)
        return sorted(best.values(), key=lambda one: (-one.drop, one.position))

    def loss(self, segment: Segment | None = None, undefined: float | None = None) -> float:
        """The estimated loss over a segment, or over the whole run; `undefined` rollouts count as that, or not."""
        start, end = segment or (0, self.ledger.end)
        value = self.ledger.value
        return value(start, undefined=undefined) - value(end, undefined=undefined)
