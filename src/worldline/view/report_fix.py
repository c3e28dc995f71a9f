"""The report of a repair: what was tried at a step, how often each went well, and the change that saves the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from worldline.view.report_bars import Bar, Tone, bars, table
from worldline.view.report_page import (
    Around,
    beside,
    cost,
    count,
    ended_early,
    framed,
    head,
    listing,
    said,
    see,
    steps_named,
    text,
    typed,
)

QUOTED = 90
STATES = {
    "valid": "good enough",
    "invalid": "not good enough",
    "outdone": "left: one that changes less was good enough",
    "open": "not decided",
}
TONES: dict[str, Tone] = {"valid": "good", "invalid": "bad"}
SOURCES = {"rescued": "a try that went well", "user": "yours", "model": "a model"}


def fix_page(answer: Mapping[str, Any], around: Around) -> str:
    """The page of a repair."""
    return framed(
        answer["sentence"],
        (
            head(answer, "What would have saved it?", around.explained),
            _pair(answer, around),
            _tried(answer),
            listing("How sure is that?", _sure(answer)),
            listing("What was not tested", _left_open(answer)),
            cost(answer, around.took),
            _further(answer, around),
        ),
    )


def _pair(answer: Mapping[str, Any], around: Around) -> str:
    pair = answer.get("pair")
    if not pair:
        return ""
    steps = list(zip(pair["steps"], pair["rejected"], pair["chosen"], strict=True))
    shown = "".join(
        beside((f"step {step}, as it was", said(wrong)), (f"step {step}, changed", said(chosen)))
        for step, wrong, chosen in steps
    )
    link = ""
    if around.other is not None:
        place = see(answer["run"], around.other, steps[0][0], around.panel)
        link = f"<p>One of the tries that went well, beside the run. {place}</p>"
    several = len(steps) > 1
    return (
        f"<h2>The smallest change that was found</h2>\n<p>{_kept(pair['minimality'])} Everything before "
        f"{'them' if several else 'it'} was kept exactly as it was; from there on the agent went on by itself.</p>\n"
        f"{shown}{link}"
    )


def _kept(minimality: float) -> str:
    return f"It is {minimality:.0%} like what the agent did there."


def _tried(answer: Mapping[str, Any]) -> str:
    tested: Sequence[Mapping[str, Any]] = answer["tested"]
    if not tested:
        return ""
    needed = 1 - answer["target"]
    rows = [
        Bar(
            f"{letter(number)} · {_changes(each)}",
            _share(each["count"]),
            each["interval"],
            f"{count(each['count'])}: {STATES[each['state']]}",
            TONES.get(each["state"], "open"),
        )
        for number, each in enumerate(tested)
    ]
    numbers = table(
        [("", False), ("from", False), ("went well", True), ("true share between", True), ("like what it did", True)],
        [
            (
                letter(number),
                ", ".join(dict.fromkeys(SOURCES.get(change["source"], change["source"]) for change in each["changes"])),
                count(each["count"]),
                "{:.2f} to {:.2f}".format(*each["interval"]),
                f"{1 - each['drift'] / len(each['changes']):.0%}",
            )
            for number, each in enumerate(tested)
        ],
    )
    return (
        "<h2>What was tried, and how often it went well</h2>\n<p>Each change was put in the place of what the agent "
        "had said, many times, and the agent was let go on from there.</p>\n"
        f"<figure>{bars(rows, line=needed)}<figcaption>The dot: the share of tries that went well. The bar: where the "
        f"true share may lie. A change counts where its whole bar is right of the line at {needed:.0%}.</figcaption>"
        f"</figure>\n<details><summary>The same as numbers</summary>{numbers}</details>"
    )


def letter(number: int) -> str:
    """A, B ... Z, A1, B1 ..."""
    return chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")


def _changes(tested: Mapping[str, Any]) -> str:
    """What a candidate does, in a line."""
    several = len(tested["changes"]) > 1
    words = []
    for change in tested["changes"]:
        try:
            found = json.loads(change["action"])
        except ValueError:  # it is withheld
            found = {"text": change["action"]}
        line = " ".join(said(found).split())
        line = line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"
        words.append(f"step {change['step']}: {line}" if several else line)
    return "; ".join(words)


def _share(seen: Mapping[str, Any]) -> float:
    defined = seen["n"] - seen.get("undefined", 0)
    return seen["successes"] / defined if defined else 0.0


def _sure(answer: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"If none of what was tried were good enough, one would pass all the same in at most {answer['delta']:.0%} of "
        "such studies. The bars allow for how many were tried, and for looking again after every few tries."
    )
    yield f"Good enough means: it fails in less than {answer['target']:.0%} of all tries, shown by the whole bar."
    if answer.get("undefined"):
        yield (
            f"{answer['undefined']} tries came to no verdict. The bars hold whether those would have failed or gone "
            "well."
        )


def _left_open(answer: Mapping[str, Any]) -> Iterator[str]:
    yield from ended_early(answer)
    states = [each["state"] for each in answer["tested"]]
    for state, what in (
        ("open", "not decided: the tries so far allow both"),
        ("outdone", "not tried to the end, since one that changes less was good enough"),
    ):
        if found := [letter(number) for number, each in enumerate(states) if each == state]:
            yield f"{', '.join(found)}: {what}."
    steps = sorted({change["step"] for each in answer["tested"] for change in each["changes"]})
    if steps:
        yield f"{steps_named(steps)} alone {'was' if len(steps) == 1 else 'were'} changed; no other step was."
    if answer.get("fix") is not None:
        yield "The change was written in the model's place. How to make the model say it by itself was not looked into."


def _further(answer: Mapping[str, Any], around: Around) -> str:
    step, run = answer.get("step"), answer["run"]
    return (
        f"<h2>Go on</h2>\n<p>{see(run, None, step, around.panel)}</p>"
        + (
            f"<p>Try the changed step against the agent as it was, on as many forks as you like: "
            f"{typed(f'worldline ab {run[-4:]} --at step:{step} --arm as-is --arm action=...')}</p>"
            if answer.get("fix") is not None
            else ""
        )
        + f'<p class="over">study {text(answer["study"])}</p>'
    )
