"""The report of a comparison: the arms from one checkpoint, how often each succeeded, and what lies between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from worldline.view.report_bars import Bar, bars, table
from worldline.view.report_page import Around, beside, cost, count, ended_early, framed, head, listing, said, see, text

FORCED = "action="
METHODS = {
    "Newcombe": "The number of tries was settled beforehand, so the bars hold as they stand.",
    "confidence sequence": (
        "It was looked at after every few tries and stopped when it was clear; the bars allow for that."
    ),
}


def arms_page(answer: Mapping[str, Any], around: Around) -> str:
    """The page of a comparison."""
    return framed(
        answer["sentence"],
        (
            head(answer, "Which way on is better?", around.explained),
            _arms(answer),
            _differences(answer),
            _beside(answer, around),
            listing("How sure is that?", _sure(answer)),
            listing("What was not tested", _left_open(answer)),
            cost(answer, around.took),
            _further(answer, around),
        ),
    )


def clearest(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The difference that the verdict is about."""
    found: list[Mapping[str, Any]] = answer.get("differences") or []
    return max(found, key=lambda one: abs(one["difference"]), default=None)


def called(name: str) -> str:
    """An arm in words: a forced action by what it says."""
    action = forced(name)
    return name if action is None else f"“{' '.join(action.split())}”"


def forced(name: str) -> str | None:
    """The action that an arm puts in the place of the model's, as text; None where it does something else."""
    if not name.startswith(FORCED):
        return None
    try:
        found = json.loads(name.removeprefix(FORCED))
    except ValueError:
        return name.removeprefix(FORCED)
    return said(found) if isinstance(found, dict) else name.removeprefix(FORCED)


def _arms(answer: Mapping[str, Any]) -> str:
    arms = answer["arms"]
    rows = [Bar(called(arm["name"]), arm["rate"], arm["interval"], f"{count(arm['count'])} went well") for arm in arms]
    graded = any(arm.get("mean_score") not in (None, arm["rate"]) for arm in arms)
    heads = [("", False), ("went well", True), ("share", True), ("true share between", True)]
    numbers = table(
        [*heads, ("mean score", True)] if graded else heads,
        [
            [
                called(arm["name"]),
                count(arm["count"]),
                f"{arm['rate']:.2f}",
                "{:.2f} to {:.2f}".format(*arm["interval"]),
            ]
            + ([f"{arm['mean_score']:.2f}" if arm.get("mean_score") is not None else ""] if graded else [])
            for arm in arms
        ],
    )
    return (
        f"<h2>How often each went well</h2>\n<p>The run was taken up again at step {answer['at']}, with everything "
        "before kept exactly as it was. From there on each arm went on in its own way, as many times as the others."
        "</p>\n"
        f"<figure>{bars(rows)}<figcaption>The dot: the share of tries that went well. The bar: where the true share of "
        "that arm may lie.</figcaption></figure>\n"
        f"<details><summary>The same as numbers</summary>{numbers}</details>"
    )


def _differences(answer: Mapping[str, Any]) -> str:
    rows = []
    for one in answer.get("differences") or ():
        low, high = one["bounds"]
        clear = low > 0 or high < 0
        what = f"{one['difference']:+.0%}".replace("-", "−") + (": clear" if clear else ": may be chance")
        rows.append(
            Bar(
                f"{called(one['first'])} less {called(one['second'])}",
                one["difference"],
                (low, high),
                what,
                "good" if clear else "open",
            )
        )
    if not rows:
        return ""
    scores = [
        f"Mean score of {called(one['first'])} less that of {called(one['second'])}: {one['score_difference']:+.2f} "
        f"(between {one['score_ci'][0]:+.2f} and {one['score_ci'][1]:+.2f}; such an interval holds in about "
        f"{one['coverage']:.0%} of cases)."
        for one in answer["differences"]
        if one.get("score_ci") and one.get("coverage")
    ]
    means = "<ul>" + "".join(f"<li>{text(line)}</li>" for line in scores) + "</ul>" if scores else ""
    return (
        "<h2>What lies between them</h2>\n"
        f"<figure>{bars(rows, low=-1.0, high=1.0, line=0.0)}<figcaption>In how many of 100 tries more, or fewer, the "
        "first goes well than the second. A bar that does not touch the line in the middle is more than chance."
        f"</figcaption></figure>{means}"
    )


def _beside(answer: Mapping[str, Any], around: Around) -> str:
    best = clearest(answer)
    if around.beside is None or best is None:
        return ""
    pair = (best["first"], best["second"])
    links = [
        f"<p>A try of {text(called(arm['name']))} that went well. "
        f"{see(answer['run'], arm['runs'][0], answer['at'], around.panel)}</p>"
        for arm in answer["arms"]
        if arm["runs"] and arm["name"] in pair
    ]
    shown = list(zip(map(called, pair), around.beside, strict=True))
    first, second = shown if best["difference"] < 0 else reversed(shown)  # the better one stands right, in green
    return (
        f"<h2>What they did at step {answer['at']}</h2>\n<p>In a try of each that went well, where there is one.</p>\n"
        f"{beside(first, second)}{''.join(links)}"
    )


def _sure(answer: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"Where two arms are alike, one would be called better in at most {answer['delta']:.0%} of such studies"
        + (", all pairs together." if len(answer.get("differences") or ()) > 1 else ".")
    )
    for method in dict.fromkeys(one["method"] for one in answer.get("differences") or ()):
        yield METHODS.get(method, method)
    yield "All tries left one and the same state of one run, so what differs is what the arms change, and chance."
    if answer.get("undefined"):
        yield (
            f"{answer['undefined']} tries came to no verdict. A difference is called clear only where it holds whether "
            "those would have failed or gone well."
        )


def _left_open(answer: Mapping[str, Any]) -> Iterator[str]:
    yield from ended_early(answer)
    yield f"Other states than that before step {answer['at']} of this run: on another task the answer may be another."
    if any(not (one["bounds"][0] > 0 or one["bounds"][1] < 0) for one in answer.get("differences") or ()):
        yield "Whether arms that no clear difference was found between are alike: more tries would tell them closer."


def _further(answer: Mapping[str, Any], around: Around) -> str:
    return (
        f"<h2>Go on</h2>\n<p>{see(answer['run'], None, answer['at'], around.panel)}</p>"
        f'<p class="over">study {text(answer["study"])}</p>'
    )
