"""A fork of a real command: the prefix is served, one thing changes, the rest goes live behind the gate."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.fork.shop import Desk, counts, only
from worldline.engine.cassette import rebuild
from worldline.engine.fork_point import fork_point
from worldline.engine.plan import plan_of
from worldline.errors import UnknownStep, UsageError
from worldline.run import Run
from worldline.store.recording import Recording
from worldline.store.verify import verify

NOTHING: tuple[list[str], list[str]] = ([], [])


def requests(desk: Desk, since: int) -> list[Any]:
    return [json.loads(request.body) for request in desk.provider.requests[since:]]


def test_the_prefix_is_served_and_the_rest_goes_live(recorded: Desk) -> None:
    since = len(recorded.provider.requests)
    branch = only(recorded.fork(recorded.run, "step:2"))
    assert (counts(branch), branch.outcome) == ((4, 2, 1, 0), "succeeded")
    assert recorded.outside.did == NOTHING, "what was mailed is served, what is refunded again is mocked"
    assert len(requests(recorded, since)) == 2, "decisions before the fork are not asked again"
    recording = Recording(Path(branch.path))
    assert verify(recording).ok and all(met for _, _, met in rebuild(recording)), "it stands alone"
    assert [step.index for step in Run(recording).steps] == [0, 1, 2, 3], "read with its lineage it is whole"
    report = recorded.replay(branch.run)
    assert (report.verdict, report.served) == ("equivalent", 7)


def test_another_model_and_the_forks_of_that_fork(recorded: Desk) -> None:
    since = len(recorded.provider.requests)
    branch = only(recorded.fork(recorded.run, "step:1", set={"model": "other", "temperature": 0.5}))
    assert {(body["model"], body["temperature"]) for body in requests(recorded, since)} == {("other", 0.5)}
    assert counts(branch) == (2, 3, 0, 2), "another mail and another refund have no result on record"
    assert recorded.outside.did == NOTHING

    since = len(recorded.provider.requests)
    again = only(recorded.fork(branch.run, "step:3"))
    assert counts(again) == (6, 1, 0, 0), "what was refused is refused again from the record, and asks nobody"
    assert [body["model"] for body in requests(recorded, since)] == ["other"], "a fork of a fork changes nothing more"
    assert recorded.replay(again.run).verdict == "equivalent"
    before = only(recorded.fork(branch.run, "step:0"))
    assert Recording(Path(before.path)).header.data["parent"]["run"] == recorded.run, "step 0 is its parent's"
    assert [body["model"] for body in requests(recorded, since)][1:] == ["gpt-5"] * 4, "so is its model"


def test_an_edited_result_is_a_mock_and_stands_in_the_record(recorded: Desk) -> None:
    since = len(recorded.provider.requests)
    branch = only(recorded.fork(recorded.run, "step:1", edit={"call_look": "order 812: gone"}))
    assert counts(branch) == (1, 3, 3, 0)
    assert requests(recorded, since)[0]["messages"][-1]["content"] == "order 812: gone"
    assert recorded.replay(branch.run).verdict == "equivalent"


def test_prompts_and_seeds_change_every_live_request_and_no_other(recorded: Desk) -> None:
    since = len(recorded.provider.requests)
    plan = {"prompt": "Cancel order 812.", "prompt_role": "user", "seed": "rotate"}
    report = recorded.fork(recorded.run, "step:2", n=2, **plan)
    bodies = requests(recorded, since)
    assert {body["messages"][1]["content"] for body in bodies} == {"Cancel order 812."}
    assert {body["messages"][0]["content"] for body in bodies} == {"You are a careful clerk."}
    assert [body["seed"] for body in bodies[::2]] == [body["seed"] for body in bodies[1::2]]
    assert len({body["seed"] for body in bodies}) == 2, "each branch has a seed of its own"
    for branch in report.branches:
        assert recorded.replay(branch.run).verdict == "equivalent"
        said = [e.data for e in Recording(Path(branch.path)).events() if e.name == "decision/request"]
        assert all(data["changed"] == ["seed", "user prompt"] for data in said), "what was changed stands there"


def test_a_changed_agent_before_the_fork_is_not_reproducible_and_nothing_goes_live(recorded: Desk) -> None:
    since, runs = len(recorded.provider.requests), set(recorded.store.iterdir())
    branch = only(recorded.fork(recorded.run, "step:2", n=3, env={"PROMPT": "You are another clerk."}))
    found = branch.divergence
    assert branch.outcome == "not_reproducible" and found is not None
    assert (found["kind"], found["path"], found["seq"]) == ("changed", "$.messages[0].content", 1)
    assert (found["recorded"], found["actual"]) == ("You are a careful clerk.", "You are another clerk.")
    short = only(recorded.fork(recorded.run, "step:3", env={"TURNS": "1"}))
    assert short.divergence is not None and short.divergence["kind"] == "unconsumed", "it never came to the fork"
    assert requests(recorded, since) == [] and recorded.outside.did == NOTHING
    assert set(recorded.store.iterdir()) == runs, "neither leaves a trace"


def test_a_field_that_looks_like_a_typo_is_named_and_sent_all_the_same(recorded: Desk) -> None:
    for fields, said in (({"modle": "other"}, ["model"]), ({"min_p": 0.1}, []), ({"model": "other"}, [])):
        doubts = fork_point(Recording(recorded.store / recorded.run), plan_of({"at": "step:1", "set": fields})).doubts
        assert [doubt.split()[-1].rstrip("?") for doubt in doubts] == said, doubts


@pytest.mark.parametrize(
    ("plan", "error", "why"),
    [
        ({"at": "step:9"}, UnknownStep, "no step 9: the run has steps 0 to 3"),
        ({"at": "yesterday"}, UsageError, "step:9 or seq:88"),
        ({"at": "seq:999"}, UnknownStep, "no row 999"),
        ({"at": "seq:0"}, UnknownStep, "no row 0"),
        ({"at": "step:1", "edit": {"call_9": 1}}, UnknownStep, "no tool call call_9"),
        ({"at": "step:1", "edit": {"c0": 1}}, UnknownStep, "no tool call c0"),
        ({"at": "step:2", "edit": {"call_look": 1}}, UsageError, "was told the result of call_look .*fork at step:1"),
        ({"at": "step:1", "edit": {"call_refund": 1}}, UsageError, "ran behind the fork"),
        ({"at": "step:1", "seed": "7"}, UsageError, "set seed=7"),
        ({"at": "step:1", "prompt": "x", "prompt_role": "god"}, UsageError, "one of system, user"),
        ({"at": "step:1", "colour": "red"}, UsageError, "colour"),
        ({"at": "step:1", "tools": "hide"}, UsageError, "refuse or run"),
        ({"at": "step:1", "set": {"": 1}}, UsageError, "has a name"),
    ],
)
def test_a_plan_that_cannot_be_kept_is_refused_before_anything_runs(
    recorded: Desk, plan: dict[str, Any], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=re.compile(why)):
        fork_point(recorded.recording(recorded.run), plan_of(plan))


def test_rules_allow_deny_and_mock_and_are_on_record(recorded: Desk) -> None:
    rules = (
        '[policy]\nid = "shop"\n'
        '[[policy.rule]]\nid = "no-mail"\ntool = "mail"\nkey = "mail:eve*"\ndecision = "deny"\n'
        '[[policy.rule]]\ntool = "refund"\ndecision = "allow"\n'
    )
    branch = only(recorded.fork(recorded.run, "step:1", rules=rules, set={"model": "other"}))
    assert (counts(branch), recorded.outside.did) == ((2, 4, 0, 1), (["/refund/812/7"], []))
    events = [event for event in Recording(Path(branch.path)).events() if event.kind == "permission"]
    assert [(e.src, *(e.data["facts"][word] for word in ("policy", "rule", "by"))) for e in events] == [
        ("denied", "shop", "no-mail", "policy"),
        ("auto_approved", "shop", "#2", "policy"),
    ]
    assert recorded.replay(branch.run).verdict == "equivalent"
    mocking = '[[policy.rule]]\ntool = "mail"\nmock = "as if"\n'
    branch = only(recorded.fork(recorded.run, "step:1", rules=mocking, set={"model": "other"}))
    assert counts(branch) == (2, 3, 1, 1) and recorded.outside.mailed == []
    assert Run(Recording(Path(branch.path))).steps[1].calls[0].result == "as if"
