"""The bridge to pydantic-ai with the real framework: served, gated, and everything recorded exactly once."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.bridges.joining import joined
from tests.conftest import require
from worldline.errors import UsageError
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall


@pytest.fixture(autouse=True)
def shops(quick: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The agents: their framework is imported where its tests run, and in no other process."""
    require("pydantic-ai", importlib.util.find_spec("pydantic_ai"), "the extra is not installed")
    monkeypatch.chdir(quick)
    agents = importlib.import_module("tests.bridges.pydantic_shop")
    agents.RAN.clear()
    return agents


def clerk(ask: Ask) -> Reply:
    """Looks twice at once, mails, answers; another model mails somebody else."""
    said = sum(message["role"] == "assistant" for message in ask.messages)
    if said == 0:
        return Say("I look.", [ToolCall("stock", {"item": "lamp"}), ToolCall("price", {"item": "lamp"})])
    if said == 1:
        return Say("I mail.", [ToolCall("send_mail", {"to": "bob" if ask.model == "gpt-5" else "eve"})])
    return Say(f"{ask.model}: {ask.tool_results[-1][1]}")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(clerk) as provider:
        yield provider


def counted(run: wl.Run) -> Counter[str]:
    """How many of each crossing the record has, by the name of what was asked or run."""
    return Counter(
        str(event.data["name"]) for event in run.events() if event.name in ("decision/request", "action/tool_call")
    )


ONCE = Counter({"openai.chat": 3, "stock": 1, "price": 1, "send_mail": 1})


@pytest.mark.parametrize("heard_by", ["twin", "proxy"])
def test_recorded_once_served_and_forked(
    shops: Any, provider: Provider, heard_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_url)
    shop = shops.Shop(provider.openai_url if heard_by == "twin" else lambda run: run.proxy.openai)
    shop()
    told, usage, did = shop.result.output, shop.result.usage, list(shops.RAN)
    assert told == "gpt-5: ann mailed bob" and sorted(did) == ["mail bob", "price lamp", "stock lamp"]
    run = wl.open("latest", "runs")
    assert counted(run) == ONCE, "the tool under @wl.tool, and what the proxy or the twin heard, stand there once"
    effects = {e.data["name"]: e.keys["effect"] for e in run.events() if e.name == "action/tool_call"}
    assert effects == {"stock": "pure", "price": "pure", "send_mail": "side_effecting"}
    assert [[call.ran for call in step.calls] for step in run.steps] == [["recorded"] * 2, ["recorded"], []]

    asked = len(provider.requests)
    shops.RAN.clear()
    report = run.replay(shop)
    assert report.equivalent, report.first_divergence
    assert (len(provider.requests), shops.RAN, shop.result.output, shop.result.usage) == (asked, [], told, usage)

    (branch,) = run.fork(shop, at="step:1", plan={"set": {"model": "other"}}).branches
    assert (branch.prefix, branch.live, branch.refused, branch.outcome) == (3, 2, 1, "succeeded")
    assert shops.RAN == [], "no rule lets a mail to somebody else go out"
    assert shop.result.output.startswith("other: ") and "send_mail was not run" in shop.result.output
    assert wl.open(branch.path).replay(shop).equivalent


def test_a_tool_that_says_its_key_fires_once_over_all_branches(shops: Any, provider: Provider) -> None:
    from worldline.seams.bridges.tools import ToolEffect

    shop = shops.Shop(provider.openai_url, send_mail=ToolEffect(idempotency_key=lambda to, **_: f"mail:{to}"))
    shop()
    shops.RAN.clear()
    Path("rules.toml").write_text('[[policy.rule]]\ntool = "send_mail"\ndecision = "allow"\n')
    run = wl.open("latest", "runs")
    plan = {"set": {"model": "other"}}
    counts = [
        (branch.live, branch.mocked)
        for each in (plan, plan, {})
        for branch in run.fork(shop, at="step:1", plan=each, policy="rules.toml").branches
    ]
    assert counts == [(3, 0), (2, 1), (2, 1)]
    assert shops.RAN == ["mail eve"], "the first branch mails her; the second is given that result, the third bob's"
    with pytest.raises(UsageError, match="an effect is one of"):
        ToolEffect(effect="harmless")
    with pytest.raises(UsageError, match="a capability is one of"):
        ToolEffect(capability="everything")


@pytest.mark.parametrize("remote", [False, True])
def test_a_model_without_a_wire_is_recorded_as_messages_and_served(shops: Any, remote: bool) -> None:
    agent = shops.saying("1 message")
    agent.within = joined if remote else nullcontext
    agent()
    run = wl.open("latest", "runs")
    assert counted(run) == {"pydantic_ai": 1} and run.replay().equivalent, "its context can be rebuilt"
    (step,) = run.steps
    assert (step.text, step.model, step.output_tokens) == ("1 message", "function:answered:", 2)
    assert run.replay(agent).equivalent and agent.asked == 1 and agent.result.output == "1 message"
    (branch,) = run.fork(agent, at="step:0").branches
    assert (branch.live, agent.asked) == (1, 2)
    with pytest.raises(UsageError, match="requests of pydantic_ai cannot be changed on their way"):
        run.fork(agent, at="step:0", plan={"set": {"model": "other"}})


