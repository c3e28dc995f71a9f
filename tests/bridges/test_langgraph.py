"""The bridge to LangGraph with the real framework: its own conformance suite, a crash and what goes on after it."""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import json
import re
import signal
import subprocess
import sys
import uuid
from collections import deque
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.conftest import require
from worldline.engine.account import account
from worldline.engine.agent_state import give_back
from worldline.engine.content import Content
from worldline.errors import RecordingNotFound, UsageError, ValueRefused
from worldline.model.checkpoint import DUMPED, AgentHalf
from worldline.store.reconcile import reconcile


@pytest.fixture(autouse=True)
def graphs(quick: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The graphs: their framework is imported where its tests run, and in no other process."""
    require("langgraph", importlib.util.find_spec("langgraph"), "the extra is not installed")
    monkeypatch.chdir(quick)
    made = importlib.import_module("tests.bridges.graphs")
    made.RAN.clear()
    return made


def saver(graphs: Any, **options: Any) -> Any:
    return graphs.WorldlineSaver(types=[graphs.Note], **options)


def contents(state: Any) -> list[str]:
    return [message.content for message in state["messages"]]


async def test_it_passes_the_frameworks_own_suite(graphs: Any) -> None:
    report = await graphs.conformance()
    results = {name: result for name, result in report.results.items() if result.detected}
    assert set(results) == {"put", "put_writes", "get_tuple", "list", "delete_thread"}
    assert all(result.passed for result in results.values()), [result.failures for result in results.values()]
    assert sum(result.tests_passed for result in results.values()) >= 58
    rows = [event for event in wl.open("latest", "conformance").events() if event.src == "agent_state"]
    assert len(rows) > 100, "all of it stands in the recording"


def test_a_killed_graph_goes_on_from_its_recording_and_the_second_run_replays_alone(graphs: Any) -> None:
    command = [sys.executable, "-m", "tests.bridges.graphs", str(Path("runs").absolute())]
    ended = subprocess.run(command, check=False, cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL
    broken = next(Path("runs").glob("run_*"))
    reconcile(broken, account)
    before = [event.data["value"] for event in wl.open(broken).events() if event.src == "agent_state"]
    assert [(row["did"], row["format"]) for row in before if row["did"] == "checkpoint"] == [
        ("checkpoint", "langgraph/1")
    ] * 3
    said: list[Any] = []

    def agent() -> None:
        resumed = saver(graphs, resume=broken)
        with wl.record("runs"):
            said.append(graphs.graph(resumed, lambda: "mailed").invoke(None, graphs.CONFIG))

    agent()
    assert graphs.RAN == ["mail", "done"], "what the nodes before had written is not computed again"
    assert contents(said[0]) == ["hello", "mailed", "['cellar', 'shelf'] Note(text='mailed')"]
    run = wl.open("latest", "runs")
    graphs.RAN.clear()
    broken.rename("elsewhere")
    try:
        assert run.replay(agent).equivalent, "the state that it was given is served"
        assert contents(said[1]) == contents(said[0])
        with pytest.raises(RecordingNotFound):
            agent()
    finally:
        Path("elsewhere").rename(broken)

    def third() -> None:
        with wl.record("runs"):
            state = graphs.graph(saver(graphs, resume=run), lambda: "never").get_state(graphs.CONFIG)
            assert state.next == () and len(state.values["messages"]) == 3

    third()
    history = list(graphs.graph(saver(graphs, resume=wl.open("latest", "runs")), str).get_state_history(graphs.CONFIG))
    assert [len(state.values.get("messages", ())) for state in history] == [3, 2, 1, 1, 0], "through three runs"


def test_the_state_is_stored_once_and_read_by_any_json_reader(graphs: Any) -> None:
    def agent() -> None:
        with wl.record("runs"):
            graphs.graph(saver(graphs), lambda: "mailed").invoke({"messages": ["hello " * 50]}, graphs.CONFIG)

    agent()
    run = wl.open("latest", "runs")
    rows = [event.data["value"] for event in run.events() if event.src == "agent_state"]
    assert json.dumps(rows).count("hello " * 50) == 3, "as input, as what was written, and once as what is known"
    (note,) = [c for row in rows if row["did"] == "checkpoint" for c in row["channels"] if c[0] == "note" and c[2]]
    assert note[2] == {"@": "object", "type": "Note", "value": {"text": "mailed"}}


def test_interrupts_sends_and_branches_are_those_of_the_frameworks_own_saver(graphs: Any) -> None:
    def through(graph: Any) -> list[Any]:
        first = graph.invoke({"messages": []}, graphs.CONFIG)
        before = graph.get_state(graphs.CONFIG)
        graph.invoke(graphs.Command(resume=[1, 2]), graphs.CONFIG)
        earlier = graph.update_state(before.config, {"seen": ["edited"]})
        branch = graph.invoke(None, earlier)
        return [first["__interrupt__"][0].value, before.next, sorted(branch["seen"]), *told(graph)]

    def told(graph: Any) -> list[Any]:
        return [
            (sorted(state.values.get("seen", ())), state.next, [task.interrupts for task in state.tasks])
            for state in graph.get_state_history(graphs.CONFIG)
        ]

    own = through(graphs.asking(graphs.InMemorySaver()))
    with wl.record("runs"):
        graph = graphs.asking(saver(graphs))
        assert without_ids(through(graph)) == without_ids(own)
    resumed = saver(graphs, resume=wl.open("latest", "runs"))
    assert without_ids(told(graphs.asking(resumed))) == without_ids(own[3:]), "the history is the same behind a crash"
    half, again = Content.of(resumed.dump()), saver(graphs)
    give_back(again, AgentHalf(type=DUMPED, seq=0, schema=resumed.schema), half.value())
    assert without_ids(told(graphs.asking(again))) == without_ids(own[3:]), "and as the agent's half of a checkpoint"


def without_ids(told: list[Any]) -> str:
    return re.sub(r"id='[0-9a-f]+'", "", repr(told))


def test_every_value_comes_back_as_it_was_and_nothing_else_comes_in(graphs: Any) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage

    from worldline.seams.bridges.graph_values import Neutral

    utc = datetime.UTC
    held: Any = {
        "plain": [1, 2**70, 1.5, float("inf"), True, None, "text", b"bytes", ("a", ["b"])],
        "@": "a key of the state's own",
        "keys": {1: "one", ("a", 2): "pair", None: "none"},
        "messages": [
            HumanMessage("hi", id="1", additional_kwargs={"x": [1]}),
            AIMessage("", tool_calls=[{"name": "t", "args": {"n": 1}, "id": "c"}], usage_metadata=None),
            ToolMessage("r", tool_call_id="c", artifact={"y": {1, 2}}),
            RemoveMessage(id="1"),
        ],
        "times": [datetime.datetime(2026, 1, 2, 3, 4, 5, 6, utc), datetime.date(2026, 1, 2), datetime.time(3, 4)],
        "span": datetime.timedelta(days=-1, microseconds=7),
        "sets": [{1, "a"}, frozenset({(1, 2)}), deque([1, {2}])],
        "odd": [uuid.UUID(int=7), Decimal("1.10"), Path("a/b"), graphs.Note(text="x"), graphs.Send("n", {"s": {1}})],
    }
    neutral = Neutral([graphs.Note])
    kind, text = neutral.dumps_typed(held)
    assert kind == "application/json" and neutral.loads_typed((kind, text)) == held
    assert neutral.dumps_typed(held)[1] == text and b"pickle" not in text
    error = neutral.loads_typed(neutral.dumps_typed(KeyError("gone")))
    assert type(error) is KeyError and error.args == ("gone",)
    with pytest.raises(ValueRefused, match=r"holds a Note, which is no class of this agent's: name it in types="):
        Neutral().loads_typed(("application/json", b'{"@":"object","type":"Note","value":{"text":"x"}}'))
    for tag in ("constructor", "os.system"):
        with pytest.raises(ValueRefused, match="which this version does not read"):
            neutral.loads_typed(("application/json", json.dumps({"@": tag, "value": ["id"]}).encode()))


def test_a_state_that_no_record_can_carry_is_refused_with_its_path(graphs: Any) -> None:
    def agent(**options: Any) -> None:
        with wl.record("runs"):
            made = graphs.WorldlineSaver(**options)
            graphs.graph(made, lambda: "mailed").invoke({"messages": ["hi"], "note": object()}, graphs.CONFIG)

    with pytest.raises(ValueRefused, match=r"the state holds a object at \$\.note; keep plain data in the state"):
        agent()
    with wl.record("runs"), pytest.raises(ValueRefused, match=r"name it: WorldlineSaver\(types=\[Note\]\)"):
        graphs.graph(graphs.WorldlineSaver(), lambda: "mailed").invoke({"messages": ["hi"]}, graphs.CONFIG)
    with pytest.raises(UsageError, match=r"resume= is a run, its id or its path, not a int"):
        graphs.WorldlineSaver(resume=7)


def test_forgetting_a_thread_is_recorded_and_a_saver_works_without_a_run(graphs: Any) -> None:
    def ask(made: Any) -> Any:
        return graphs.graph(made, lambda: "mailed").invoke({"messages": ["hi"]}, graphs.CONFIG)

    alone = saver(graphs)
    ask(alone)
    assert not Path("runs").exists() and alone.get_tuple(graphs.CONFIG) is not None
    with wl.record("runs"):
        made = saver(graphs)
        ask(made)
        made.delete_thread("order-812")
        assert made.get_tuple(graphs.CONFIG) is None and list(made.list(None)) == []
    again = saver(graphs, resume=wl.open("latest", "runs"))
    assert again.get_tuple(graphs.CONFIG) is None, "what was forgotten does not come back"
