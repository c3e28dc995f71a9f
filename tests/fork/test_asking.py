"""Who is asked on a live branch: for what no rule lets pass by itself, and again for what was asked before the fork."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.fork.inside import opened, recorded
from worldline.engine.asking import Asks
from worldline.engine.recorder import Recorder
from worldline.policy.rules import Rule, Rules

PAID: list[int] = []


@pytest.fixture(autouse=True)
def in_memory(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(quick)
    PAID.clear()


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[dict[str, Any]]]:
    """Somebody who watches, and answers each request as soon as it is on record; what they were asked."""

    def begin(decision: str) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []
        asks: dict[int, Asks] = {}
        made, append = Asks.__init__, Recorder.append

        def opened(self: Asks, recorder: Recorder) -> None:
            asks[id(recorder)] = self
            made(self, recorder)

        def appended(self: Recorder, kind: str, src: str, keys: Any, data: Any, *more: Any, **named: Any) -> Any:
            row = append(self, kind, src, keys, data, *more, **named)
            if (kind, src) == ("permission", "requested"):
                asked.append(data["facts"].value())
                answer = threading.Thread(target=asks[id(self)].answer, args=(row.seq, decision), kwargs={"by": "ann"})
                answer.start()
            return row

        monkeypatch.setattr(Asks, "__init__", opened)
        monkeypatch.setattr(Recorder, "append", appended)
        return asked

    return begin


@wl.tool(capability="irreversible_external")
def pay(cents: int) -> str:
    PAID.append(cents)
    return "paid"


def payer(cents: int) -> Callable[[], None]:
    def agent() -> None:
        with wl.record("runs") as run, run.step():
            try:
                run.observe(pay(cents), src="note")
            except wl.WorldlineError as error:
                run.observe(f"{type(error).__name__}", src="note")

    return agent


ALLOW = Rules([Rule(id="all", decision="allow")], "shop")


def branched(run: wl.Run, cents: int, policy: Rules) -> tuple[Any, list[tuple[str, Any]]]:
    (branch,) = run.fork(payer(cents), at="step:0", policy=policy).branches
    events = opened(branch.path).events()
    return branch, [(e.src, e.data["facts"].get("by")) for e in events if e.kind == "permission"]


def test_what_cannot_be_taken_back_is_asked_for_whatever_rules_allow(answering: Any) -> None:
    run = recorded(payer(1))
    asked = answering("granted")
    branch, said = branched(run, 2, ALLOW)
    assert (branch.live, branch.refused, PAID) == (1, 0, [1, 2])
    assert said == [("requested", None), ("granted", "ann")]
    assert [(facts["tool"], facts["arguments"], facts["policy"], facts["rule"]) for facts in asked] == [
        ("pay", {"cents": 2}, "shop", "all")
    ]
    assert opened(branch.path).replay(payer(2)).equivalent and PAID == [1, 2]


def test_a_no_is_a_refusal_that_the_agent_sees(answering: Any) -> None:
    run = recorded(payer(1))
    answering("denied")
    branch, said = branched(run, 2, ALLOW)
    assert (branch.live, branch.refused, PAID) == (0, 1, [1])
    assert said == [("requested", None), ("denied", "ann"), ("denied", "policy")]
    assert [e.data["value"] for e in opened(branch.path).events() if e.name == "observation/note"] == ["EffectRefused"]


def test_where_nobody_answers_the_answer_is_no() -> None:
    run = recorded(payer(1))
    branch, said = branched(run, 2, Rules([Rule(decision="ask", timeout=0)]))
    assert (branch.refused, PAID, said[1]) == (1, [1], ("denied", "nobody"))


def test_an_approval_before_the_fork_is_served_and_one_behind_it_is_asked_again(answering: Any) -> None:
    def careful() -> None:
        with wl.record("runs") as run:
            for number in range(2):
                with run.step():
                    run.observe(run.ask("spend", timeout=60, number=number).by, src="note")

    asked = answering("granted")
    run = recorded(careful)
    assert [facts["number"] for facts in asked] == [0, 1]
    (branch,) = run.fork(careful, at="step:1").branches
    assert [facts["number"] for facts in asked] == [0, 1, 1], "the one behind the fork, and no other"
    assert branch.outcome == "succeeded" and opened(branch.path).replay(careful).equivalent
