"""The verbs on the command line: what they print, what `--json` says, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fork.shop import Desk, worldline

BRANCH = {"run", "path", "outcome", "prefix", "live", "mocked", "refused"}


def told(desk: Desk, verb: str, run: str) -> Any:
    return worldline(verb, run, "--store", desk.store, "--json", env=desk.environment()).json


def test_a_fork_its_tree_and_what_show_says_of_it(recorded: Desk) -> None:
    ended = recorded.verb("fork", recorded.run, "--at", "step:1", "--set", "model=other", "--json")
    report = ended.json
    (branch,) = report["branches"]
    assert report.keys() >= {"branches", "pass_at_k", "substrate", "degraded"} and branch.keys() >= BRANCH
    assert (ended.code, report["pass_at_k"], report["substrate"]) == (0, None, "none")
    assert [branch[word] for word in ("prefix", "live", "mocked", "refused")] == [2, 3, 0, 2]

    shown = told(recorded, "show", branch["run"])
    assert [step["index"] for step in shown["steps"]] == [1, 2, 3], "a branch counts on, and copies nothing"
    assert shown["parent"]["run"] == recorded.run
    text = worldline("show", branch["run"], "--store", recorded.store, env=recorded.environment()).out
    assert f"a branch of {recorded.run} at step:1, with model=other; steps 0 to 0 are there" in text

    tree = told(recorded, "tree", branch["run"])
    (root,) = tree["roots"]
    node = next(child for child in root["children"] if child["run"] == branch["run"])
    assert (root["run"], node["at"], node["changed"], node["refused"]) == (recorded.run, "step:1", ["model=other"], 2)
    assert 0 < tree["shared"]["share"] < 1 and tree["shared"]["distinct"] < tree["shared"]["bytes"]
    drawn = worldline("tree", recorded.run, "--store", recorded.store, env=recorded.environment()).out
    assert "model=other" in drawn and "% shared" in drawn and " *   ✓ succeeded" in drawn


def test_a_plan_in_a_file_replicas_and_their_rates(recorded: Desk) -> None:
    Path("prompt.txt").write_text("You are a bold clerk.\n")
    Path("grade.py").write_text("def score(run):\n    return 1.0 if len(run.steps) == 4 else 0.0\n")
    Path("plan.toml").write_text(
        'at = "step:0"\nprompt_file = "prompt.txt"\nseed = "rotate"\nn = 2\nverifier = "grade.py:score"\n'
        "[set]\ntop_p = 0.25\n"
    )
    ended = recorded.verb("fork", recorded.run, "--plan", "plan.toml")
    assert ended.code == 0 and "2 of 2   branch" in ended.out and "score 1" in ended.out
    assert "2 of 2 passed" in ended.out and "pass@1 1.00 [0.34, 1.00]" in ended.out and "pass^2 1.00 [" in ended.out


def test_not_reproducible_names_the_place_and_ends_with_1(recorded: Desk) -> None:
    ended = recorded.verb("fork", recorded.run, "--at", "step:2", PROMPT="You are another clerk.")
    assert ended.code == 1
    lines = [line.strip() for line in ended.out.splitlines()]
    assert lines[0] == "✕ NOT_REPRODUCIBLE   changed at openai.chat"
    assert lines[1:4] == ["$.messages[0].content", "- You are a careful clerk.", "+ You are another clerk."]


def test_a_command_that_cannot_be_started_leaves_no_trace(recorded: Desk) -> None:
    runs = set(recorded.store.iterdir())
    Path("elsewhere").mkdir()
    Path("here.sh").write_text("#!/bin/sh\n")
    Path("here.sh").chmod(0o755)
    program, recorded.program = recorded.program, ("./here.sh",)
    try:
        failed = recorded.verb("fork", recorded.run, "--at", "step:1", "--workspace", "elsewhere")
    finally:
        recorded.program = program
    assert failed.code == 4 and "cannot start './here.sh'" in failed.last
    assert set(recorded.store.iterdir()) == runs


def test_a_refusal_is_one_line_and_another_program_is_said(recorded: Desk) -> None:
    refused = recorded.verb("fork", recorded.run, "--at", "step:9")
    assert refused.code == 64 and "no step 9: the run has steps 0 to 3" in refused.complaint
    Path("other.py").write_text("print('another program')\n")
    program, recorded.program = recorded.program, (recorded.program[0], "other.py")
    try:
        other = recorded.verb("fork", recorded.run, "--at", "step:1", "--agent", "same")
    finally:
        recorded.program = program
    assert other.code == 64 and "is not the one that was recorded: other.py" in other.complaint
