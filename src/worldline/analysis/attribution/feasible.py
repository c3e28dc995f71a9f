"""Before any search: does the record replay, is its end judged alike again, and does the run ever succeed?

Each of these can end a study with a verdict of its own, and each costs little beside a search that could not succeed.
"""

from __future__ import annotations

from worldline.analysis.attribution.asking import Asking
from worldline.analysis.attribution.findings import Findings
from worldline.analysis.attribution.intervals import confidence_sequence

ENOUGH = 10  # successes that show a run to be feasible
TRIES = 160  # rollouts at most to show it
NOISY = 0.2  # a verifier that passes the recorded, failed end more often is noisy
DOUBT = 3  # times as many checks again, where the first ones are in doubt
LOST = 32  # rollouts without any verdict that end a study


def feasible(found: Findings) -> Asking[bool]:
    """Replay and judge the end again, then draw the run anew from its start. False: the study ends here."""
    ledger, options = found.ledger, found.options
    checked = yield from ledger.ask([(ledger.end, options.checks)], "verify")
    if any(outcome.diverged for outcome in checked):
        whys = [outcome.why for outcome in checked if outcome.diverged and outcome.why]
        found.unreproducible = whys[0] if whys else "a step that was held asked for something else than the record has"
        return False
    if checked and not ledger.count(ledger.end).defined:
        found.unreproducible = f"the verifier gives no verdict on the recorded end ({ledger.spent.commonest_why()})"
        return False
    if ledger.value(ledger.end) > NOISY:
        yield from ledger.ask([(ledger.end, DOUBT * options.checks)], "verify")
    found.noisy = ledger.value(ledger.end) > NOISY
    return (yield from _succeeds(found))


def _succeeds(found: Findings) -> Asking[bool]:
    ledger, options = found.ledger, found.options
    while (seen := ledger.count(0)).n < TRIES and seen.successes < ENOUGH:
        if seen.n >= LOST and not seen.defined:
            found.unreproducible = f"none of {seen.n} rollouts came to a verdict ({ledger.spent.commonest_why()})"
            return False
        # Undefined rollouts might have succeeded: only what fails for certain counts against the run.
        if confidence_sequence(seen.successes + seen.undefined, seen.n, options.delta)[1] < options.v_min:
            found.systematic = True
            return False
        yield from ledger.ask([(0, min(options.batch, TRIES - seen.n))])
    return ledger.value(0) - ledger.value(ledger.end) >= options.v_min
