"""What a study will cost, before it starts: rollouts as measured on the planted-fault suite, or the cap."""

from __future__ import annotations

import math

import msgspec

from worldline.analysis.attribution.asking import LocateOptions, RecordedSteps
from worldline.analysis.attribution.shapley import ShapleyOptions
from worldline.errors import UsageError

LIVE = 0.6  # of the run's steps that a rollout executes, on average: most prefixes of a search lie before the fault


class Price(msgspec.Struct, frozen=True):
    """Rollouts to expect, and those that are hardly ever exceeded; both end at the cap. `live_steps` for the former."""

    rollouts: int
    most: int
    live_steps: int


def price(run: RecordedSteps, method: str, options: LocateOptions | ShapleyOptions) -> Price:
    """The price of a study of `run`. Raises `UsageError` for a method that there is not."""
    steps = len(run.failed())
    expected, most = _rollouts(steps, method, options)
    cap = options.budget.rollouts
    if cap is not None:
        expected, most = min(expected, cap), min(most, cap)
    return Price(expected, most, round(expected * LIVE * run.length))


def _rollouts(steps: int, method: str, options: LocateOptions | ShapleyOptions) -> tuple[int, int]:
    if isinstance(options, ShapleyOptions):
        return _shapley(steps, options)
    splits = math.ceil(math.log2(steps)) + 1
    scale = options.fresh / 32
    if method == "locate":
        return round(70 + 30 * splits + 40 * scale), round(300 + 80 * splits + 400 * scale)
    if method == "fast":
        return round(70 + 22 * splits + 40 * scale), round(300 + 80 * splits + 400 * scale)
    if method in ("scan", "contrastive"):
        return options.each * steps + 16, options.each * steps + 160
    raise UsageError(f"there is no method {method!r}: locate, fast, scan, contrastive or shapley", method=method)


def _shapley(steps: int, options: ShapleyOptions) -> tuple[int, int]:
    orders = 2 * options.pairs * options.each
    exact = {
        "asymmetric": orders // 2 * steps,
        "permutation": orders * steps,
        "kernel": orders + options.pairs * options.each,
        "pivot": orders * (1 + math.ceil(math.log2(steps + 1))),
    }[options.kind]
    return exact, exact + (160 if options.kind == "asymmetric" else 0)
