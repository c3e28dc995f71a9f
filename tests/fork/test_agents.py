"""Agents as people write them: the OpenAI and Anthropic SDKs, streams, parallel calls, children of the run."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.fork.inside import opened, recorded
from worldline.engine import matcher
from worldline.errors import Ineligible
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall


@pytest.fixture(autouse=True)
def in_memory(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(quick)


def weather_man(ask: Ask) -> Reply:
    said = sum(message.get("role") == "assistant" for message in ask.messages if isinstance(message, dict))
    if said < 2:
        return Say(f"Looking, {ask.model}.", [ToolCall("weather", {"city": ["Oslo", "Rome"][said]}, f"call_{said}")])
    return Say(f"It is {ask.tool_results[0][1]}.")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(weather_man) as running:
        yield running


@wl.tool(effect="pure")
def weather(city: str) -> str:
    return f"fine in {city}"


def openai_agent(provider: Provider, stream: bool) -> Any:
    from openai import OpenAI

    def agent() -> None:
        with wl.record("runs") as run:
            client = run.wrap(OpenAI(base_url=provider.openai_url, api_key="not-a-real-key", max_retries=0))
            messages: list[Any] = [{"role": "user", "content": "weather?"}]
            for _ in range(3):
                if stream:
                    with client.chat.completions.stream(model="gpt-5", messages=messages) as answer:
                        message = answer.get_final_completion().choices[0].message
                else:
                    message = client.chat.completions.create(model="gpt-5", messages=messages).choices[0].message
                calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls or ()]
                messages.append(
                    {"role": "assistant", "content": message.content} | ({"tool_calls": calls} if calls else {})
                )
                for call in message.tool_calls or ():
                    result = weather(**json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    return agent


def claude_agent(provider: Provider, stream: bool) -> Any:
    from anthropic import Anthropic

    def agent() -> None:
        with wl.record("runs") as run:
            client = run.wrap(Anthropic(base_url=provider.anthropic_url, api_key="not-a-real-key", max_retries=0))
            messages: list[Any] = [{"role": "user", "content": "weather?"}]
            for _ in range(3):
                asked: Any = {"model": "claude", "max_tokens": 99, "messages": messages}
                if stream:
                    with client.messages.stream(**asked) as answer:
                        message = answer.get_final_message()
                else:
                    message = client.messages.create(**asked)
                messages.append(
                    {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in message.content]}
                )
                results = [
                    {"type": "tool_result", "tool_use_id": block.id, "content": weather(**block.input)}
                    for block in message.content
                    if block.type == "tool_use"
                ]
                if results:
                    messages.append({"role": "user", "content": results})

    return agent


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("sdk", [openai_agent, claude_agent])
def test_sdk_agents_are_forked_with_a_change_and_replayed(provider: Provider, sdk: Any, stream: bool) -> None:
    agent = sdk(provider, stream)
    run = recorded(agent)
    asked = len(provider.requests)
    plan = {"set": {"model": "other", "temperature": 0.5}, "edit": {"call_0": "snow in Oslo"}}
    (branch,) = run.fork(agent, at="step:1", plan=plan).branches
    assert (branch.prefix, branch.live, branch.mocked, branch.refused, branch.error) == (1, 3, 1, 0, None)
    bodies = [json.loads(request.body) for request in provider.requests[asked:]]
    assert [(body["model"], body["temperature"]) for body in bodies] == [("other", 0.5)] * 2
    assert all("snow in Oslo" in json.dumps(body) for body in bodies)
    made = opened(branch.path)
    assert made.replay(agent).equivalent and made.replay().equivalent and made.verify().ok
    assert [step.text for step in made.steps] == ["Looking, gpt-5.", "Looking, other.", "It is fine in Rome."] or [
        step.text for step in made.steps
    ] == ["Looking, claude.", "Looking, other.", "It is fine in Rome."]
    assert len(provider.requests) == asked + 2, "a replay asks nobody"


def test_a_child_process_that_joins_is_served_and_forked(provider: Provider) -> None:
    """The agent's own child crosses by the door: its request is changed on its way, its tool is gated."""
    program = Path("child.py")
    program.write_text(
        "import worldline as wl\n"
        "from openai import OpenAI\n"
        "@wl.tool\n"
        "def pay(cents): return 'paid'\n"
        "run = wl.current()\n"
        f"client = run.wrap(OpenAI(base_url={provider.openai_url!r}, api_key='none'))\n"
        "def say(text):\n"
        "    messages = [{'role': 'user', 'content': text}]\n"
        "    return client.chat.completions.create(model='gpt-5', messages=messages).choices[0].message.content\n"
        "said = [say('one'), say('two')]\n"
        "try: pay(3)\n"
        "except wl.WorldlineError as error: said.append(type(error).__name__)\n"
        "said.append(run.rng().random())\n"
        "open('said', 'w').write(repr(said))\n"
    )

    def agent() -> None:
        with wl.record("runs") as run:
            subprocess.run([sys.executable, str(program)], check=True, env=run.environment())

    run = recorded(agent)
    before = Path("said").read_text()
    rules = Path("rules.toml")
    rules.write_text('[[policy.rule]]\ntool = "pay"\ndecision = "deny"\n')
    (branch,) = run.fork(agent, at="step:1", plan={"set": {"model": "other"}}, policy=rules).branches
    said = Path("said").read_text()
    assert (branch.prefix, branch.live, branch.refused, branch.error) == (1, 1, 1, None)
    assert "Looking, gpt-5." in said and "Looking, other." in said and "EffectRefused" in said
    assert before.rpartition(",")[2] != said.rpartition(",")[2], "it draws anew behind the fork"
    assert opened(branch.path).replay(agent).equivalent and Path("said").read_text() == said


