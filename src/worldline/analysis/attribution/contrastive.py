"""The contrastive score of each step, and two questions that can be asked of it. They do not ask for the cause.

`P(fail | step kept) - P(fail | drawn anew from it on)` is, for a run that failed, `V(i)` itself less what the end is
judged: a survival curve, not a step's share of the loss. The latest step at which it excludes 0 (the point of
commitment) is the latest from which a few draws still succeeded; with any chance of recovery, or a verifier that errs,
it moves towards the end as rollouts are added. It is offered because it is known by that name; `locate` answers the
question of the cause.
"""

from __future__ import annotations

import msgspec

from worldline.analysis.attribution.asking import (
    Attribution,
    Controller,
    LocateOptions,
    RecordedSteps,
    StepValue,
    Verdict,
)
from worldline.analysis.attribution.findings import Findings
from worldline.analysis.attribution.intervals import bootstrap_share
from worldline.analysis.attribution.ledger import Ledger
from worldline.analysis.attribution.spending import BudgetSpent
from worldline.analysis.attribution.verdict import attribution
from worldline.errors import UsageError

NOT_THE_CAUSE = (
    "the point of commitment is the latest step from which draws still succeeded, not the cause of the failure: "
    "with any chance of recovery it moves towards the end as rollouts are added (method locate finds the cause)"
)


def contrastive(run: RecordedSteps, options: LocateOptions | None = None) -> Controller:
    """The contrastive score of every step from `each` rollouts, with bootstrap intervals, and the point of commitment.

    Raises `Ineligible` for a run with no failure, no steps, or none that can be drawn.
    """
    options = options or LocateOptions()
    return _scored(Findings(Ledger(run, options.budget), options, "contrastive"))


def _scored(found: Findings) -> Controller:
    ledger, options = found.ledger, found.options
    try:
        yield from ledger.ask([(ledger.end, options.checks)], "verify")
        drawn = yield from ledger.ask([(position, options.each) for position in range(ledger.end)])
        if len(drawn) < options.each * ledger.end:
            ledger.spent.stop("rollouts")
    except BudgetSpent:
        pass  # the ledger knows which cap, and the answer says it
    found.warnings.append(NOT_THE_CAUSE)
    values = _values(found)
    said = attribution(found)
    return _replaced(said, values, point_of_commitment(values))


def _values(found: Findings) -> list[StepValue]:
    ledger, kept = found.ledger, found.ledger.value(found.ledger.end)
    values = []
    for position in ledger.probed():
        if position < ledger.end:
            count = ledger.count(position)
            low, high = bootstrap_share(count.successes, count.defined, found.options.delta)
            values.append(StepValue(ledger.step(position), count.share() - kept, (low - kept, high - kept)))
    return values


def _replaced(said: Attribution, values: list[StepValue], step: int | None) -> Attribution:
    verdict: Verdict = "budget" if said.stopped else "partial"
    if step is None and not said.stopped:
        verdict = "diffuse"
    chosen = next((value for value in values if value.step == step), None)
    why = (
        "no step from which draws succeed often enough" if chosen is None else f"step {step} is the point of commitment"
    )
    return msgspec.structs.replace(
        said,
        verdict=verdict,
        interval=(step, step + 1) if step is not None else (0, said.steps),
        step=step,
        drop=chosen.value if chosen else None,
        ci=chosen.ci if chosen else None,
        values=values,
        why=why,
    )


def point_of_commitment(values: list[StepValue]) -> int | None:
    """The latest step whose contrastive score excludes 0."""
    return max((value.step for value in values if value.ci is not None and value.ci[0] > 0), default=None)


def last_rescuable_step(said: Attribution, eps: float) -> int | None:
    """The latest step from which a rollout succeeds with a chance above `eps` for sure; None where there is none.

    From the curve of any method; steps that were not probed are not judged. Raises `UsageError` for an `eps` that is no
    chance.
    """
    if not 0 <= eps < 1:
        raise UsageError(f"eps is a chance, 0 to 1, not {eps}")
    sure = [point.at for point in said.curve if point.at < said.steps and point.low > eps]
    return max(sure, default=None)
