"""Outcomes for the methods' tests: a run whose chance of success is known at every prefix, drawn by counter.

What a rollout comes to follows from its draw alone (`Draw.chance` and the study's seed), so outcomes may be asked for
in any order, and twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from worldline.analysis.attribution.asking import Draw, Outcome


def uniform(*words: object) -> float:
    """A number in [0, 1) that follows from the words."""
    digest = hashlib.blake2b(repr(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def one_fall(length: int, fault: int, top: float, base: float = 0.0) -> list[float]:
    """V of a run that loses its chance in one step."""
    return [top if held <= fault else base for held in range(length + 1)]


class Rollouts:
    """Draws outcomes from the chances of a run, and keeps what was asked for."""

    def __init__(self, chances: Sequence[float], seed: object = 0, crashes: float = 0.0) -> None:
        self.chances = chances
        self.seed = seed
        self.crashes = crashes
        self.asked: list[Draw] = []

    def outcome(self, draw: Draw) -> Outcome:
        if uniform(self.seed, "crash", draw) < self.crashes:
            return Outcome(None, why="the machine died")
        live = len(self.chances) - 1 - draw.at
        success = uniform(self.seed, draw.chance) < self.chances[draw.at]
        return Outcome(success, float(success), live_steps=live, tokens=10 * live, run=f"{draw.at}-{draw.tag}-{draw.k}")

    def draw(self, batch: list[Draw]) -> list[Outcome]:
        self.asked += batch
        return [self.outcome(draw) for draw in batch]


class Game:
    """Outcomes of coalitions: a run fails with the chance that `fails` gives to the steps that are held."""

    def __init__(self, length: int, fails: Callable[[frozenset[int]], float], seed: object = 0) -> None:
        self.length = length
        self.fails = fails
        self.seed = seed
        self.asked: list[Draw] = []

    def held(self, draw: Draw) -> frozenset[int]:
        return frozenset(range(draw.at)) | {do.step for do in draw.do if do.kind == "hold"}

    def draw(self, batch: list[Draw]) -> list[Outcome]:
        self.asked += batch
        return [Outcome(uniform(self.seed, draw.chance, draw.do) >= self.fails(self.held(draw))) for draw in batch]
