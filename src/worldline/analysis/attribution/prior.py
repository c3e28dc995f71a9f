"""Where to look first: weights of the steps from what is on record, before anything is drawn anew.

They only choose where a search splits a run (half of every split stays even), so a wrong guess costs rollouts and
claims nothing. What went wrong visibly is often a symptom: the step before it, which led there, weighs as much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from worldline.engine.steps import Step
from worldline.errors import UsageError

EVEN = 1.0  # weight of a step about which nothing is known
FAILED = 4.0  # more for a step with a failing tool or an error, and for the one before it
RETRIED = 1.0  # more for a model that had to be asked again
UNSURE = 2.0  # more for the step with the highest entropy, less for the others in proportion
_EXCEPTION = re.compile(r"\b(Traceback \(most recent|[A-Z]\w*(?:Error|Exception)\b|exit (?:code|status) [1-9])")


def prior(steps: Sequence[Step], entropy: Sequence[float] | None = None) -> list[float]:
    """A weight for each step, in order, from tool errors, exceptions and retries, and from entropies where known.

    `entropy` is of the model's choice at each step, in any unit. Raises `UsageError` where it is not of these steps.
    """
    if entropy is not None and len(entropy) != len(steps):
        raise UsageError(f"{len(entropy):,} entropies for {len(steps):,} steps")
    weights = [EVEN + RETRIED * (step.attempts > 1) for step in steps]
    for place, step in enumerate(steps):
        if _went_wrong(step):
            weights[place] += FAILED
            if place:
                weights[place - 1] += FAILED
    most = max(entropy or [0.0], default=0.0)
    if entropy is not None and most > 0:
        weights = [weight + UNSURE * max(0.0, one) / most for weight, one in zip(weights, entropy, strict=True)]
    return weights


def _went_wrong(step: Step) -> bool:
    """Whether the step, or a tool that it called, failed visibly."""
    if step.error is not None or any(call.error is not None for call in step.calls):
        return True
    return any(call.result is not None and _EXCEPTION.search(call.result) is not None for call in step.calls)
