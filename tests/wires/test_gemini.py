"""An agent on Gemini's own API: its tools are seen, so what ran outside is never run again without a word."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import worldline as wl
from tests.cli.terminal import environment, worldline
from worldline.engine.eligibility import reasons_against
from worldline.errors import UsageError
from worldline.model.dialects.reading import DIALECTS
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall

STEPS = 3


class Payer:
    """An agent that pays what its model says: `paid` is the world outside. Its calls have ids on the wire, or none."""

    def __init__(self, provider: Provider, store: Path, *, streams: bool = False, wrapped: bool = False) -> None:
        self.provider, self.store, self.streams, self.wrapped = provider, store, streams, wrapped
        self.paid: list[int] = []
        self.keeps_ids = True

    def __call__(self) -> None:
        pay: Callable[[int], str] = self.pay
        if self.wrapped:
            pay = wl.tool(effect="side_effecting", name="pay")(self.pay)
        with wl.record(self.store) as run, httpx.Client(headers={"x-goog-api-key": "none"}) as client:
            contents: list[Any] = [{"role": "user", "parts": [{"text": "pay what is due"}]}]
            while calls := self._asked(client, run.proxy["gemini"], contents):
                for call in calls:
                    response = {"name": call["name"], "response": {"result": pay(call["args"]["cents"])}}
                    if "id" in call:
                        response["id"] = call["id"]
                    contents.append({"role": "user", "parts": [{"functionResponse": response}]})

    def _asked(self, client: httpx.Client, base: str, contents: list[Any]) -> list[Any]:
        """Ask the model, take its turn into the history; the calls in it."""
        way = "streamGenerateContent?alt=sse" if self.streams else "generateContent"
        tools = [{"functionDeclarations": [{"name": "pay", "description": "pays"}]}]
        answer = client.post(
            f"{base}/v1beta/models/gemini-2.5-flash:{way}", json={"contents": contents, "tools": tools}
        )
        lines = answer.text.splitlines()
        events = [json.loads(line[5:]) for line in lines if line.startswith("data:")] or [answer.json()]
        parts = [part for event in events for part in event["candidates"][0]["content"]["parts"]]
        contents.append({"role": "model", "parts": parts})
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        if not self.keeps_ids:  # as some frameworks do: each call has an id of the client's own
            for call in calls:
                call["id"] = f"own-{len(contents)}"
        return calls

    def pay(self, cents: int) -> str:
        self.paid.append(cents)
        return f"paid {cents}"


def cashier(ids: bool) -> Callable[[Ask], Reply]:
    def says(ask: Ask) -> Reply:
        turn = sum(content["role"] == "model" for content in ask.messages)
        if turn == STEPS - 1:
            return Say("All is paid.", usage=(30, 4))
        return Say("I pay.", [ToolCall("pay", {"cents": 5 + turn}, f"call_{turn}" if ids else None)], usage=(20, 6))

    return says


@pytest.fixture(params=[False, True], ids=["no ids", "ids"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with Provider(cashier(request.param)) as provider:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", provider.gemini_url)
        yield provider


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_tool_that_ran_outside_is_run_again_only_where_that_is_said(
    provider: Provider, tmp_path: Path, streams: bool
) -> None:
    agent = Payer(provider, tmp_path, streams=streams)
    agent()
    run = wl.open("latest", tmp_path)
    assert agent.paid == [5, 6] and run.verify().ok
    told = [(step.model, step.input_tokens, step.output_tokens, step.text, step.finish) for step in run.steps]
    asked = ("gemini-2.5-flash", 20, 6, "I pay.", ["STOP"])
    assert told == [asked, asked, ("gemini-2.5-flash", 30, 4, "All is paid.", ["STOP"])]
    calls = [(call.name, call.arguments, call.result, call.ran) for step in run.steps for call in step.calls]
    assert calls == [("pay", '{"cents":5}', "paid 5", "outside"), ("pay", '{"cents":6}', "paid 6", "outside")]

    refused = run.replay(agent)
    assert refused.verdict == "ineligible" and "pay x2" in refused.reasons[0]
    assert run.replay(agent, tools="run").equivalent and agent.paid == [5, 6] * 2
    with pytest.raises(wl.errors.Ineligible, match="pay x2"):
        run.fork(agent, at="step:1")
    assert agent.paid == [5, 6] * 2


def test_a_call_with_an_id_that_its_client_made_up_is_seen_too(provider: Provider, tmp_path: Path) -> None:
    agent = Payer(provider, tmp_path)
    agent.keeps_ids = False
    agent()
    run = wl.open("latest", tmp_path)
    assert "pay x2" in run.replay(agent).reasons[0]
    assert [call.result for step in run.steps for call in step.calls] == ["paid 5", "paid 6"]


def test_a_wrapped_tool_is_served_and_a_fork_changes_what_comes_behind_it(provider: Provider, tmp_path: Path) -> None:
    agent = Payer(provider, tmp_path, streams=True, wrapped=True)
    agent()
    run, asked = wl.open("latest", tmp_path), len(provider.requests)
    assert run.replay(agent).equivalent and agent.paid == [5, 6] and len(provider.requests) == asked

    plan = {"set": {"temperature": 0.5, "max_tokens": 9}, "prompt": "Be brief."}
    branch = run.fork(agent, at="step:2", plan=plan)
    assert agent.paid == [5, 6], "what came before is served"
    (request,) = provider.requests[asked:]
    assert request.json["generationConfig"] == {"temperature": 0.5, "maxOutputTokens": 9}
    assert request.json["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert wl.open(branch.branches[0].run, tmp_path).replay(agent).equivalent and agent.paid == [5, 6]
    with pytest.raises(UsageError, match="the URL of a Gemini request names its model"):
        run.fork(agent, at="step:2", plan={"set": {"model": "gemini-2.5-pro"}})


def test_a_record_from_before_gemini_was_read_is_refused_for_what_nobody_saw(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Payer(provider, tmp_path)
    with monkeypatch.context() as before:
        before.delitem(DIALECTS, "gemini.generate")
        agent()
    recording = wl.open("latest", tmp_path).recording
    assert recording.manifest is not None and recording.manifest.coverage["tools"]["outside"] == {}
    (reason,) = reasons_against(Recording(recording.run_directory))
    assert "gemini.generate x3" in reason and "--tools run" in reason
    assert reasons_against(Recording(recording.run_directory), tools="run") == []


def test_the_command_line_refuses_and_shows_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(AGENT, encoding="utf-8")
    with Provider(cashier(ids=False)) as provider:
        env = environment(GOOGLE_GEMINI_BASE_URL=provider.gemini_url)
        made = worldline("record", "--", "python", "agent.py", env=env)
    assert made.code == 0 and "pay x2" in made.err and Path("paid").read_text() == "56"
    shown = worldline("show", "latest", env=env).out
    assert "gemini-2.5-flash" in shown and "pay(cents=5)" in shown and "(answer)" not in shown.splitlines()[0]
    refused = worldline("replay", "latest", "--", "python", "agent.py", env=env)
    assert refused.code == 3 and "pay x2" in refused.err + refused.out and Path("paid").read_text() == "56"


AGENT = """
import json, os, urllib.request
base = os.environ["GOOGLE_GEMINI_BASE_URL"]
contents = [{"role": "user", "parts": [{"text": "pay"}]}]
while True:
    request = urllib.request.Request(
        base + "/v1beta/models/gemini-2.5-flash:generateContent",
        json.dumps({"contents": contents}).encode(),
        {"Content-Type": "application/json", "x-goog-api-key": "none"},
    )
    said = json.load(urllib.request.urlopen(request))["candidates"][0]["content"]
    contents.append(said)
    calls = [part["functionCall"] for part in said["parts"] if "functionCall" in part]
    if not calls:
        break
    for call in calls:
        with open("paid", "a") as paid:
            paid.write(str(call["args"]["cents"]))
        contents.append({"role": "user", "parts": [{"functionResponse": {"name": "pay", "response": {"ok": True}}}]})
"""
