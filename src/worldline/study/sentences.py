"""What was found, in words that need no statistics: the same on the command line, in JSON and on pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worldline.analysis.attribution.asking import Attribution

EXPLAINED = {
    "decisive": "One step lost most of the chance to succeed, and no other comes near it.",
    "partial": "A step did lose some of the chance to succeed, but it is not clearly the one that matters most.",
    "diffuse": "No single step can be blamed: the chance to succeed went down little by little, or too little.",
    "systematic": "Even from its very beginning the agent hardly ever succeeds: no unlucky step is to blame.",
    "not-reproducible": "The agent does not do again what it did, so its run cannot be taken apart.",
    "noisy-verifier": "The verifier does not always judge the same end alike, so its verdicts cannot be trusted.",
    "budget": "The budget was used up before a step could be named.",
}
REPAIR_EXPLAINED = {
    "validated": "With this change in the place of what the agent did, the run goes well often enough.",
    "none": "Nothing that was tried makes the run go well often enough.",
    "budget": "The budget was used up before it was clear of any change whether it is good enough.",
}
AB_EXPLAINED = {
    "clear": "The arms differ by more than chance explains.",
    "open": "What was seen may be chance: the arms may be alike, or too few tries were made to tell them apart.",
}


def explained(answer: Mapping[str, Any]) -> str:
    """What the verdict of a study of any kind means."""
    said = {"repair": REPAIR_EXPLAINED, "ab": AB_EXPLAINED}.get(answer["kind"], EXPLAINED)
    return said[answer["verdict"]]


def sentence(found: Attribution) -> str:
    """The verdict in one sentence."""
    first, last = found.interval
    if found.step is not None and found.drop is not None and found.ci is not None:
        low, high = found.ci
        claim = (
            f"Step {found.step} cost {found.drop:.2f} of the chance to succeed "
            f"(between {low:.2f} and {high:.2f}, with {1 - found.delta:.0%} confidence)"
        )
        if found.verdict == "decisive":
            return f"{claim}, more than any other."
        if len(found.certified) > 1:
            others = ", ".join(str(drop.step) for drop in found.certified[1:])
            return f"{claim}, and it is not alone: so did {'steps' if len(found.certified) > 2 else 'step'} {others}."
        return f"{claim}; how much the others cost is open."
    where = f"step {first}" if last == first + 1 else f"steps {first} to {last - 1}"
    if found.verdict == "budget":
        return f"The budget ended before a step could be named; what was tested narrows it to {where} of {found.steps}."
    if found.verdict == "systematic":
        return (
            "The agent fails like this almost always, also when it starts anew: change the agent, its prompt or its "
            "model, not one step."
        )
    if found.verdict == "not-reproducible":
        return f"The run cannot be attributed: {found.why or 'the agent did not do again what it did'}."
    if found.verdict == "noisy-verifier":
        return "The verifier passes the very end that failed: mend the verifier first."
    return f"No step lost enough of the chance to succeed to be named; the loss is spread over {where}."
