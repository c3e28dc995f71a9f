"""Certificates: what a search suspects is tested on fresh rollouts, which the search has not seen.

A search looks at its counts again and again and picks where they look largest; no interval from them is valid. So both
sides of the suspected step are drawn anew, as many as were settled on before the first of them, and Newcombe's
interval on their difference carries the guarantee. How many may follow from what the search saw: fresh draws know
nothing of it. Half way a hopeless certificate is given up; it claims nothing then, so nothing false.

How many certificates a search will need is not known beforehand, so the first has delta / 2, the second delta / 6, the
j-th delta / (j (j + 1)): however many there are, they add up to delta at most.
"""

from __future__ import annotations

import math

import msgspec

from worldline.analysis.attribution.asking import SHARED, Asking, Count, Drop, LocateOptions, Outcome
from worldline.analysis.attribution.intervals import Interval, difference_sequence, newcombe, newcombe_paired
from worldline.analysis.attribution.ledger import Ledger

SURE = 2.0  # standard errors that the lower end should be expected to lie above 0
MOST = 4  # times `fresh` at most
HOPE = 0.5  # of the least drop looked for, which half of the rollouts must show

Pair = tuple[bool | None, bool | None]


class Certificate(msgspec.Struct, frozen=True):
    """Fresh outcomes on both sides of the step at `position`; `pairs` where they shared their chance.

    `alpha` is the level of its interval.
    """

    position: int
    before: Count
    after: Count
    alpha: float
    pairs: tuple[Pair, ...] = ()
    given_up: bool = False

    @property
    def drop(self) -> float:
        """The estimate, from the rollouts with a verdict."""
        return self.drop_with(None)

    def drop_with(self, undefined: float | None) -> float:
        """The estimate where each undefined rollout counts as `undefined` successes."""
        return self.before.share(undefined) - self.after.share(undefined)

    @property
    def holds(self) -> bool:
        """Whether the drop is certified."""
        return not self.given_up and self.interval[0] > 0

    @property
    def interval(self) -> Interval:
        """The interval of the drop; undefined rollouts count as not drawn. One given up was looked at in between."""
        before, after = ((side.successes, side.defined) for side in (self.before, self.after))
        if self.given_up:
            return difference_sequence(before, after, self.alpha)
        if self.pairs:
            return _paired([(a, b) for a, b in self.pairs if a is not None and b is not None], self.alpha)
        return newcombe(before, after, self.alpha)

    @property
    def bounds(self) -> Interval:
        """From the least to the most that the drop can be, whatever undefined rollouts would have become."""
        alpha = self.alpha
        if self.pairs:
            least = _paired([(a is True, b is not False) for a, b in self.pairs], alpha)
            most = _paired([(a is not False, b is True) for a, b in self.pairs], alpha)
        else:
            (s, n, u), (t, m, v) = _parts(self.before), _parts(self.after)
            least, most = newcombe((s, n), (t + v, m), alpha), newcombe((s + u, n), (t, m), alpha)
        mine = self.interval
        return min(least[0], mine[0]), max(most[1], mine[1])

    def of_step(self, step: int) -> Drop:
        """As the report has it."""
        return Drop(step, self.drop, self.interval, self.bounds, self.before, self.after)


def level(number: int, delta: float) -> float:
    """The level of the certificate of this number, from 0; all of them add up to delta."""
    return delta / ((number + 1) * (number + 2))


def certify(ledger: Ledger, position: int, options: LocateOptions, alpha: float) -> Asking[Certificate]:
    """Draw both sides of the step at a position anew. Within a half nothing that it sees can end it."""
    size = planned(ledger.count(position), ledger.count(position + 1), options, alpha)
    tag = f"{SHARED}:{ledger.step(position)}" if options.paired else "fresh"
    before: list[Outcome] = []
    after: list[Outcome] = []
    given_up = False
    for part in (size - size // 2, size // 2):
        if given_up := bool(before) and count(before).share() - count(after).share() < HOPE * options.mu:
            break
        outcomes = yield from ledger.ask([(position, part), (position + 1, part)], tag)
        before, after = before + outcomes[0::2], after + outcomes[1::2]
    pairs = zip(before, after, strict=False) if options.paired else ()
    shared = tuple((a.success, b.success) for a, b in pairs)
    return Certificate(position, count(before), count(after), alpha, shared, given_up)


def planned(before: Count, after: Count, options: LocateOptions, alpha: float) -> int:
    """How many fresh rollouts a side needs, if the chances are as they look so far."""
    p, q = ((seen.successes + 0.5) / (seen.defined + 1) for seen in (before, after))
    size = options.fresh
    while p - q >= options.mu / 2 and size < options.fresh * MOST:
        low, _ = newcombe((round(p * size), size), (round(q * size), size), alpha)
        if low >= SURE * math.sqrt((p * (1 - p) + q * (1 - q)) / size):
            break
        size += max(1, options.fresh // 4)
    return size


def count(outcomes: list[Outcome]) -> Count:
    """Outcomes as a count."""
    undefined = sum(outcome.success is None for outcome in outcomes)
    return Count(len(outcomes), sum(outcome.success is True for outcome in outcomes), undefined)


def _paired(pairs: list[tuple[bool, bool]], alpha: float) -> Interval:
    both, first, second, neither = (
        pairs.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))
    )
    return newcombe_paired(both, first, second, neither, alpha)


def _parts(found: Count) -> tuple[int, int, int]:
    return found.successes, found.n, found.undefined
