"""From what was found to the attribution: the verdict, the step or the interval, what is left, and the warnings."""

from __future__ import annotations

from worldline.analysis.attribution.asking import Attribution, Untested, Verdict
from worldline.analysis.attribution.certify import Certificate
from worldline.analysis.attribution.findings import Findings, Segment
from worldline.analysis.attribution.intervals import Interval, confidence_sequence, newcombe

READINGS = (None, 0.0, 1.0)  # undefined rollouts left out, as failures, as successes


def attribution(found: Findings) -> Attribution:
    """The answer of a search."""
    ledger = found.ledger
    held = found.certified()
    drops = {one: one.of_step(ledger.step(one.position)) for one in found.certificates}
    certified = [drops[one] for one in held]
    verdict, why = _verdict(found)
    segment = (held[0].position, held[0].position + 1) if held else _narrowest(found)
    return Attribution(
        verdict=verdict,
        method=found.method,
        steps=ledger.run.length,
        interval=_steps(found, segment),
        step=certified[0].step if certified else None,
        drop=certified[0].drop if certified else _known_loss(found, segment),
        ci=certified[0].ci if certified else _loss_interval(found, segment),
        share=_share(found, held[0]) if held else None,
        certified=certified,
        tested=sorted((drops[one] for one in found.certificates if one not in held), key=lambda one: -one.drop),
        unexplained=max(0.0, found.loss() - sum(one.drop for one in certified)) if ledger.spent.rollouts else None,
        curve=ledger.curve(found.options.delta),
        untested=[Untested(_steps(found, one), found.loss(one)) for one in sorted(found.pending)],
        not_attributable=ledger.not_attributable,
        rescued=ledger.rescued(held[0].position) if held else [],
        delta=found.options.delta,
        why=why,
        warnings=[*found.warnings, *_warnings(found)],
        **ledger.spent.fields(),
    )


def _verdict(found: Findings) -> tuple[Verdict, str]:
    """The word and the reason for it, in a sentence."""
    ledger, options = found.ledger, found.options
    start, end = ledger.count(0), ledger.count(ledger.end)
    if found.unreproducible:
        return "not-reproducible", found.unreproducible
    if found.systematic:
        return "systematic", (
            f"drawn anew from the start the run succeeds in {start.successes} of {start.defined} rollouts: this is "
            "policy, not bad luck. Try other actions instead (worldline repair)"
        )
    if found.noisy:
        return (
            "noisy-verifier",
            f"the verifier passes the recorded, failed end in {end.successes} of {end.defined} checks",
        )
    if not found.certified():
        if ledger.spent.stopped:
            return "budget", f"the cap on {ledger.spent.stopped} was reached before a step was certified"
        if found.loss() < options.v_min:
            return "diffuse", f"only {found.loss():.0%} of the runs is lost between start and end, too little to search"
        return "diffuse", f"{found.loss():.0%} of the runs is lost, but no single step was certified to lose its part"
    doubt = _doubt(found)
    step = ledger.step(found.certified()[0].position)
    return ("partial", f"step {step} lost a part: {doubt}") if doubt else ("decisive", f"step {step} lost the run")


def _doubt(found: Findings) -> str | None:
    """Why the largest certified drop is not decisive; None where it is."""
    if found.ledger.spent.stopped:
        return f"the cap on {found.ledger.spent.stopped} was reached before the rest was searched"
    best, options = found.certified()[0], found.options
    if _share(found, best) < options.share:
        return f"it explains {_share(found, best):.0%} of the loss, and {options.share:.0%} is asked for"
    if not _leads(found, best, None):
        return f"another part of the run may have lost as much, give or take {options.lead:.2f}"
    if best.bounds[0] <= 0 or not all(_leads(found, best, undefined) for undefined in READINGS):
        return f"{found.ledger.spent.undefined} rollouts came to no verdict, and theirs could change the answer"
    return None


def _leads(found: Findings, best: Certificate, undefined: float | None) -> bool:
    """Whether a certificate is the largest by the lead asked for, and large enough, in one reading of the undefined."""
    drop = best.drop_with(undefined)
    others = [one.drop_with(undefined) for one in found.certificates if one.position != best.position]
    others += [found.loss(segment, undefined) for segment in found.pending]
    ahead = all(drop >= other + found.options.lead for other in others)
    return ahead and _share(found, best, undefined) >= found.options.share


def _share(found: Findings, best: Certificate, undefined: float | None = None) -> float:
    """The part of the whole loss that a certificate explains, at most all of it (where the chance rose in between)."""
    loss, drop = found.loss(undefined=undefined), best.drop_with(undefined)
    return min(1.0, drop / loss) if loss > 0 else 1.0


def _narrowest(found: Findings) -> Segment:
    """Without a step: where the search stood when a cap ended it, else the shortest segment that lost most of all."""
    ledger = found.ledger
    if ledger.spent.stopped and found.narrowest is not None:
        return found.narrowest
    probed = ledger.probed()
    least = found.options.share * found.loss()
    losing = [(a, b) for a in probed for b in probed if a < b and found.loss((a, b)) >= least and _falls(found, a, b)]
    return min(losing, key=lambda one: (one[1] - one[0], -found.loss(one), one), default=(0, ledger.end))


def _falls(found: Findings, start: int, end: int) -> bool:
    before, after = found.ledger.count(start), found.ledger.count(end)
    return newcombe((before.successes, before.defined), (after.successes, after.defined), found.options.delta)[0] > 0


def _known_loss(found: Findings, segment: Segment) -> float | None:
    return found.loss(segment) if all(found.ledger.count(position).defined for position in segment) else None


def _loss_interval(found: Findings, segment: Segment) -> Interval | None:
    """Of the loss over a segment that was picked among all probed prefixes: their sequences hold together."""
    if _known_loss(found, segment) is None:
        return None
    alpha = found.options.delta / max(1, len(found.ledger.probed()))
    counts = [found.ledger.count(position) for position in segment]
    (low, high), (least, most) = (confidence_sequence(seen.successes, seen.defined, alpha) for seen in counts)
    return low - most, high - least


def _steps(found: Findings, segment: Segment) -> tuple[int, int]:
    """The steps of a segment, as from..to (not included), served ones at its ends included; a single one is itself."""
    start, end = segment
    if end - start == 1:
        return found.ledger.step(start), found.ledger.step(start) + 1
    return found.ledger.at(start) if start else 0, found.ledger.at(end)


def _warnings(found: Findings) -> list[str]:
    ledger = found.ledger
    said = ledger.spent.warnings()
    if ledger.not_attributable:
        said.append(
            f"{len(ledger.not_attributable)} steps were recorded without a policy: they are served in every rollout, "
            "and no attribution is made to them"
        )
    if found.noisy:
        said.append("the verifier does not judge the same end alike: every chance here is that of its verdicts")
    return said
