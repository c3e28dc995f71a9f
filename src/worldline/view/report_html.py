"""The report of a study as one page that needs nothing: no network, no script, light and dark. For people who were not
there, and who need no statistics to read it.

It is made of the study's answer alone, and of texts that are quoted beside each other. What it quotes of a run is
what the study lets be quoted: contents of the restricted tier are not among it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from worldline.view.report_arms import arms_page
from worldline.view.report_bars import Bar, bars, table
from worldline.view.report_chart import chart
from worldline.view.report_fix import fix_page
from worldline.view.report_page import (
    Around,
    beside,
    cost,
    count,
    ended_early,
    framed,
    head,
    listing,
    see,
    steps_named,
    text,
    typed,
)

MOST_VALUES = 60  # steps whose values are drawn, the largest first


def report_page(answer: Mapping[str, Any], around: Around) -> str:
    """The page of a study of any kind."""
    pages = {"repair": fix_page, "ab": arms_page}
    return pages.get(answer["kind"], _blame_page)(answer, around)


def _blame_page(answer: Mapping[str, Any], around: Around) -> str:
    """Which step caused it."""
    return framed(
        answer["sentence"],
        (
            head(answer, "Why did it fail?", around.explained),
            _curve(answer),
            _drops(answer),
            _values(answer),
            _beside(answer, around),
            listing("How sure is that?", _sure(answer)),
            cost(answer, around.took),
            listing("What was not tested", _left_open(answer)),
            _further(answer, around.panel),
        ),
    )


def _curve(answer: Mapping[str, Any]) -> str:
    curve = answer.get("curve") or []
    if not curve:
        return ""
    numbers = table(
        [("kept up to step", True), ("went well", True), ("share", True), ("true share between", True)],
        [
            (point["at"], count(point), f"{point['v']:.2f}", f"{point['low']:.2f} to {point['high']:.2f}")
            for point in curve
        ],
    )
    return (
        "<h2>How likely success still was</h2>\n"
        "<p>The run was taken up again many times. Each time everything before some step was kept exactly as it was, "
        "and from there on the agent was let go again. Where the curve falls, something was lost that the agent could "
        "not make good.</p>\n"
        f"<figure>{chart(curve, answer['steps'], answer.get('certified') or [])}\n"
        "<figcaption>Each point: the share that went well when the steps before it are kept. The band shows how far "
        "the true share may be from it; it holds however often one has looked.</figcaption></figure>\n"
        f"<details><summary>The same as numbers</summary>{numbers}</details>"
    )


def _drops(answer: Mapping[str, Any]) -> str:
    certified = answer.get("certified") or []
    if not certified:
        return ""
    actions = {step["step"]: step["action"] for step in answer.get("recorded") or ()}
    numbers = table(
        [
            ("step", True),
            ("cost", True),
            ("between", True),
            ("drawn anew", True),
            ("as it was", True),
            ("what it did", False),
        ],
        [
            (
                drop["step"],
                f"{drop['drop']:.2f}",
                "{:.2f} to {:.2f}".format(*drop["ci"]),
                count(drop["before"]),
                count(drop["after"]),
                actions.get(drop["step"]),
            )
            for drop in certified
        ],
    )
    return (
        "<h2>What held in a test of its own</h2>\n<p>These steps were tested on fresh tries, drawn only for that: so "
        f"many went well with the step drawn anew, so many with the step as it was.</p>\n{numbers}"
    )


def _values(answer: Mapping[str, Any]) -> str:
    """What a method that scores every step gives to each."""
    values = answer.get("values") or []
    if not values:
        return ""
    largest = sorted(values, key=lambda one: (-abs(one["value"]), one["step"]))[:MOST_VALUES]
    rows = [
        Bar(f"step {one['step']}", one["value"], one["ci"] or (one["value"], one["value"]), f"{one['value']:+.2f}")
        for one in sorted(largest, key=lambda one: int(one["step"]))
    ]
    low = -1.0 if any(row.reach[0] < 0 for row in rows) else 0.0
    left = f" The {MOST_VALUES} largest of {len(values):,} are shown." if len(values) > MOST_VALUES else ""
    return (
        f"<h2>What the method gives to each step</h2>\n<figure>{bars(rows, low=low, line=0.0)}<figcaption>The dot: the "
        f"value of the step. The bar: where it may truly lie.{left}</figcaption></figure>"
    )


def _beside(answer: Mapping[str, Any], around: Around) -> str:
    if around.beside is None:
        return ""
    before, after = around.beside
    step = answer["step"]
    link = f"<p>{see(answer['run'], around.other, step, around.panel)}</p>" if around.other is not None else ""
    return (
        f"<h2>What it did, and what would have gone well</h2>\n"
        f"<p>At step {step} the agent was asked again, with everything before as it was. This is one of the answers "
        "after which it succeeded.</p>\n"
        f"{beside(('as it was', before), ('drawn anew, and it went well', after))}{link}"
    )


def _sure(answer: Mapping[str, Any]) -> Iterator[str]:
    delta = float(answer.get("delta") or 0.05)
    yield f"If no step mattered more than the others, a step would be named in at most {delta:.0%} of such studies."
    if answer.get("share") is not None:
        yield f"The step explains {min(1.0, answer['share']):.0%} of all that was lost between start and end."
    if answer.get("unexplained"):
        yield (
            f"{answer['unexplained']:.2f} of the chance to succeed was lost elsewhere, in no place that could be named."
        )
    if answer.get("undefined"):
        yield (
            f"{answer['undefined']} tries came to no verdict. Counted as failures or as successes, whichever is worse, "
            "they do not change what is named."
        )
    yield "A step is only named after a test on tries of its own, never on those that led to it."


def _left_open(answer: Mapping[str, Any]) -> Iterator[str]:
    yield from ended_early(answer)
    for part in answer.get("untested") or ():
        first, last = part["interval"]
        where = f"Step {first}" if last == first + 1 else f"Steps {first} to {last - 1}"
        yield f"{where}: not taken apart; together they cost about {max(0.0, part['drop']):.2f}."
    for drop in answer.get("tested") or ():
        yield f"Step {drop['step']}: tested, and no loss could be shown (about {drop['drop']:.2f})."
    if served := answer.get("not_attributable"):
        yield f"{steps_named(served)}: always comes as it came, since no model is asked there; nothing is said of it."


def _further(answer: Mapping[str, Any], panel: str | None) -> str:
    step = answer.get("step")
    repair = f"worldline repair {answer['run'][-4:]} --at step:{step}" if step is not None else ""
    more = f"<p>Find a change that saves it: {typed(repair)}</p>" if repair else ""
    return (
        f"<h2>Go on</h2>\n<p>{see(answer['run'], None, step, panel)}</p>{more}"
        f'<p class="over">study {text(answer["study"])}</p>'
    )
