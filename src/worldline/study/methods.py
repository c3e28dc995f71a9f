"""The methods of attribution by the names that people type."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from worldline.analysis.attribution.asking import Controller, LocateOptions, RecordedSteps
from worldline.analysis.attribution.contrastive import contrastive
from worldline.analysis.attribution.fast import fast
from worldline.analysis.attribution.locate import locate
from worldline.analysis.attribution.scan import scan
from worldline.analysis.attribution.shapley import ShapleyOptions, shapley
from worldline.errors import UsageError

Method = Callable[[RecordedSteps, LocateOptions], Controller]
SHAPLEY = "shapley"
METHODS: dict[str, Method] = {
    "locate": locate,
    "scan": scan,
    "fast": fast,
    "contrastive": contrastive,
    SHAPLEY: lambda run, options: _shapley(run, options, ShapleyOptions()),
}


def controller(name: str, run: RecordedSteps, options: LocateOptions, values: ShapleyOptions | None) -> Controller:
    """A method at work on a run; `values` are the options of Shapley values. Raises `UsageError`, `Ineligible`."""
    if name not in METHODS:
        raise UsageError(f"a method is one of {', '.join(METHODS)}, not {name!r}", method=name)
    if values is not None and name != SHAPLEY:
        raise UsageError(f"{name} has no Shapley values: say --method shapley")
    return METHODS[name](run, options) if values is None else _shapley(run, options, values)


def _shapley(run: RecordedSteps, options: LocateOptions, values: ShapleyOptions) -> Controller:
    shared = msgspec.structs.replace(values, delta=options.delta, budget=options.budget)
    return shapley(run, shared)
