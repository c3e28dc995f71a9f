"""When the environment is kept: at every step where that is cheap, else at gates, effects and every K steps.

With N steps, F forks, S seconds for a snapshot, R for a restore and e for issuing a step again, keeping every K-th step
costs N*S/K + F*(R + e*(K-1)/2) seconds: less often makes recording cheaper, and a fork dearer by the steps that it has
to make up for, half of K on average. The least is at K* = sqrt(2*N*S/(F*e)). S, R and e are measured as the run goes.
"""

from __future__ import annotations

import math

CHEAP = 0.250  # seconds: a snapshot that takes less is taken at every step, since a model's answer takes longer
SHARE = 0.05  # of a step: so is one that takes less than this part of it
STEPS, FORKS = 100, 1  # what is expected of a run of which nothing is known
_WEIGHT = 0.3  # of the newest measurement


def cost(k: float, n: float, s: float, f: float, r: float, e: float) -> float:
    """The seconds that snapshots and forks of a run take when every K-th step is kept."""
    return n * s / k + f * (r + e * (k - 1) / 2)


def optimum(n: float, s: float, f: float, e: float) -> float:
    """The K of least cost, at least 1; endless where nothing is ever forked, or a step costs nothing to issue again."""
    if f <= 0 or e <= 0:
        return math.inf
    return max(1.0, math.sqrt(2 * n * s / (f * e)))


class Cadence:
    """Decides at which steps the environment is kept. `steps` and `forks` are what is expected of the run."""

    def __init__(self, steps: int = STEPS, forks: float = FORKS, every: int | None = None) -> None:
        self._steps = steps
        self._forks = forks
        self._every = every
        self._since = 0
        self.snapshot: float | None = None  # S, R and e in seconds, as far as they were measured
        self.restore: float | None = None
        self.event: float | None = None

    def took(self, *, snapshot: float | None = None, restore: float | None = None, event: float | None = None) -> None:
        """What something took, in seconds. Later measurements weigh more."""
        self.snapshot = _mean(self.snapshot, snapshot)
        self.restore = _mean(self.restore, restore)
        self.event = _mean(self.event, event)

    @property
    def every(self) -> int:
        """K: how many steps pass from one snapshot to the next; 1 until both S and e are known."""
        if self._every is not None:
            return self._every
        if self.snapshot is None or self.event is None:
            return 1
        if self.snapshot <= max(CHEAP, SHARE * self.event):
            return 1
        best = optimum(self._steps, self.snapshot, self._forks, self.event)
        if math.isinf(best):
            return max(1, self._steps)
        lower = math.floor(best)
        costs = {k: cost(k, self._steps, self.snapshot, self._forks, 0.0, self.event) for k in (lower, lower + 1)}
        return min(costs, key=lambda k: costs[k])

    def due(self, *, gate: bool = False, effect: bool = False) -> bool:
        """Whether the step that begins now is one at which the environment is kept; asked once a step.

        It always is before a gate (someone is asked) and before a side effect.
        """
        self._since += 1
        if not (gate or effect or self._since >= self.every):
            return False
        self._since = 0
        return True


def _mean(before: float | None, new: float | None) -> float | None:
    if new is None or before is None:
        return before if new is None else new
    return before + _WEIGHT * (new - before)
