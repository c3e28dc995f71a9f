"""Every prefix alike: the same number of rollouts at each, and Newcombe's interval on every drop, by Bonferroni.

It costs a rollout more for every step, and it looks for nothing: a run with many small losses shows as it is. Each
rollout is used on both sides of it, and the level is shared among all steps, so what is certified is certified
together.
"""

from __future__ import annotations

from worldline.analysis.attribution.asking import Asking, Controller, LocateOptions, RecordedSteps
from worldline.analysis.attribution.certify import Certificate, count
from worldline.analysis.attribution.feasible import feasible
from worldline.analysis.attribution.findings import Findings
from worldline.analysis.attribution.ledger import Ledger
from worldline.analysis.attribution.spending import BudgetSpent
from worldline.analysis.attribution.verdict import attribution


def scan(run: RecordedSteps, options: LocateOptions | None = None) -> Controller:
    """The drops of all steps. Raises `Ineligible` for a run with no failure, no steps, or none that can be drawn."""
    options = options or LocateOptions()
    return _scanned(Findings(Ledger(run, options.budget), options, "scan"))


def _scanned(found: Findings) -> Controller:
    try:
        if (yield from feasible(found)):
            each = affordable(found)
            found.certificates += yield from every_drop(found, each)
            if each < found.options.each and not found.certified():
                found.ledger.spent.stop("rollouts")  # more of them could have certified a step
    except BudgetSpent:
        pass  # the ledger knows which cap, and the answer says it
    return attribution(found)


def affordable(found: Findings) -> int:
    """How many rollouts at each prefix the budget pays for, as many as were asked for at most."""
    cap, each = found.options.budget.rollouts, found.options.each
    if cap is None:
        return each
    paid = (cap - found.ledger.spent.rollouts) // found.ledger.end
    if paid < each:
        found.warnings.append(f"the budget pays for {paid} rollouts at each prefix, {each} were asked for")
    return min(paid, each)


def every_drop(found: Findings, each: int) -> Asking[list[Certificate]]:
    """A certificate of every step, from `each` rollouts at every prefix. Raises `BudgetSpent`."""
    ledger = found.ledger
    if not each:
        ledger.spent.stop("rollouts")
    positions = range(ledger.end + 1)
    outcomes = yield from ledger.ask([(position, each) for position in positions], "scan")
    counts = [count(outcomes[position :: len(positions)]) for position in positions]
    alpha = found.options.delta / ledger.end
    return [Certificate(position, counts[position], counts[position + 1], alpha) for position in range(ledger.end)]
