"""Interventions on single steps, end to end: what is forced, mocked or removed is what a real agent hears of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import worldline as wl
from tests.attribution.agents.speakers import DIALECTS, pay
from tests.cli.terminal import environment
from worldline.analysis.attribution.asking import Do, Draw, Outcome
from worldline.errors import UsageError
from worldline.store.studies.folder import studies
from worldline.study.opening import Options, opened_study, prepare
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall

ALL, HALF = 9900, 4900
FORCED = {"text": "I pay half back.", "calls": [{"name": "pay", "arguments": {"cents": HALF}}]}


def cashier(ask: Ask) -> Reply:
    """Pays all; only half would have gone well."""
    if not ask.tool_results and len(ask.messages) == 1:
        return Say("I pay all back.", [ToolCall("pay", {"cents": ALL})])
    paid = [result for _, result in ask.tool_results]
    return Say("It went well." if paid == [str(HALF)] else f"It went wrong: {paid}.")


@pytest.fixture
def provided(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with Provider(cashier) as provider:
        for name, value in environment(provider, ANTHROPIC_API_KEY="test-key-0123456789").items():
            monkeypatch.setenv(name, value)
        yield provider


def _recorded(agent: Any, store: Path) -> wl.Run:
    with wl.record(store, task="refund") as run:
        try:
            agent()
        except SystemExit:
            run.outcome("failed")
    assert run.path is not None
    return wl.open(run.path)


def _drawn(run: wl.Run, agent: Any, *draws: Draw) -> tuple[list[Outcome], Path]:
    opening = prepare(run, agent, "outcome", Options(executor="inline", keep=True), wl.Budget())
    with opened_study(opening, "attribute", {"method": "by hand"}) as study:
        return study.conduct.draw(list(draws)), study.folder


@pytest.mark.usefixtures("provided")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_sdk_hears_a_forced_action_as_its_providers_answer(dialect: str, tmp_path: Path) -> None:
    agent = DIALECTS[dialect]
    run = _recorded(agent, tmp_path / "runs")
    assert run.steps[0].calls[0].arguments == json.dumps({"cents": ALL}) or str(ALL) in run.steps[0].calls[0].arguments
    (forced, removed), folder = _drawn(
        run, agent, Draw(0, 0, "", (Do(0, "force", json.dumps(FORCED)),)), Draw(0, 0, "", (Do(0, "remove"),))
    )
    assert (forced.success, forced.why) == (True, None)
    step = wl.open(str(folder / str(forced.run))).steps[0]
    assert step.text == FORCED["text"]
    assert [(call.name, json.loads(call.arguments)) for call in step.calls] == [("pay", {"cents": HALF})]
    assert removed.success is False and removed.why is not None and "It went wrong: []" in removed.why
    bare = wl.open(str(folder / str(removed.run))).steps[0]
    assert (bare.text or "", list(bare.calls)) == ("", [])


def test_a_mocked_observation_leaves_the_action_as_it_was(provided: Provider, tmp_path: Path) -> None:
    agent = DIALECTS["openai.chat"]
    run = _recorded(agent, tmp_path / "runs")
    mocked = Do(0, "mock", json.dumps({"tool": "pay", "result": HALF}))
    other = Do(0, "mock", json.dumps({"tool": "another", "result": HALF}))
    asked = len(provided.requests)
    (well, as_it_was), folder = _drawn(run, agent, Draw(1, 0, "", (mocked,)), Draw(1, 0, "", (other,)))
    assert (well.success, as_it_was.success) == (True, False)
    branch = wl.open(str(folder / str(well.run)))
    assert str(ALL) in branch.steps[0].calls[0].arguments
    assert len(provided.requests) == asked + 2, "the action is held: in each branch the model is asked once, behind it"


@pytest.mark.usefixtures("provided")
def test_what_nobody_can_write_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    def gemini() -> None:
        run = wl.current()
        assert run is not None
        httpx.post(f"{run.proxy['gemini']}/v1beta/models/g:generateContent", json={"contents": []})
        with wl.step("by hand"):
            pay(wl.rng().randrange(9))
        raise SystemExit(1)

    run = _recorded(gemini, tmp_path / "runs")
    words: dict[str, Any] = {"candidates": lambda run, step: ["another"], "executor": "inline"}
    with pytest.raises(UsageError, match=r"step 0 asks gemini\.generate, whose answers cannot be written"):
        wl.repair(run, gemini, "outcome", at=0, **words)
    with pytest.raises(UsageError, match="step 1 asks no model"):
        wl.repair(run, gemini, "outcome", at=1, **words)
    with pytest.raises(UsageError, match=r"those of openai\.chat, openai\.responses, anthropic\.messages can"):
        wl.ab(run, gemini, "outcome", at=0, arms=["as-is", {"action": "another"}], executor="inline")
    assert studies(tmp_path / "runs") == []