def test_its_failure_and_its_stream_are_served_too(shops: Any) -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    async def words(messages: list[Any], info: Any) -> Any:
        for word in ("two ", "words"):
            shops.RAN.append(word)
            yield word

    def broken(messages: list[Any]) -> Any:
        raise ModelHTTPError(529, "fn", {"error": "overloaded"})

    agent = shops.Function(broken, words)
    saw: list[Any] = []

    async def program() -> None:
        saw.clear()
        async with wl.record("runs"):
            async with agent.agent().run_stream("hello") as stream:
                saw.extend([piece async for piece in stream.stream_text(delta=True, debounce_by=None)])
            try:
                await agent.agent().run("hello")
            except ModelHTTPError as error:
                saw.append((str(error), error.status_code, error.body))

    asyncio.run(program())
    recorded = list(saw)
    assert recorded[:2] == ["two ", "words"] and recorded[-1][1] == 529
    shops.RAN.clear()
    run = wl.open("latest", "runs")
    assert counted(run) == {"pydantic_ai": 2}
    assert run.replay(program).equivalent and shops.RAN == [] and agent.asked == 1
    assert "".join(saw[:-1]) == "two words" and saw[-1] == recorded[-1]


def test_the_outermost_seam_owns_a_model_call(shops: Any, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that wraps a client of its own is heard twice and recorded once."""
    from openai import OpenAI
    from pydantic_ai.messages import ModelResponse, TextPart

    client = wl.wrap(plain := OpenAI(base_url=provider.openai_url, api_key="none"))

    def answered(messages: list[Any]) -> Any:
        said = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "look"}])
        return ModelResponse(parts=[TextPart(str(said.choices[0].message.content))])

    agent = shops.Function(answered)
    agent()
    assert counted(wl.open("latest", "runs")) == {"pydantic_ai": 1}
    with monkeypatch.context() as patched:
        patched.setattr("worldline.seams.wire.transport.is_model_taken", lambda: False)
        agent()
    assert counted(wl.open("latest", "runs")) == {"pydantic_ai": 1, "openai.chat": 1}, "this is what the rule prevents"
    plain.close()


def test_several_models_of_one_are_each_heard_once(shops: Any, provider: Provider) -> None:
    several = shops.Several(provider.openai_url)
    several()
    run = wl.open("latest", "runs")
    assert counted(run) == ONCE + Counter({"pydantic_ai": 3})
    assert run.replay(several).equivalent


def test_what_a_tool_returns_and_raises_comes_back_as_it_was(shops: Any) -> None:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    turns: list[tuple[str, dict[str, Any]]] = [
        ("look", {"at": {"name": "a", "size": 1}}),
        ("look", {"at": {"name": "retry", "size": 1}}),
        ("look", {"at": {"name": "fail", "size": 1}}),
        ("picture", {}),
        ("both", {}),
        ("fields", {}),
    ]

    def answered(messages: list[Any]) -> Any:
        said = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(parts=[ToolCallPart(*turns[said]) if said < len(turns) else TextPart("done")])

    agent = shops.Looking(answered)
    agent()
    assert shops.RAN == ["a", "retry", "fail", "picture", "both", "fields"]
    usage, told = agent.result.usage, shops.contents(agent.result)
    shops.RAN.clear()
    report = wl.open("latest", "runs").replay(agent)
    assert report.equivalent, (report.first_divergence, report.notes)
    assert (shops.RAN, agent.result.usage, shops.contents(agent.result)) == ([], usage, told)


def test_an_agent_within_a_tool_has_a_lane_and_its_calls_are_its_own(shops: Any) -> None:
    inner = shops.saying("found")
    agent = shops.Asking(inner)
    agent()
    run = wl.open("latest", "runs")
    assert [
        (e.lane, e.data["name"]) for e in run.events() if "name" in e.data and e.src in ("request", "tool_call")
    ] == [
        ("main", "pydantic_ai"),
        ("main", "research"),
        ("main/fn", "pydantic_ai"),
        ("main", "pydantic_ai"),
    ]
    shops.RAN.clear()
    assert run.replay(agent).equivalent and shops.RAN == [] and inner.asked == 1


def test_without_a_run_it_is_as_if_it_was_not_there(shops: Any, provider: Provider) -> None:
    shop = shops.Shop(provider.openai_url)
    assert asyncio.run(shop.main(None)).output == "gpt-5: ann mailed bob"
    assert not Path("runs").exists() and len(shops.RAN) == 3
