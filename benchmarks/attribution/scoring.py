"""What an answer was worth, against the exact truth; and what all answers of a cell come to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from benchmarks.attribution.families import Case
from benchmarks.attribution.methods import Answer

IMMATERIAL = 0.05  # who claims a step that lost less than this has made a false claim


class Score(msgspec.Struct, frozen=True):
    """One answer, judged.

    `covered`: the first interval, of the named step or else of the largest drop that was tested, holds that step's true
    drop; `together`: all intervals of the answer do. Both are None where none was given. `inside`: the steps that the
    answer was narrowed down to hold a right one.
    """

    family: str
    length: int
    number: int
    method: str
    step: int | None
    verdict: str
    exact: bool
    near: bool
    claimed: bool
    false: bool
    covered: bool | None
    together: bool | None
    inside: bool | None
    rollouts: int
    steps: int


def judged(case: Case, number: int, method: str, answer: Answer) -> Score:
    """An answer against the truth. Every claim counts: one of them false makes the answer a false claim."""
    truth = case.truth
    drops = truth.drops
    held = [low - 1e-9 <= drops[step] <= high + 1e-9 for step, (low, high) in answer.intervals]
    inside = None if answer.interval is None else any(truth.right(step) for step in range(*answer.interval))
    return Score(
        family=case.family.name,
        length=case.run.length,
        number=number,
        method=method,
        step=answer.step,
        verdict=answer.verdict,
        exact=truth.right(answer.step),
        near=truth.near(answer.step),
        claimed=bool(answer.claims),
        false=any(drops[step] < IMMATERIAL for step in answer.claims),
        covered=held[0] if held else None,
        together=all(held) if held else None,
        inside=inside,
        rollouts=answer.rollouts,
        steps=answer.steps,
    )


class Cell(msgspec.Struct, frozen=True):
    """All answers of one method about one family at one length. Shares are None where nothing counts for them."""

    family: str
    length: int
    method: str
    runs: int
    exact: float
    near: float
    false: float
    claimed: float
    coverage: float | None
    together: float | None
    intervals: int
    inside: float | None
    verdicts: dict[str, int]
    decisive_right: int
    rollouts: float
    steps: float

    @property
    def decisive(self) -> int:
        """How many were called decisive."""
        return self.verdicts.get("decisive", 0)

    def share(self, verdict: str) -> float:
        """How often this was the verdict."""
        return self.verdicts.get(verdict, 0) / self.runs


def cells(scores: Iterable[Score]) -> list[Cell]:
    """The cells of these scores, in the order in which they first appear."""
    groups: dict[tuple[str, int, str], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.family, score.length, score.method), []).append(score)
    return [_cell(*place, group) for place, group in groups.items()]


def _cell(family: str, length: int, method: str, group: list[Score]) -> Cell:
    verdicts: dict[str, int] = {}
    for score in group:
        verdicts[score.verdict] = verdicts.get(score.verdict, 0) + 1
    return Cell(
        family=family,
        length=length,
        method=method,
        runs=len(group),
        exact=_share(score.exact for score in group) or 0.0,
        near=_share(score.near for score in group) or 0.0,
        false=_share(score.false for score in group) or 0.0,
        claimed=_share(score.claimed for score in group) or 0.0,
        coverage=_share(score.covered for score in group),
        together=_share(score.together for score in group),
        intervals=sum(score.covered is not None for score in group),
        inside=_share(score.inside for score in group),
        verdicts=verdicts,
        decisive_right=sum(score.exact for score in group if score.verdict == "decisive"),
        rollouts=sum(score.rollouts for score in group) / len(group),
        steps=sum(score.steps for score in group) / len(group),
    )


def _share(said: Iterable[Any]) -> float | None:
    counted = [float(value) for value in said if value is not None]
    return sum(counted) / len(counted) if counted else None
