"""The bridge to LangChain with the real framework: it hears, records nothing twice, and says what it only heard."""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.bridges.joining import joined
from tests.conftest import require
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall


@pytest.fixture(autouse=True)
def chains(quick: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The agents: their framework is imported where its tests run, and in no other process."""
    require("langchain", importlib.util.find_spec("langchain_core"), "the extra is not installed")
    monkeypatch.chdir(quick)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    made = importlib.import_module("tests.bridges.chains")
    made.RAN.clear()
    return made


def script(ask: Ask) -> Reply:
    """Does what the user's words say: `stock`, `mail`, `research`; then answers."""
    if ask.tool_results:
        return Say(f"answer: {ask.tool_results[-1][1]}")
    if ask.last_user == "research":
        return Say("", [ToolCall("research", {"question": "stock"})])
    if ask.last_user.startswith("mail"):
        return Say("", [ToolCall("mail", {"to": ask.last_user.partition(" ")[2]})])
    return Say("", [ToolCall("stock", {"item": "lamp"})])


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(script) as provider:
        yield provider


@pytest.fixture
def client(provider: Provider) -> Iterator[Any]:
    from openai import OpenAI

    with OpenAI(base_url=provider.openai_url, api_key="none") as plain:
        yield plain


def heard(run: wl.Run) -> list[tuple[str, str, str, Any]]:
    """(lane, phase, name, crossed) of every mark."""
    marks = [event for event in run.events() if event.name == "marker/run"]
    return [(m.lane, m.data["phase"], m.data["name"], m.data.get("crossed")) for m in marks]


def contents(run: wl.Run) -> list[Any]:
    return [(e.src, e.data["name"], e.data["value"]) for e in run.events() if e.src in ("model_run", "tool_run")]


@pytest.mark.parametrize("by", ["wrapped", "proxy", "joined"])
def test_what_crosses_is_recorded_once_and_heard_beside_it(
    chains: Any, provider: Provider, client: Any, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_url)
    said: list[str] = []

    def agent() -> None:
        with wl.record("runs") as run:
            own = wl.wrap(client) if by == "wrapped" else client.with_options(base_url=run.proxy.openai)
            with joined(run) if by == "joined" else nullcontext():
                said.append(chains.run(chains.agent_of(chains.Chat(client=own), [chains.stock]), "stock"))

    agent()
    run = wl.open("latest", "runs")
    assert heard(run) == [
        ("main", "begin", "Chat", None),
        ("main", "end", "Chat", True),
        ("main", "begin", "stock", None),
        ("main", "end", "stock", True),
        ("main", "begin", "Chat", None),
        ("main", "end", "Chat", True),
    ]
    assert contents(run) == [], "what the door has is not said again"
    coverage = run.recording.manifest.coverage if run.recording.manifest else {}
    assert (coverage["decision"]["recorded"], coverage["tools"]["recorded"]) == (2, {"stock": 1})
    asked = len(provider.requests)
    chains.RAN.clear()
    assert run.replay(agent).equivalent and (len(provider.requests), chains.RAN) == (asked, [])
    assert said == ["answer: lamp: 2"] * 2
    (branch,) = run.fork(agent, at="step:1", plan={"set": {"model": "other"}}).branches
    assert (branch.prefix, branch.live, chains.RAN) == (2, 1, [])
    assert provider.requests[-1].body.startswith(b'{"model":"other"')
    assert contents(wl.open(branch.path)) == []


def test_a_tool_that_was_only_heard_is_observed_and_a_replay_is_refused(chains: Any, client: Any) -> None:
    def agent() -> None:
        with wl.record("runs"):
            for who in ("bob", "nobody"):
                chains.run(chains.agent_of(chains.Chat(client=wl.wrap(client)), [chains.mail]), f"mail {who}")

    agent()
    run = wl.open("latest", "runs")
    assert [mark for mark in heard(run) if mark[2] == "mail"] == [
        ("main", "begin", "mail", None),
        ("main", "end", "mail", False),
        ("main", "begin", "mail", None),
        ("main", "error", "mail", False),
    ]
    (bob, nobody) = contents(run)
    assert bob[:2] == ("tool_run", "mail") and bob[2]["given"] == {"to": "bob"}
    assert bob[2]["result"]["data"]["content"] == "mailed bob"
    assert (nobody[2]["error"]["type"], nobody[2]["error"]["message"]) == ("ValueError", "no address")
    report = run.replay(agent)
    assert report.verdict == "ineligible" and "mail x2" in report.reasons[0]
    assert chains.RAN == ["mail bob", "mail nobody"], "the replay has run no tool"
    assert run.replay(agent, tools="run").equivalent and len(chains.RAN) == 4, "unless it is told to"


def test_a_model_that_was_only_heard_is_observed_and_cannot_be_served(chains: Any) -> None:
    from langchain_core.messages import AIMessage

    def agent() -> None:
        with wl.record("runs"):
            model = chains.GenericFakeChatModel(messages=iter([AIMessage("one"), AIMessage("two")]))
            assert chains.run(chains.agent_of(model, []), "hello") == "one"
            wl.uuid()

    agent()
    run = wl.open("latest", "runs")
    ((src, name, value),) = contents(run)
    assert (src, name, value["answer"][0][0]["data"]["content"]) == ("model_run", "GenericFakeChatModel", "one")
    assert value["given"][0][0]["data"]["content"] == "hello"
    manifest = run.recording.manifest
    assert manifest is not None and manifest.coverage["decision"] == {
        "recorded": 0,
        "capture": "full",
        "outside": {"GenericFakeChatModel": 1},
    }
    assert manifest.capabilities == ["L0"] and run.verify().ok
    report = run.replay(agent)
    assert report.verdict == "ineligible"
    assert report.reasons[0].startswith("models were asked outside the recording (GenericFakeChatModel x1)")


async def test_runs_at_once_are_each_told_apart(chains: Any) -> None:
    from openai import OpenAI

    asked = threading.Event()

    def answer(ask: Ask) -> Reply:
        if ask.n == 1:
            asked.set()
        return Say("heard")

    with Provider(answer) as provider, OpenAI(base_url=provider.openai_url, api_key="none") as plain:
        async with wl.record("runs"):
            heard_of = [chains.Chat(client=wl.wrap(plain)) for _ in range(2)]
            silent = [chains.Silent(until=asked) for _ in range(2)]  # they end when both of the others have crossed
            await chains.arun([*silent, *heard_of], "hello")
    ends = [crossed for _, phase, _, crossed in heard(wl.open("latest", "runs")) if phase == "end"]
    assert (len(ends), sum(ends)) == (4, 2), "two were heard on the wire, and two were not"


def test_an_agent_within_a_tool_has_a_lane_of_its_own(chains: Any, client: Any) -> None:
    with wl.record("runs"):
        model = chains.Chat(client=wl.wrap(client))
        chain = chains.agent_of(model, [chains.research_of(model)])
        assert chains.run(chain, "research") == "answer: answer: lamp: 2"
        assert chains.lane() == "main", "the lane is the program's own again"
    run = wl.open("latest", "runs")
    assert [(lane, phase, name) for lane, phase, name, _ in heard(run)] == [
        ("main", "begin", "Chat"),
        ("main", "end", "Chat"),
        ("main", "begin", "research"),
        ("main/research", "begin", "Chat"),
        ("main/research", "end", "Chat"),
        ("main/research", "begin", "stock"),
        ("main/research", "end", "stock"),
        ("main/research", "begin", "Chat"),
        ("main/research", "end", "Chat"),
        ("main", "end", "research"),
        ("main", "begin", "Chat"),
        ("main", "end", "Chat"),
    ]
    lanes = [event.lane for event in run.events() if event.name == "decision/request"]
    assert lanes == ["main", "main/research", "main/research", "main"]
    parents = [e.data["parent"] for e in run.events() if e.name == "marker/run" and e.data["phase"] == "begin"]
    assert parents == [None, None, 1, 1, 1, None]


def test_without_a_run_nothing_happens(chains: Any, client: Any) -> None:
    assert chains.run(chains.agent_of(chains.Chat(client=client), [chains.mail]), "mail bob") == "answer: mailed bob"
    assert not Path("runs").exists()