class Racers:
    """Three looks at once that end in an order of their own, twice, then one more; asked for in the order `asks`."""

    def __init__(self, asks: list[int]) -> None:
        self.asks = asks
        self.came: list[list[str]] = []

    async def __call__(self) -> None:
        self.came = []
        async with wl.record("runs") as run:
            for turn in range(3):
                with run.step():
                    gates = [asyncio.Event() for _ in range(3)]
                    gates[2].set()

                    @wl.tool(name="race", effect="pure")
                    async def race(turn: int, number: int) -> str:
                        await self.gates[number].wait()
                        return f"{turn}.{number}"

                    self.gates = gates
                    tasks = [asyncio.ensure_future(race(turn, number)) for number in self.asks]
                    self.came.append([])
                    # The next is let go once this one has ended: out of its body, it could be on record before it.
                    for first in asyncio.as_completed(tasks):
                        self.came[-1].append(await first)
                        if number := int(self.came[-1][-1].partition(".")[2]):
                            gates[number - 1].set()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "GRACE_SECONDS", 0.2)


async def test_a_parallel_prefix_is_served_in_any_order_that_the_record_allows() -> None:
    agent = Racers([0, 1, 2])
    await agent()
    run = wl.open("latest", "runs")
    assert agent.came == [[f"{turn}.2", f"{turn}.1", f"{turn}.0"] for turn in range(3)]
    agent.asks = [2, 0, 1]
    (branch,) = run.fork(agent, at="step:2").branches
    assert (branch.prefix, branch.live, branch.outcome) == (6, 3, "succeeded")
    assert agent.came == [[f"{turn}.2", f"{turn}.1", f"{turn}.0"] for turn in range(3)], "races end as they ended"
    assert opened(branch.path).replay(agent).equivalent


async def test_a_parallel_call_that_the_record_does_not_have_is_not_reproducible(impatient: None) -> None:
    agent = Racers([0, 1, 2])
    await agent()
    run = wl.open("latest", "runs")
    runs = set(Path("runs").iterdir())
    agent.asks = [2, 1]
    (branch,) = run.fork(agent, at="step:2").branches
    assert branch.outcome == "not_reproducible" and branch.live == 0 and branch.divergence is not None
    assert set(Path("runs").iterdir()) == runs


def test_a_conversation_that_the_provider_holds_is_refused(provider: Provider) -> None:
    from openai import OpenAI

    def agent() -> None:
        with wl.record("runs") as run:
            client = run.wrap(OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0))
            for text in ("one", "two"):
                client.responses.create(model="gpt-5", input=text, extra_body={"conversation": "conv_1"})

    run = recorded(agent)
    with pytest.raises(Ineligible, match="conversation that the provider holds"):
        run.fork(agent, at="step:1")
