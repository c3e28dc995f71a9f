"""A changed agent is told where it parted from its record: kind, seq, call and JSON path, exactly.

The provider of the recording has stopped before any of these replays starts, so whatever they get is from the record.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Recorded
from tests.cli.terminal import Ended, agent, environment, worldline
from worldline.testing.provider import Ask, Provider, Reply, Say

ROUTE = "openai.chat"
Place = Callable[[Any], tuple[int, str]]


def replay(edits: dict[str, str] | None = None, *words: str) -> Ended:
    return worldline("replay", "latest", *words, "--", *agent("clerk", edits))


def divergence(ended: Ended) -> dict[str, Any]:
    report = ended.json
    assert (ended.code, report["verdict"]) == (1, "diverged")
    assert report["live"] == 0
    found: dict[str, Any] = report["divergence"]
    return found


def step(shown: Any, index: int) -> dict[str, Any]:
    """Where step `index` stands in the record: seq and call of its decision."""
    return {"seq": shown["steps"][index]["seq"], "call": shown["steps"][index]["decisions"][0], "name": ROUTE}


def test_the_unchanged_agent_is_equivalent_and_gets_the_same_answers(clerk: Recorded) -> None:
    ended = replay(None, "--tools", "run")
    assert (ended.code, ended.out.splitlines()[:-1]) == (0, clerk.ended.out.splitlines())
    assert ended.out.splitlines()[-1].startswith("✓ equivalent   3 exchanges served, none passed on")


def test_one_prompt_word(clerk: Recorded) -> None:
    found = divergence(replay({"a careful clerk": "a careless clerk"}, "--tools", "run", "--json"))
    assert found == {
        "kind": "changed",
        **step(clerk.shown, 0),
        "path": "$.messages[0].content",
        "recorded": "You are a careful clerk.",
        "actual": "You are a careless clerk.",
        "hint": "it is the system prompt",
        "masks": [],
    }


def test_one_model_name(clerk: Recorded) -> None:
    found = divergence(replay({'"gpt-5"': '"gpt-5-mini"'}, "--tools", "run", "--json"))
    expected = {"kind": "changed", **step(clerk.shown, 0), "path": "$.model", "recorded": "gpt-5"}
    assert found == {**expected, "actual": "gpt-5-mini", "hint": "it is the model", "masks": []}


def test_one_tool_result_names_the_tool_its_call_and_the_way_on(clerk: Recorded) -> None:
    edit = {"lamp, 2 pieces": "lamp, 3 pieces"}
    hint = "it is the result of lookup_order (call_1), which ran outside the recording: wrap it with @worldline.tool"
    found = divergence(replay(edit, "--tools", "run", "--json"))
    assert found == {
        "kind": "changed",
        **step(clerk.shown, 1),
        "path": "$.messages[3].content",
        "recorded": "order 812: lamp, 2 pieces",
        "actual": "order 812: lamp, 3 pieces",
        "hint": hint,
        "masks": [],
    }
    # For people: the verdict, the path, both values, the hint, one a line.
    ended = replay(edit, "--tools", "run")
    lines = ended.out.splitlines()
    assert lines[-6:] == [
        f"✕ diverged at step 1, openai.chat, seq {found['seq']}, {found['call']}",
        "  $.messages[3].content",
        '  - "order 812: lamp, 2 pieces"',
        '  + "order 812: lamp, 3 pieces"',
        f"  {hint}",
        "  1 exchange served",
    ]


def test_the_last_call_dropped(clerk: Recorded) -> None:
    found = divergence(replay({'        say(client, messages, "Now a summary.")\n': ""}, "--tools", "run", "--json"))
    assert found == {
        "kind": "unconsumed",
        **step(clerk.shown, 2),
        "path": "$",
        "recorded": "1 recorded call was never asked for",
        "actual": "the agent ended",
        "hint": None,
        "masks": [],
    }
    told = worldline("replay", "latest", "--tools", "run", "--", "true").out.splitlines()
    assert told == [
        "✕ diverged (unconsumed) at step 0, openai.chat, seq 1, c0",
        "  - 3 recorded calls were never asked for",
        "  + the agent ended",
        "  0 exchanges served",
    ]


def test_one_call_added(clerk: Recorded) -> None:
    last = '"Now a summary.")\n'
    found = divergence(
        replay({last: last + '        say(client, messages, "And a poem.")\n'}, "--tools", "run", "--json")
    )
    assert (found["kind"], found["path"], found["recorded"]) == ("unexpected", "$", "the record ends here")
    assert {key: found[key] for key in ("seq", "call", "name")} == step(clerk.shown, 2)  # the last before it
    assert found["actual"].endswith(": And a poem.")


def test_tools_outside_the_recording_are_counted_and_the_ways_on_named(clerk: Recorded) -> None:
    ended = replay(None, "--json")
    assert ended.code == 3
    assert ended.json["verdict"] == "ineligible"
    [reason] = ended.json["reasons"]
    for words in ("(lookup_order x2)", "@worldline.tool", "MCP proxy", "workspace checkpoint", "--tools run"):
        assert words in reason
    told = replay()
    assert (told.code, told.out.splitlines()[0]) == (3, "✕ ineligible")
    assert "clerk:" not in told.out  # the agent was not even started


@pytest.mark.parametrize(("questions", "kind"), [(["one", "two"], None), (["two", "one"], "order")])
def test_order(questions: list[str], kind: str | None) -> None:
    with Provider() as provider:
        recorded = worldline("record", "--", *agent("questions"), "one", "two", env=environment(provider))
    assert recorded.code == 0
    ended = worldline("replay", "latest", "--json", "--", *agent("questions"), *questions)
    if kind is None:
        assert ended.json["verdict"] == "equivalent"
        return
    steps = worldline("show", "latest", "--json").json["steps"]
    assert divergence(ended) == {
        "kind": "order",
        **step({"steps": steps}, 0),
        "path": "$",
        "recorded": "openai.chat (c0) finished before openai.chat (c1) started",
        "actual": "openai.chat (c1) was asked for, and c0 was not",
        "hint": None,
        "masks": [],
    }


def test_what_differs_about_the_place_is_said_of_a_replay_that_diverged() -> None:
    with Provider() as provider:
        there = environment(provider) | {"TZ": "Europe/Berlin"}
        recorded = worldline("record", "--", *agent("questions"), "one", env=there)
    assert recorded.code == 0
    for question, said in (("one", []), ("two", ["TZ was 'Europe/Berlin' when it was recorded, here it is unset"])):
        here = {name: value for name, value in environment().items() if name != "TZ"}
        ended = worldline("replay", "latest", "--json", "--", *agent("questions"), question, env=here)
        assert [note for note in ended.json["notes"] if note.startswith("TZ")] == said


def test_identical_calls_get_each_its_own_answer_and_one_more_is_told() -> None:
    def counting(ask: Ask) -> Reply:
        return Say(f"answer {ask.attempt}")

    with Provider(counting) as provider:
        same = [*agent("questions"), "again", "again", "again"]
        recorded = worldline("record", "--", *same, env=environment(provider))
    assert recorded.out.split("\n")[:3] == ["answer 0", "answer 1", "answer 2"]
    assert worldline("replay", "latest", "--", *same).out.startswith(recorded.out)
    more = divergence(worldline("replay", "latest", "--json", "--", *same, "again"))
    assert (more["kind"], more["call"]) == ("unexpected", "c2")
    fewer = divergence(worldline("replay", "latest", "--json", "--", *same[:-1]))
    assert (fewer["kind"], fewer["call"]) == ("unconsumed", "c2")


@pytest.mark.parametrize(("value", "shown"), [("NaN", "NaN"), ("1e999", "Infinity"), (r'"\ud800"', r'"\ud800"')])
def test_what_no_json_reader_takes_is_quoted_as_it_was_sent(provider: Provider, value: str, shown: str) -> None:
    """No SDK sends it, Python's own json module does."""
    code = (
        "import os, sys, urllib.request as u; "
        "to, key = os.environ['OPENAI_BASE_URL'] + '/chat/completions', {'Authorization': 'Bearer none'}; "
        "u.urlopen(u.Request(to, sys.argv[1].encode(), key))"
    )
    body = '{"model": "m", "messages": [{"role": "user", "content": "hi"}], "bias": %s}'
    recorded = worldline("record", "--", sys.executable, "-c", code, body % "1", env=environment(provider))
    assert recorded.code == 0, recorded.err
    again = [sys.executable, "-c", code, body % value]
    found = divergence(worldline("replay", "latest", "--json", "--", *again))
    assert (found["path"], found["actual"]) == ("$.bias", shown)
    ended = worldline("replay", "latest", "--", *again)
    assert (ended.code, "a defect" in ended.err) == (1, False)
