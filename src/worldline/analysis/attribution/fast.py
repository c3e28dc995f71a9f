"""Fewer rollouts where one step lost it all: weigh every place at once, and draw where they are split in halves.

The model is one fall, from one chance to another, at an unknown step; each rollout anywhere moves the weight of all
places. It is a proposal only: the certificate on fresh rollouts claims, as for `locate`, and where it fails the rest
is searched by halving. Where a run lost its chance in several steps the model is wrong, and no rollouts are saved.
"""

from __future__ import annotations

import math
from itertools import accumulate

from worldline.analysis.attribution.asking import Asking, Controller, LocateOptions, RecordedSteps
from worldline.analysis.attribution.findings import Findings, Segment
from worldline.analysis.attribution.ledger import Ledger
from worldline.analysis.attribution.locate import halved
from worldline.analysis.attribution.search import Search

SURE = 0.9  # weight of one place at which it is proposed
BATCH = 8  # rollouts at a time at most: the weights move after each
MOST = 3  # times `cap` rollouts at most for one proposal


def fast(run: RecordedSteps, options: LocateOptions | None = None) -> Controller:
    """Which step lost the run, proposed by weights. Raises as `locate` does."""
    options = options or LocateOptions()
    return Search(Findings(Ledger(run, options.budget), options, "fast"), weighed).answer()


def weighed(found: Findings, segment: Segment, least: float) -> Asking[Segment]:
    """Narrow a segment down to the place with most of the weight; what is left of a wrong proposal is halved."""
    if found.certificates:
        return (yield from halved(found, segment, least))
    ledger, options = found.ledger, found.options
    drawn = 0
    while drawn < MOST * options.cap:
        weights = places(ledger, segment)
        best = max(range(len(weights)), key=weights.__getitem__)
        if weights[best] >= SURE:
            break
        position = _median(weights) + segment[0]
        outcomes = yield from ledger.ask([(position, min(BATCH, options.batch))])
        drawn += len(outcomes)
        spread = [index for index, weight in enumerate(weights) if weight > (1 - SURE) / len(weights)]
        found.narrowest = (segment[0] + spread[0], segment[0] + spread[-1] + 1)
    return segment[0] + best, segment[0] + best + 1


def places(ledger: Ledger, segment: Segment) -> list[float]:
    """The weight of each step of a segment to be the one: prior times the chance of all counts, summing up to 1."""
    start, end = segment
    counts = [ledger.count(position) for position in range(start, end + 1)]
    successes = list(accumulate((count.successes for count in counts), initial=0))
    failures = list(accumulate((count.defined - count.successes for count in counts), initial=0))
    logs = []
    for index in range(end - start):
        high = successes[index + 1], failures[index + 1]
        low = successes[-1] - high[0], failures[-1] - high[1]
        weight = ledger.weight(start + index)
        logs.append(_chance(*high) + _chance(*low) + (math.log(weight) if weight else -math.inf))
    most = max(logs)
    if most == -math.inf:
        return [1 / len(logs)] * len(logs)
    shares = [math.exp(log - most) for log in logs]
    total = sum(shares)
    return [share / total for share in shares]


def _chance(successes: int, failures: int) -> float:
    """The log chance of counts whose own chance may be anything, all alike."""
    return math.lgamma(successes + 1) + math.lgamma(failures + 1) - math.lgamma(successes + failures + 2)


def _median(weights: list[float]) -> int:
    """The prefix that has half of the weight on either side: it holds the steps before it."""
    sums = list(accumulate(weights))
    index = next(index for index, total in enumerate(sums) if total >= 0.5 - 1e-12)
    inner = index + (0.5 - (sums[index] - weights[index]) > sums[index] - 0.5)
    return min(max(inner, 1), len(weights) - 1)
