"""The report of several failed runs of one task: where they lose it, and what was found of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from worldline.view.report_bars import Bar, bars, table
from worldline.view.report_page import SIGNS, cost, framed, head, listing, see, text

EXPLAINED = (
    "Each run was taken apart for itself. Here the steps of all runs are put together by what they are called: their "
    "own name, or the tools they call."
)


def weak_page(
    together: Mapping[str, Any], answers: Sequence[Mapping[str, Any]], *, took: float | None, panel: str | None
) -> str:
    """The page: what the runs have in common, then each of them."""
    first = answers[0]
    told = {
        "verdict": "together",
        "sentence": sentence(together),
        "task": first.get("task"),
        "warnings": together["warnings"],
    }
    return framed(
        str(told["sentence"]),
        (
            head(told, f"Where do {together['runs']} failed runs lose it?", EXPLAINED),
            _steps(together),
            _runs(answers, panel),
            listing("How sure is that?", _sure(together)),
            cost(_summed(answers), took),
        ),
    )


def sentence(together: Mapping[str, Any]) -> str:
    """What the runs have in common, in words."""
    runs, steps = together["runs"], together["steps"]
    if not steps:
        return f"In none of the {runs} runs could a step be named."
    weak = steps[0]
    low, high = weak["share_ci"]
    return (
        f"{weak['culprit_in']} of {runs} runs lose it at the same step, {weak['name']} "
        f"(true share of such runs between {low:.2f} and {high:.2f})."
    )


def _steps(together: Mapping[str, Any]) -> str:
    steps, runs = together["steps"], together["runs"]
    if not steps:
        return ""
    rows = [
        Bar(step["name"], step["share"], step["share_ci"], f"worst in {step['culprit_in']} of {runs} runs")
        for step in steps
    ]
    numbers = table(
        [("step", False), ("worst in", True), ("named in", True), ("cost on average", True), ("between", True)],
        [
            (
                step["name"],
                f"{step['culprit_in']} of {runs}",
                f"{step['certified_in']} of {runs}",
                f"{step['mean_drop']:.2f}",
                "{:.2f} to {:.2f}".format(*step["mean_ci"]),
            )
            for step in steps
        ],
    )
    return (
        f"<h2>Where they lose it</h2>\n<figure>{bars(rows)}<figcaption>The dot: in how many of the runs this step cost "
        "the most. The bar: where the true share of such runs may lie.</figcaption></figure>\n"
        f"<details><summary>The same as numbers</summary>{numbers}</details>"
    )


def _runs(answers: Sequence[Mapping[str, Any]], panel: str | None) -> str:
    cards = "".join(
        f'<div class="card"><p class="over">run {text(answer["run"])} · study {text(answer["study"])}</p>'
        f'<p><span class="badge {text(answer["verdict"])}">{SIGNS.get(answer["verdict"], "✕")} '
        f"{text(answer['verdict'])}</span> {text(answer['sentence'])}</p>"
        f"<p>{see(answer['run'], None, answer.get('step'), panel)}</p></div>"
        for answer in answers
    )
    return f'<h2>Each run</h2>\n<div class="cards">{cards}</div>'


def _sure(together: Mapping[str, Any]) -> Iterator[str]:
    yield "A run counts for a step only where a test on fresh tries of its own has shown that the step cost something."
    if blank := together["runs"] - sum(step["culprit_in"] for step in together["steps"]):
        yield f"In {blank} of the runs no step could be named. They count as runs that lost nothing at any step."
    yield "The bars are about other runs of this task: the more runs are put together, the narrower they get."


def _summed(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = ("rollouts", "live_steps", "tokens", "undefined", "diverged")
    summed: dict[str, Any] = {name: sum(answer[name] for answer in answers) for name in names}
    summed["money"] = sum(answer.get("money") or 0.0 for answer in answers)
    for name in ("verifier", "method"):
        summed[name] = ", ".join(dict.fromkeys(str(answer.get(name)) for answer in answers))
    return summed
