"""Shapley values by the kernel: a weighted regression over random coalitions, with its own unbiased solution.

Coalitions are drawn by the kernel's weights, each with its complement. The regression's matrix is known exactly and
has one value on its diagonal and one beside it, so its solution is a centred mean, and adds up to `v(all) - v(none)`.
I. Covert and S.-I. Lee, "Improving KernelSHAP: practical Shapley value estimation via linear regression", 2021.
"""

from __future__ import annotations

from worldline.analysis.attribution.asking import Asking
from worldline.analysis.attribution.coalitions import Coalitions
from worldline.engine.clock import Generator, generator


def kernel_values(coalitions: Coalitions, pairs: int, each: int, seed: int) -> Asking[list[list[float]]]:
    """For every pair of coalitions the values of all players, which average to their Shapley values."""
    players = coalitions.players
    none, every = yield from coalitions.values([[], players], pairs * each, "kernel")
    total = every - none
    if len(players) == 1:
        return [[total]]
    chance = generator(seed)
    spread = 0.5 - _beside(len(players))
    found = []
    for pair in range(pairs):
        held = _coalition(players, chance)
        rest = [step for step in players if step not in held]
        value, other = yield from coalitions.values([sorted(held), rest], each, f"kernel:{pair}")
        seen = [((value if step in held else other) - none) / 2 for step in players]
        mean = sum(seen) / len(seen)
        found.append([(one - mean) / spread + total / len(players) for one in seen])
    return found


def _beside(count: int) -> float:
    """The entry of the regression's matrix beside its diagonal: the chance that a coalition holds two given players."""
    sizes = range(1, count)
    weights = [1 / (size * (count - size)) for size in sizes]
    both = [size * (size - 1) / (count * (count - 1)) for size in sizes]
    return sum(weight * share for weight, share in zip(weights, both, strict=True)) / sum(weights)


def _coalition(players: list[int], chance: Generator) -> set[int]:
    sizes = range(1, len(players))
    size = chance.choices(sizes, [1 / (size * (len(players) - size)) for size in sizes])[0]
    return set(chance.sample(players, size))
