"""The frame of a search: explain the largest loss, certify the step, queue what is left, look right for a rise.

How a segment is narrowed down to one step is the method's (`locate` halves it, `fast` weighs all places at once). What
they see is reused and proves nothing; the certificates do. A wrong turn shows in its certificate, and what is left of
the segment is searched again.
"""

from __future__ import annotations

from collections.abc import Callable

from worldline.analysis.attribution.asking import Asking, Controller
from worldline.analysis.attribution.certify import certify, level
from worldline.analysis.attribution.feasible import feasible
from worldline.analysis.attribution.findings import Findings, Segment
from worldline.analysis.attribution.spending import BudgetSpent
from worldline.analysis.attribution.verdict import attribution

MOST = 0.7  # of a loss that is hardly more than the least drop looked for
AGAIN = 3  # certificates at most for one step
GUARDS, GUARD, CONFIRM, RISE = 8, 3, 20, 0.2  # probes to the right, rollouts each, to confirm, how much higher

Narrow = Callable[[Findings, Segment, float], Asking[Segment]]
"""Narrows a segment down to one step, or to what no longer promises a drop of the size given."""


class Search:
    """The state of one search. Positions are those of the ledger."""

    def __init__(self, found: Findings, narrow: Narrow) -> None:
        self._found = found
        self._narrow = narrow
        self._ledger = found.ledger
        self._options = found.options
        self._queue = found.pending

    def answer(self) -> Controller:
        """The whole method."""
        try:
            if (yield from feasible(self._found)):
                yield from self._sweep()
        except BudgetSpent:
            pass  # the ledger knows which cap, and the answer says it
        return attribution(self._found)

    def _sweep(self) -> Asking[None]:
        # What `feasible` let through is searched at any rate: the loss is only estimated, and may be larger.
        first = (0, self._ledger.end)
        self._queue.append(first)
        while self._queue:
            segment = max(self._queue, key=lambda one: (self._found.loss(one), -one[0]))
            if segment != first and self._found.loss(segment) < self._least():
                return
            yield from self._explain(segment)

    def _least(self) -> float:
        """The drop that a segment must promise to be worth its rollouts; of a small loss, most of it.

        With `every` all that were looked for count, else only what could be larger than what is certified.
        """
        small = MOST * self._found.loss()
        certified = [] if self._options.every else self._found.certified()
        return max([min(self._options.mu, small), *(one.drop for one in certified)])

    def _explain(self, segment: Segment) -> Asking[None]:
        """Narrow a segment down to a step and certify that; what is left of it comes back into the queue."""
        self._found.narrowest = segment
        low, high = yield from self._narrow(self._found, segment, self._least())
        whole = high - low > 1  # its loss is spread: no step in it promises enough
        alpha = level(len(self._found.certificates), self._options.delta)
        certificate = None if whole else (yield from certify(self._ledger, low, self._options, alpha))
        self._queue.remove(segment)
        self._push((segment[0], low), (high, segment[1]))
        if certificate is None:
            self._push((low, high))
            return
        self._found.certificates.append(certificate)
        if certificate in self._found.certified():
            yield from self._guard(low + 1)
        elif sum(one.position == low for one in self._found.certificates) < AGAIN:
            self._push((low, high))

    def _push(self, *segments: Segment) -> None:
        self._queue += [one for one in segments if one[0] < one[1] and one not in self._queue]

    def _guard(self, base: int) -> Asking[None]:
        """Probe to the right of a certified step: a chance that came back was lost again further on."""
        last = self._ledger.end
        parts = GUARDS if last - base > 2 * GUARDS else last - base  # where few are left, all of them
        spots = sorted({base + (last - base) * part // (parts + 1) for part in range(1, parts + 1)} - {base, last})
        yield from self._ledger.ask([(spot, GUARD) for spot in spots if self._ledger.count(spot).n < GUARD], "guard")
        floor = self._ledger.value(base) + RISE
        risen = [spot for spot in spots if self._ledger.value(spot) > floor]
        unsure = [spot for spot in risen if self._ledger.count(spot).n < GUARD + CONFIRM]
        yield from self._ledger.ask([(spot, CONFIRM) for spot in unsure], "guard")
        certified = sorted(one.position for one in self._found.certified())
        for spot in risen:
            if self._ledger.value(spot) > floor:
                self._push((spot, next((position for position in certified if position >= spot), last)))
