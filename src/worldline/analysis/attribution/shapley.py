"""Shapley values: what each step adds to the chance of failure, fairly shared. Four ways to work them out.

`v(S)` is the chance of failure when the steps of S are held as recorded and all others are drawn anew; the values of
all steps add up to `v(all) - v(none)`. In the order of the run (asymmetric, the default) they are the drops of `V`, and
need a rollout at each prefix. The symmetric ones average over all orders, and ask for runs that hold a step but not
the one before: where inputs carry history such a step never comes again, its hold never binds, and the value means
nothing. They are refused there unless asked for anyway.
"""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import Literal

import msgspec

from worldline.analysis.attribution.asking import (
    Asking,
    Attribution,
    Budget,
    Controller,
    LocateOptions,
    RecordedSteps,
    StepValue,
    Verdict,
)
from worldline.analysis.attribution.coalitions import Coalitions
from worldline.analysis.attribution.intervals import z_of
from worldline.analysis.attribution.kernel import kernel_values
from worldline.analysis.attribution.scan import scan
from worldline.analysis.attribution.spending import BudgetSpent
from worldline.engine.clock import generator
from worldline.errors import Ineligible, UsageError

UNTESTED = "each value has its own interval: the largest of them is named, not certified"
CARRIED = "inputs carry history: a step that is held without those before it hardly ever comes again"

Kind = Literal["asymmetric", "permutation", "kernel", "pivot"]


class ShapleyOptions(msgspec.Struct, frozen=True):
    """How to work them out.

    `pairs` orders of the steps are drawn, each with its reverse (permutation, pivot), or coalitions with their
    complements (kernel); each coalition is valued by `each` rollouts. `anyway` asks for symmetric values although
    inputs carry history. `seed` chooses the orders.
    """

    kind: Kind = "asymmetric"
    pairs: int = 20
    each: int = 4
    anyway: bool = False
    seed: int = 0
    delta: float = 0.05
    budget: Budget = Budget()

    def __post_init__(self) -> None:
        if self.pairs < 1 or self.each < 1 or not 0 < self.delta < 1:
            raise UsageError("pairs and each are 1 or more, delta is a chance between 0 and 1")


def shapley(run: RecordedSteps, options: ShapleyOptions | None = None) -> Controller:
    """The Shapley values of the steps of a failed run. Raises `Ineligible` as `locate`, and where they mean nothing."""
    options = options or ShapleyOptions()
    run.failed()
    if options.kind == "asymmetric":
        return _in_order(run, options)
    if run.history and not options.anyway:
        raise Ineligible(
            f"{options.kind} Shapley values mean nothing for this run: the inputs of a step carry what happened before "
            "it, so a step that is held without those before it never comes again. Asymmetric ones are well defined",
            reasons=["the inputs of a step carry history"],
        )
    return _over_orders(run, options)


def _in_order(run: RecordedSteps, options: ShapleyOptions) -> Controller:
    """The drops from a scan: one order, that of the run."""
    said = yield from scan(
        run, LocateOptions(each=options.pairs * options.each, delta=options.delta, budget=options.budget)
    )
    drops = sorted((*said.certified, *said.tested), key=lambda drop: drop.step)
    values = [StepValue(drop.step, drop.drop, drop.ci) for drop in drops]
    return msgspec.structs.replace(said, method="shapley:asymmetric", values=values)


def _over_orders(run: RecordedSteps, options: ShapleyOptions) -> Controller:
    coalitions = Coalitions(run, options.budget)
    found: list[list[float]] = []  # of each pair, the values of all players
    try:
        if options.kind == "kernel":
            found = yield from kernel_values(coalitions, options.pairs, options.each, options.seed)
        else:
            yield from _orders(coalitions, options, found)
    except BudgetSpent:
        pass  # the answer says which cap, and is made of the pairs that are whole
    return _answer(coalitions, options, found)


def _orders(coalitions: Coalitions, options: ShapleyOptions, found: list[list[float]]) -> Asking[None]:
    """Random orders, each with its reverse: a step that stands early in one stands late in the other."""
    chance = generator(options.seed)
    added = _pivots if options.kind == "pivot" else _marginals
    for pair in range(options.pairs):
        order = list(coalitions.players)
        chance.shuffle(order)
        one = yield from added(coalitions, order, options.each, f"{pair}")
        other = yield from added(coalitions, order[::-1], options.each, f"{pair}r")
        found.append([(one[step] + other[step]) / 2 for step in coalitions.players])


def _marginals(coalitions: Coalitions, order: list[int], each: int, tag: str) -> Asking[dict[int, float]]:
    """What each step adds when the steps are held one after the other: every coalition drawn afresh, to the last one.

    Values kept from one order to the next would make the spread of the marginals, and so their intervals, too small;
    an order broken off early would miss late steps that decide.
    """
    held = [order[:size] for size in range(len(order) + 1)]
    values = yield from coalitions.values(held, each, f"order:{tag}")
    return {step: after - before for step, before, after in zip(order, values, values[1:], strict=False)}


def _pivots(coalitions: Coalitions, order: list[int], each: int, tag: str) -> Asking[dict[int, float]]:
    """The step whose hold turns the outcome, found by halving: all rollouts of one search share their chance.

    Where the outcome turns more than once along an order, one of the turns is found; the values still add up.
    """
    added = dict.fromkeys(order, 0.0)
    for k in range(each):
        shared = f"shared:pivot:{tag}:{k}"
        low, high = 0, len(order)
        first, last = yield from coalitions.values([[], order], 1, shared)
        if first == last:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            (value,) = yield from coalitions.values([order[:middle]], 1, shared)
            low, high = (middle, high) if value == first else (low, middle)
        added[order[low]] += (last - first) / each
    return added


def _averaged(players: list[int], found: list[list[float]], delta: float) -> list[StepValue]:
    """Means over the pairs, which are independent, with normal intervals; of a single pair none can be given."""
    values = []
    for step, seen in zip(players, zip(*found, strict=True), strict=False):
        mean, interval = fmean(seen), None
        if len(seen) > 1:
            half = z_of(delta) * stdev(seen) / math.sqrt(len(seen))
            interval = (mean - half, mean + half)
        values.append(StepValue(step, mean, interval))
    return values


def _answer(coalitions: Coalitions, options: ShapleyOptions, found: list[list[float]]) -> Attribution:
    values = _averaged(coalitions.players, found, options.delta)
    best = max(values, key=lambda value: value.value, default=None)
    named = best if best is not None and best.ci is not None and best.ci[0] > 0 else None
    spent, steps = coalitions.spent, coalitions.run.length
    verdict: Verdict = "partial" if named else "budget" if spent.stopped else "diffuse"
    return Attribution(
        verdict=verdict,
        method=f"shapley:{options.kind}",
        steps=steps,
        interval=(named.step, named.step + 1) if named else (0, steps),
        step=named.step if named else None,
        drop=named.value if named else None,
        ci=named.ci if named else None,
        values=values,
        not_attributable=coalitions.not_attributable,
        delta=options.delta,
        why=f"step {named.step} has the largest Shapley value" if named else "no step's value excludes 0",
        warnings=[UNTESTED, *([CARRIED] if coalitions.run.history else []), *spent.warnings()],
        **spent.fields(),
    )
