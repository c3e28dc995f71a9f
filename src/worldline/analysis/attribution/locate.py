"""The default method: halve the run where it loses its chance.

Each split asks whether the chance in the middle is still that of the left end, by a likelihood ratio test between two
chances that are fixed before its first rollout. The rest is `search`: certificates on fresh rollouts, what is left of
the run, and a look to the right (by Ville's inequality a lost chance seldom comes back).
"""

from __future__ import annotations

import math

from worldline.analysis.attribution.asking import Asking, Controller, LocateOptions, RecordedSteps
from worldline.analysis.attribution.findings import Findings, Segment
from worldline.analysis.attribution.ledger import Ledger
from worldline.analysis.attribution.search import Search

LOW, HIGH = 0.25, 0.70  # where between base and top the two hypotheses of a split lie
FEW = 4  # rollouts at least at a time
UNCLEAR = 0.5  # of the way to a decision: with half of the cap drawn and less than that, the chance lies in between
PRUNE = 0.7  # of the least drop: a segment that holds less is not halved any further


def locate(run: RecordedSteps, options: LocateOptions | None = None) -> Controller:
    """Which step lost the run. Raises `Ineligible` for a run with no failure, no steps, or none that can be drawn."""
    options = options or LocateOptions()
    return Search(Findings(Ledger(run, options.budget), options, "locate"), halved).answer()


def halved(found: Findings, segment: Segment, least: float) -> Asking[Segment]:
    """Halve a segment down to one step, or until what is left promises too little."""
    low, high = segment
    while high - low > 1:
        middle = split_point(found.ledger, low, high)
        if (yield from _is_high(found, segment[0], low, middle, high)):
            low = middle
        else:
            high = middle
        if found.loss((low, high)) < PRUNE * least:
            break
        found.narrowest = (low, high)
    return low, high


def split_point(ledger: Ledger, low: int, high: int) -> int:
    """Where half of the prior's weight lies on either side; half of it is spread evenly: no step is overlooked."""
    if ledger.run.prior is None:
        return (low + high) // 2
    weights = [ledger.weight(position) for position in range(low, high)]
    even = max(sum(weights), 1e-9) / len(weights)
    left = 0.0
    for position, weight in enumerate(weights, start=low):
        left += weight + even
        if left >= even * len(weights):
            # The step in which the half is reached is put on the side where the halves come out closer.
            after = left - even * len(weights) < (weight + even) / 2
            return min(max(position + after, low + 1), high - 1)
    return high - 1


def _is_high(found: Findings, start: int, low: int, middle: int, high: int) -> Asking[bool]:
    """Is the chance at `middle` still that of the left end? Decided at log(K / delta), with K splits to go at most."""
    ledger, options = found.ledger, found.options
    decided = math.log((math.ceil(math.log2(ledger.end)) + 1) / options.delta)
    top, base = ledger.value(start, low), ledger.value(high)
    gap = max(top - base, options.mu / 2)
    base = min(base, 1 - gap)
    below, above = base + LOW * gap, base + HIGH * gap
    gain, loss = math.log(above / below), math.log((1 - above) / (1 - below))
    while True:
        seen = ledger.count(middle)
        ratio = seen.successes * gain + (seen.defined - seen.successes) * loss
        unclear = seen.n >= options.cap / 2 and abs(ratio) < UNCLEAR * decided
        if abs(ratio) >= decided or seen.n >= options.cap or unclear:
            return ratio > 0
        needed = math.ceil(min((decided - ratio) / gain, (decided + ratio) / -loss))
        size = min(options.batch, options.cap - seen.n, max(needed, FEW))
        yield from ledger.ask([(middle, size)])
